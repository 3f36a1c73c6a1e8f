package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// zkBirth is the wall time of the server, in milliseconds since 1970, at the
// virtual time 0.
const zkBirth = 1_700_000_000_000

// zkSweepEvery is how often empty containers are looked for.
const zkSweepEvery = time.Minute

// zkServer is the server's side: the state machine, fed by events.
type zkServer struct {
	zk       *zkSim
	tree     *tree.Tree
	links    map[tree.Conn]*zkLink
	lastConn tree.Conn
	owners   map[int64]cluster.NodeID // of sessions
	expiry   *kernel.Timer
	expiryAt int64
	sweeping bool
	down     int // number of stops in force
}

func newZKServer(z *zkSim) *zkServer {
	s := &zkServer{zk: z, links: map[tree.Conn]*zkLink{}, owners: map[int64]cluster.NodeID{}}
	s.tree = tree.New(tree.Options{
		Tick: max(z.cfg.Tick.Milliseconds(), 1), Secret: z.env.Seed, FirstSession: 0x100000000,
	}, s.now())
	return s
}

func (s *zkServer) now() int64 { return zkBirth + s.zk.env.Now().Milliseconds() }

// accept gives a connection its number; false if nobody listens.
func (s *zkServer) accept(l *zkLink) bool {
	if s.down > 0 {
		return false
	}
	s.lastConn++
	l.conn = s.lastConn
	s.links[l.conn] = l
	return true
}

// take carries out what arrived on a connection.
func (s *zkServer) take(l *zkLink, f *zkFrame) {
	if s.down > 0 || s.links[l.conn] != l {
		l.notDone(f)
		return
	}
	if f.kind == zkGreeting {
		s.greet(l, f)
	} else {
		s.serve(l, f)
	}
	s.arm()
}

func (s *zkServer) greet(l *zkLink, f *zkFrame) {
	res := s.tree.Connect(s.now(), l.conn, "", f.connect)
	if res.Displaced != 0 {
		s.hangUp(res.Displaced, 0)
	}
	if res.Refused {
		s.hangUp(l.conn, 0)
		return
	}
	if res.OK {
		s.owners[res.Response.SessionID] = l.owner()
	}
	l.down(&zkFrame{kind: zkGreeting, greeted: &res.Response}, s.zk.cfg.Commit)
	if !res.OK {
		s.hangUp(l.conn, s.zk.cfg.Commit)
	}
}

func (s *zkServer) serve(l *zkLink, f *zkFrame) {
	rep := s.tree.Do(s.now(), l.conn, f.xid, f.op, f.req)
	extra := time.Duration(0)
	if rep.Txn.Zxid != 0 {
		extra = s.zk.cfg.Commit
		s.report(rep.Txn)
		if f.op == jute.OpCreateContainer {
			s.sweepLater()
		}
	}
	s.send(rep.Events, extra)
	if !rep.Silent {
		l.down(&zkFrame{kind: f.kind, xid: f.xid, op: f.op, req: f.req, reply: rep, code: zkCode(rep)}, extra)
	}
	if rep.Close {
		s.hangUp(l.conn, extra)
	}
}

// zkCode is the code of a reply; of a multi that failed, the failing
// operation's.
func zkCode(rep tree.Reply) jute.Code {
	if rep.Header.Err == jute.OK && rep.Txn.Zxid != 0 {
		return rep.Txn.Err
	}
	return rep.Header.Err
}

func (s *zkServer) send(events []tree.Event, extra time.Duration) {
	for _, e := range events {
		if l := s.links[e.Conn]; l != nil {
			l.down(&zkFrame{kind: zkEvent, event: e}, extra)
		}
	}
}

// hangUp closes a connection from the server's side, behind what was sent.
func (s *zkServer) hangUp(c tree.Conn, extra time.Duration) {
	l := s.links[c]
	delete(s.links, c)
	s.tree.Disconnect(c)
	if l != nil {
		l.down(&zkFrame{kind: zkEOF}, extra)
	}
}

// hungUp takes note that a client has closed its side.
func (s *zkServer) hungUp(l *zkLink) {
	if s.links[l.conn] == l {
		delete(s.links, l.conn)
		s.tree.Disconnect(l.conn)
	}
}

