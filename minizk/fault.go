package minizk

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Match selects what a fault concerns. Empty fields match everything.
type Match struct {
	// Session is a session's id.
	Session int64
	// Path is a path that a request names or a watch event is about. One that
	// ends in "/*" matches every path below, at any depth.
	Path string
	// Op is the kind of the request, jute.OpSetData for example.
	Op jute.OpCode
}

func (m Match) session(id int64) bool { return m.Session == 0 || m.Session == id }

func (m Match) path(path string) bool {
	if below, ok := strings.CutSuffix(m.Path, "*"); ok && strings.HasSuffix(below, "/") {
		return strings.HasPrefix(path, below)
	}
	return m.Path == "" || m.Path == path
}

func (m Match) request(session int64, op jute.OpCode, req jute.Record) bool {
	if !m.session(session) || m.Op != 0 && m.Op != op {
		return false
	}
	return m.Path == "" || slices.ContainsFunc(jute.Paths(req), m.path)
}

// fault is a fault in force. The zero value of a field does nothing.
type fault struct {
	match       Match
	left        int // how often it still strikes; negative = always
	closeBefore bool
	dropReply   bool
	holdPings   bool
	refuse      bool
	stall       bool
	replyDelay  time.Duration
	watchDelay  time.Duration
}

// verdict is what the faults say to one request.
type verdict struct {
	closeBefore, dropReply, holdPing bool
	delay                            time.Duration
}

// add puts a fault in force until the function returned is called, or until it
// has struck often enough.
func (s *Server) add(f *fault) (undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
	if f.stall {
		for _, c := range s.conns { // each by itself
			s.stall(c)
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(f)
	}
}

// remove ends a fault. S.mu is held.
func (s *Server) remove(f *fault) {
	s.faults = slices.DeleteFunc(s.faults, func(o *fault) bool { return o == f })
	if !f.stall {
		return
	}
	for _, c := range s.conns {
		if f.match.session(c.session) && !s.isStalled(c) {
			c.goOn()
		}
	}
}

// strike uses a fault up. S.mu is held.
func (s *Server) strike(f *fault) {
	if f.left > 0 {
		if f.left--; f.left == 0 {
			s.remove(f)
		}
	}
}

// faultsFor decides what happens to a request. S.mu is held.
func (s *Server) faultsFor(c *conn, op jute.OpCode, req jute.Record) verdict {
	var v verdict
	if len(s.faults) == 0 {
		return v
	}
	for _, f := range slices.Clone(s.faults) {
		if !f.match.request(c.session, op, req) {
			continue
		}
		switch {
		case f.holdPings:
			v.holdPing = v.holdPing || op == jute.OpPing
		case op == jute.OpPing && f.match.Op != jute.OpPing:
			// The other faults mean requests that somebody made.
		case f.closeBefore && !v.closeBefore && !v.dropReply:
			v.closeBefore = true
			s.strike(f)
		case f.dropReply && !v.closeBefore && !v.dropReply:
			v.dropReply = true
			s.strike(f)
		default:
			v.delay = max(v.delay, f.replyDelay)
		}
	}
	return v
}

// watchDelay is how long a watch event is held back. S.mu is held.
func (s *Server) watchDelay(c *conn, path string) time.Duration {
	var d time.Duration
	for _, f := range s.faults {
		if f.watchDelay > d && f.match.session(c.session) && f.match.path(path) {
			d = f.watchDelay
		}
	}
	return d
}

// refused reports whether connections are refused. S.mu is held.
func (s *Server) refused() bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool { return f.refuse })
}

func (s *Server) isStalled(c *conn) bool {
	return slices.ContainsFunc(s.faults, func(f *fault) bool { return f.stall && f.match.session(c.session) })
}

// stall freezes a connection that a stall concerns. S.mu is held.
func (s *Server) stall(c *conn) {
	if s.isStalled(c) {
		c.stall()
	}
}

// ErrNoSession says that there is no such session.
var ErrNoSession = errors.New("minizk: no such session")

// ExpireSession ends a session now, as if its time-out had passed: its
// ephemeral nodes are gone when it returns, its connection is closed, and its
// client is told when it comes back.
func (s *Server) ExpireSession(id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.tree.CloseSession(s.clock.millis(), id)
	if !ok {
		return ErrNoSession
	}
	s.log.Debug("session expired by a fault", zap.Int64("session", id))
	s.ended(e)
	return nil
}

// CloseConnections closes the connections of the sessions that match, at once:
// what was sent to them may not arrive. It returns their number.
func (s *Server) CloseConnections(m Match) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.conns { // each by itself
		if c.session != 0 && m.session(c.session) {
			s.tree.Disconnect(c.id)
			c.kill()
			n++
		}
	}
	return n
}

// Stall freezes the connections of the sessions that match, those to come
// included: nothing is read and nothing is written, and the clients' time runs
// out. After undo they go on where they were, unless somebody gave up.
func (s *Server) Stall(m Match) (undo func()) { return s.add(&fault{match: m, stall: true, left: -1}) }

// HoldPings lets the pings of the sessions that match go unheard: they are
// neither answered nor do they keep the session alive.
func (s *Server) HoldPings(m Match) (undo func()) {
	m.Path, m.Op = "", 0
	return s.add(&fault{match: m, holdPings: true, left: -1})
}

// CloseBefore closes the connection of the next requests that match, as many
// as times says, in place of carrying them out; negative = all. Pings are
// meant only if Op says so.
func (s *Server) CloseBefore(m Match, times int) (undo func()) {
	return s.add(&fault{match: m, closeBefore: true, left: times})
}

// DropReplies carries out the next requests that match, as many as times says,
// and closes their connections in place of answering; negative = all. The
// client cannot know the outcome.
func (s *Server) DropReplies(m Match, times int) (undo func()) {
	return s.add(&fault{match: m, dropReply: true, left: times})
}

// DelayReplies holds the replies to requests that match back by d, and with
// them what follows on their connections.
func (s *Server) DelayReplies(m Match, d time.Duration) (undo func()) {
	return s.add(&fault{match: m, replyDelay: d, left: -1})
}

// DelayWatches holds watch events back by d, and with them what follows on
// their connections: a reply never overtakes an event. Op is ignored.
func (s *Server) DelayWatches(m Match, d time.Duration) (undo func()) {
	return s.add(&fault{match: m, watchDelay: d, left: -1})
}

// RefuseConnections closes every new connection at once.
func (s *Server) RefuseConnections() (undo func()) { return s.add(&fault{refuse: true, left: -1}) }
