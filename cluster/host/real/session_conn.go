package real

import (
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// zkSendBuffer is how many bytes a writer may be ahead of the wire, as with a
// socket.
const zkSendBuffer = 4 << 20

// zkConn is a connection of a session behind the gate: the net.Conn that the
// library reads and writes. A goroutine each moves frames to and from the wire
// when the rules allow; reads and writes honour their deadlines meanwhile, so
// that a client in a black hole notices.
type zkConn struct {
	door    *zkDoor
	raw     net.Conn
	number  int // of the door's dials
	readers atomic.Int32

	sendable, readable, room chan struct{} // buffered by one: look again

	// partial is what was written of an unfinished frame; only the writer's.
	partial []byte
	greeted bool // the connect request has been written; only the writer's

	// Below: guarded by door.mu.
	err           error // why reads and writes fail now
	closed        bool  // by the library; what it wrote still goes out
	session       int64 // from the handshake
	out           []zkOut
	outBytes      int
	in            []zkIn
	reading       zkIn // its first bytes may be with the library already
	readDeadline  time.Time
	writeDeadline time.Time
	pending       map[int32]*zkPending
}

// zkOut is a frame on its way to the server.
type zkOut struct {
	frame   []byte
	at      time.Time
	request zkRequest
	greets  bool
	silent  bool // the harness's own
}

// zkIn is a frame on its way to the library, or the end of the stream.
type zkIn struct {
	whole   []byte
	frame   []byte // the part of it that the library has not got yet
	at      time.Time
	eof     error
	greets  bool // the handshake
	watch   bool
	code    jute.Code
	pending *zkPending
}

// zkPending is a request that awaits its reply.
type zkPending struct {
	request  zkRequest
	call     *zkCall // nil for the library's own
	sent     bool    // handed to the operating system
	injected chan error
	silent   bool // injected by the harness: no tap or cut is meant
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fail breaks the stream both ways; what is queued is lost. Door.mu is held.
func (c *zkConn) fail(cause error) {
	if c.err == nil {
		c.err = cause
	}
	c.out, c.outBytes, c.in = nil, 0, nil
	c.closed = true
	c.stop()
	if err := c.raw.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		c.door.gate.log.Debug("close zookeeper connection", zap.Error(err))
	}
}

func (c *zkConn) stop() {
	c.door.lost(c)
	poke(c.sendable)
	poke(c.readable)
	poke(c.room)
}

// Close ends the library's use of the stream. As with a socket, what was
// written before still goes out.
func (c *zkConn) Close() error {
	c.door.lock()
	defer c.door.unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	if c.err == nil {
		c.err = net.ErrClosed
	}
	c.stop()
	return nil
}

// Write takes bytes of the stream. A frame that must not pass breaks it. Of a
// broken stream the reader hears, not the writer, as of a socket whose peer has
// just gone: the library answers a request twice whose write fails, and thrice
// if it is being closed, which blocks it for ever.
func (c *zkConn) Write(p []byte) (int, error) {
	switch c.awaitRoom() {
	case roomNever:
		return len(p), nil
	case roomLate:
		return 0, os.ErrDeadlineExceeded
	case roomNow:
	}
	c.partial = append(c.partial, p...)
	for {
		n, err := frameLen(c.partial)
		if err == nil && (n == 0 || len(c.partial) < n) {
			return len(p), nil
		}
		if err == nil {
			err = c.accept(slices.Clone(c.partial[:n]))
		}
		if err != nil {
			_ = c.breakOff(err)
			return len(p), nil
		}
		c.partial = c.partial[n:]
	}
}

func (c *zkConn) breakOff(cause error) error {
	c.door.lock()
	defer c.door.unlock()
	c.fail(cause)
	return cause
}

type room uint8

const (
	roomNow   room = iota
	roomLate       // not before the deadline
	roomNever      // the stream is broken
)

// awaitRoom blocks while the send buffer is full.
func (c *zkConn) awaitRoom() room {
	for {
		c.door.lock()
		broken, full, deadline := c.err != nil, c.outBytes > zkSendBuffer, c.writeDeadline
		c.door.unlock()
		switch {
		case broken:
			return roomNever
		case past(deadline):
			return roomLate
		case !full:
			return roomNow
		}
		awaitAny(c.room, nil, deadline)
	}
}

// past reports whether a deadline has passed; the zero time never does.
func past(deadline time.Time) bool {
	return !deadline.IsZero() && !time.Now().Before(deadline)
}

// awaitAny blocks until a channel moves or the time has come.
func awaitAny(a chan struct{}, b <-chan struct{}, until time.Time) {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-a:
	case <-b:
	case <-timeout:
	}
}

