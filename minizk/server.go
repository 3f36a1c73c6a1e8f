package minizk

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// Config describes a server. The zero value is a usable one on a free port of
// the loopback.
type Config struct {
	// Addr is where to listen, host:port; "" = 127.0.0.1:0.
	Addr string
	// Log is told of connections and faults at debug level; nil is silent.
	Log *zap.Logger
	// Tick is the granularity of session expiry; 0 = 500 ms (a real server has
	// 2 s by default, which makes tests slow).
	Tick time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what clients ask for;
	// 0 = 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MaxFrame is jute.maxbuffer in bytes; 0 = 0xfffff. A longer frame ends the
	// connection.
	MaxFrame int
	// MaxConns and MaxConnsPerIP close connections beyond them at once; 0 = no
	// limit.
	MaxConns, MaxConnsPerIP int
	// ExtendedTypes allows TTL nodes (zookeeper.extendedTypesEnabled).
	ExtendedTypes bool
	// SkipACL turns the enforcement of ACLs off.
	SkipACL bool
	// SuperDigest is the digest id (user:hash, see tree.Digest) that may do
	// anything; "" = none.
	SuperDigest string
	// SweepEvery is how often empty containers and TTL nodes are removed; 0 = a
	// minute.
	SweepEvery time.Duration
	// ContainerNeverUsed is the age at which a container that never had a child
	// is removed too; 0 = never.
	ContainerNeverUsed time.Duration
	// Dir keeps the state in a directory: a server started there again has the
	// same nodes, and the same sessions with their whole time-out. Two servers
	// must not share one. "" = in memory only.
	Dir string
}

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	for name, d := range map[string]time.Duration{
		"Tick": c.Tick, "MinSessionTimeout": c.MinSessionTimeout, "MaxSessionTimeout": c.MaxSessionTimeout,
		"SweepEvery": c.SweepEvery, "ContainerNeverUsed": c.ContainerNeverUsed,
	} {
		if d < 0 {
			return fmt.Errorf("negative %s", name)
		}
	}
	if c.Tick > 0 && c.Tick < time.Millisecond {
		return errors.New("tick below a millisecond")
	}
	if c.MaxFrame < 0 || c.MaxConns < 0 || c.MaxConnsPerIP < 0 {
		return errors.New("negative limit")
	}
	return nil
}

// ErrClosed says that the server has been closed.
var ErrClosed = errors.New("minizk: server closed")

// Server is a running server. All methods may be called from any goroutine.
type Server struct {
	cfg Config
	log *zap.Logger

	mu       sync.Mutex
	tree     *tree.Tree
	listener net.Listener // nil while the server is down
	addr     string
	conns    map[tree.Conn]*conn
	perIP    map[string]int
	lastConn tree.Conn
	faults   []*fault // in the order of their making
	clock    clock
	stats    stats
	journal  *journal // nil without Config.Dir
	closed   bool
	quit     chan struct{}
	wake     chan struct{} // tells the session tracker that time was skipped
	wg       sync.WaitGroup
}

// Start starts a server. It accepts connections when Start returns.
func Start(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("start minizk: %w", err)
	}
	cfg = withDefaults(cfg)
	s := &Server{
		cfg: cfg, log: cfg.Log, conns: map[tree.Conn]*conn{}, perIP: map[string]int{},
		clock: clock{start: time.Now()}, quit: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("start minizk: %w", err)
	}
	if err := s.listen(cfg.Addr); err != nil {
		return nil, fmt.Errorf("start minizk: %w", errors.Join(err, s.journal.close()))
	}
	s.wg.Go(s.track)
	return s, nil
}

func withDefaults(cfg Config) Config {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Tick == 0 {
		cfg.Tick = 500 * time.Millisecond
	}
	if cfg.MaxFrame == 0 {
		cfg.MaxFrame = jute.DefaultMaxBuffer
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = time.Minute
	}
	return cfg
}

// options are those of a new tree.
func (s *Server) options() (tree.Options, error) {
	var secret [8]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return tree.Options{}, fmt.Errorf("draw secret of sessions: %w", err)
	}
	c := s.cfg
	return tree.Options{
		Tick:              c.Tick.Milliseconds(),
		MinSessionTimeout: c.MinSessionTimeout.Milliseconds(), MaxSessionTimeout: c.MaxSessionTimeout.Milliseconds(),
		ExtendedTypes: c.ExtendedTypes, SkipACL: c.SkipACL, SuperDigest: c.SuperDigest,
		ContainerNeverUsed: c.ContainerNeverUsed.Milliseconds(),
		Secret:             binary.BigEndian.Uint64(secret[:]),
	}, nil
}

func (s *Server) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.listener, s.addr = l, l.Addr().String()
	s.wg.Go(func() { s.accept(l) })
	return nil
}

// Addr is the address to connect to, host:port.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

func (s *Server) accept(l net.Listener) {
	for {
		raw, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.log.Error("accept connection", zap.Error(err))
			}
			return
		}
		if !s.admit(l, raw) {
			_ = raw.Close() // as the real server does, without a word
		}
	}
}

// admit takes a connection in, within the limits.
func (s *Server) admit(l net.Listener, raw net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ip, _, err := net.SplitHostPort(raw.RemoteAddr().String())
	if err != nil || s.listener != l || s.refused() {
		return false
	}
	if s.cfg.MaxConns > 0 && len(s.conns) >= s.cfg.MaxConns ||
		s.cfg.MaxConnsPerIP > 0 && s.perIP[ip] >= s.cfg.MaxConnsPerIP {
		return false
	}
	s.lastConn++
	c := newConn(s, s.lastConn, raw, ip)
	s.conns[c.id] = c
	s.perIP[ip]++
	s.wg.Go(c.serve)
	return true
}

// forget drops a connection that has ended.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.id] != c {
		return
	}
	delete(s.conns, c.id)
	if s.perIP[c.ip]--; s.perIP[c.ip] == 0 {
		delete(s.perIP, c.ip)
	}
	s.tree.Disconnect(c.id)
}

// Close stops the server and returns when every goroutine and connection is
// gone. Clients see their connections end; sessions are not closed. Closing
// twice is fine.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	close(s.quit)
	err := s.hangUpAll()
	s.mu.Unlock()
	s.wg.Wait()
	return errors.Join(err, s.journal.close())
}

// Stop takes the server down as a crash would: it stops listening and every
// connection breaks. The state stays, and sessions do not age until Restart.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.listener == nil {
		return nil
	}
	return s.hangUpAll()
}

// hangUpAll closes the listener and all connections. S.mu is held.
func (s *Server) hangUpAll() error {
	var err error
	if s.listener != nil {
		err = s.listener.Close()
		s.listener = nil
	}
	for _, c := range s.conns { // each ends by itself
		s.tree.Disconnect(c.id)
		c.kill()
	}
	return err
}

// Restart brings a stopped server back at the same address. Every session has
// its whole time-out again.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.listener != nil:
		return nil
	case s.journal != nil && s.journal.err != nil:
		return fmt.Errorf("restart minizk: %w", s.journal.err)
	}
	s.tree.Restart(s.clock.millis())
	if err := s.listen(s.addr); err != nil {
		return fmt.Errorf("restart minizk: %w", err)
	}
	return nil
}