// arm sets the timer of the next expiry.
func (s *zkServer) arm() {
	at, ok := s.tree.NextExpiry()
	if s.down > 0 || !ok || s.expiry != nil && s.expiryAt <= at {
		return // the timer that stands looks again
	}
	s.zk.k.Cancel(s.expiry)
	s.expiryAt = at
	s.expiry = s.zk.k.At(time.Duration(at-zkBirth)*time.Millisecond, kernel.Func(s.expire))
}

func (s *zkServer) expire() {
	s.expiry = nil
	if s.down > 0 {
		return
	}
	for _, e := range s.tree.Expire(s.now()) {
		s.ended(e)
	}
	s.arm()
}

func (s *zkServer) ended(e tree.Ended) {
	s.report(e.Txn)
	s.send(e.Events, s.zk.cfg.Commit)
	if e.Conn != 0 {
		s.hangUp(e.Conn, s.zk.cfg.Commit)
	}
}

// sweepLater looks for empty containers from now on.
func (s *zkServer) sweepLater() {
	if s.sweeping {
		return
	}
	s.sweeping = true
	s.zk.k.After(zkSweepEvery, kernel.Func(s.sweep))
}

func (s *zkServer) sweep() {
	s.sweeping = false
	if s.down == 0 {
		for _, e := range s.tree.Sweep(s.now()) {
			s.send(e.Events, s.zk.cfg.Commit)
		}
	}
	s.sweepLater()
}

// report tells the history of a transaction. The server knows of every one,
// also where its client never hears of the outcome.
func (s *zkServer) report(t tree.Txn) {
	id := s.owners[t.Session]
	if t.Op == jute.OpCloseSession {
		delete(s.owners, t.Session)
	}
	if id == "" {
		return
	}
	text := ""
	if t.Err != jute.OK {
		text = t.Err.String()
	}
	paths := t.Paths
	if paths == nil {
		paths = []string{}
	}
	s.zk.env.Observe(id, history.Txn{
		Node: string(id), Session: t.Session, Zxid: t.Zxid, Op: zkOpName(t.Op), Paths: paths,
		Guard: t.Guard, Error: text, Ephemeral: t.Ephemeral,
	})
}

// stop takes the server down.
func (s *zkServer) stop(lease time.Duration) host.Undo {
	s.down++
	for _, c := range slices.Sorted(maps.Keys(s.links)) {
		s.hangUp(c, 0)
	}
	up := false
	start := func() {
		if up {
			return
		}
		up = true
		s.down--
		if s.down == 0 {
			s.tree.Restart(s.now())
			s.arm()
		}
	}
	if lease > 0 {
		s.zk.k.After(lease, kernel.Func(start))
	}
	return start
}

// zkOpName names an operation for taps, cuts and events, as in the real world.
func zkOpName(op jute.OpCode) string {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		return "create"
	case jute.OpGetData:
		return "get"
	case jute.OpSetData:
		return "set"
	case jute.OpGetChildren, jute.OpGetChildren2:
		return "children"
	default:
		return op.String()
	}
}

// zkNotSent is the answer to a call that a session in that state did not send.
func zkNotSent(s host.SessionState) error {
	switch s {
	case host.Expired:
		return host.ErrExpired
	case host.Closed:
		return host.ErrClosed
	default:
		return host.ErrNotSent
	}
}

// zkError is the host's error for a code of a reply. Codes of the system range
// leave open what the server did.
func zkError(code jute.Code) error {
	switch code {
	case jute.OK:
		return nil
	case jute.NoNode:
		return host.ErrNoNode
	case jute.NodeExists:
		return host.ErrNodeExists
	case jute.BadVersion:
		return host.ErrBadVersion
	case jute.NotEmpty:
		return host.ErrNotEmpty
	case jute.NoChildrenForEphemerals:
		return host.ErrNoChildrenForEphemerals
	case jute.SessionExpired:
		return host.ErrExpired
	case jute.BadArguments:
		return host.ErrBadArguments
	default:
		if code <= jute.APIError {
			return cluster.Definite(code)
		}
		return fmt.Errorf("%w: %w", host.ErrConnectionLoss, code)
	}
}