// accept takes one written frame: checks it, shows it to the taps, queues it.
func (c *zkConn) accept(frame []byte) error {
	o := zkOut{frame: frame, at: time.Now()}
	if !c.greeted {
		c.greeted, o.greets = true, true
		return c.enqueue(o)
	}
	q, err := decodeZKRequest(frame[4:])
	if err != nil {
		return err
	}
	o.request = q
	p := &zkPending{request: q}
	if err := c.bind(q, p); err != nil {
		return err
	}
	if q.op != jute.OpPing {
		c.door.gate.tap(host.ZKPassing{Op: zkOpName(q.op), Paths: q.paths()})
	}
	return c.enqueue(o)
}

// bind finds the call that a frame belongs to. Nothing but the library's own
// requests may pass before the watches are renewed: what overtakes them sees
// data newer than a watch event that is still to come, and the library then
// asks for events after the wrong transaction.
func (c *zkConn) bind(q zkRequest, p *zkPending) error {
	d := c.door
	d.lock()
	defer d.unlock()
	if c.err != nil {
		return c.err
	}
	if q.op == jute.OpPing && len(d.renewing) > 0 && d.live == c {
		// The library knows of fewer watches than its mirror: never seen, and no
		// reason to stay silent for ever.
		d.gate.log.Error("zookeeper watches not renewed", zap.Int("missing", len(d.renewing)))
		d.renewed(slices.Collect(maps.Keys(d.renewing)))
	}
	if !q.isInternal() {
		call := d.unwritten
		if call == nil || call.revoked || len(d.renewing) > 0 {
			return errZKStrict
		}
		p.call, call.written, d.unwritten = call, true, nil
		d.next()
	}
	if q.op != jute.OpPing {
		c.pending[q.xid] = p
	}
	if q.op == jute.OpSetWatches {
		d.renewed(q.rearm)
	}
	return nil
}

func (c *zkConn) enqueue(o zkOut) error {
	c.door.lock()
	defer c.door.unlock()
	if c.err != nil {
		return c.err
	}
	c.out = append(c.out, o)
	c.outBytes += len(o.frame)
	poke(c.sendable)
	return nil
}

// Read hands over bytes of the next frame that the rules let through.
func (c *zkConn) Read(p []byte) (int, error) {
	for {
		v := c.door.gate.view()
		n, until, err := c.tryRead(p, v, time.Now())
		if n > 0 || err != nil {
			return n, err
		}
		awaitAny(c.readable, v.changed, until)
	}
}

// tryRead returns bytes, an error, or the time to look again (zero: only when
// something happens).
func (c *zkConn) tryRead(p []byte, v zkView, now time.Time) (int, time.Time, error) {
	c.door.lock()
	defer c.door.unlock()
	if c.err != nil {
		return 0, time.Time{}, c.err
	}
	if !c.readDeadline.IsZero() && !now.Before(c.readDeadline) {
		return 0, time.Time{}, os.ErrDeadlineExceeded
	}
	until := c.readDeadline
	if len(c.reading.frame) == 0 {
		if len(c.in) == 0 {
			return 0, until, nil
		}
		wait, held := v.wait(c.in[0].at, now, c.in[0].watch)
		if held {
			return 0, until, nil
		}
		if wait > 0 {
			if due := now.Add(wait); until.IsZero() || due.Before(until) {
				until = due
			}
			return 0, until, nil
		}
		if c.in[0].eof != nil {
			return 0, until, c.in[0].eof
		}
		c.reading, c.in = c.in[0], c.in[1:]
	}
	n := copy(p, c.reading.frame)
	c.reading.frame = c.reading.frame[n:]
	if len(c.reading.frame) == 0 {
		c.handOver()
	}
	return n, until, nil
}

// LocalAddr is the wire's.
func (c *zkConn) LocalAddr() net.Addr { return c.raw.LocalAddr() }

// RemoteAddr is the wire's.
func (c *zkConn) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// SetDeadline sets both deadlines.
func (c *zkConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline bounds the present and later reads.
func (c *zkConn) SetReadDeadline(t time.Time) error {
	c.door.lock()
	defer c.door.unlock()
	c.readDeadline = t
	poke(c.readable)
	return nil
}

// SetWriteDeadline bounds the present and later writes.
func (c *zkConn) SetWriteDeadline(t time.Time) error {
	c.door.lock()
	defer c.door.unlock()
	c.writeDeadline = t
	poke(c.room)
	return nil
}

var _ net.Conn = (*zkConn)(nil)
