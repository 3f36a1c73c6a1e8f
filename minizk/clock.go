package minizk

import (
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// clock is the server's time: it follows the monotonic clock, never goes back,
// and can be moved forward.
type clock struct {
	start   time.Time
	skipped time.Duration
}

// millis is the time in milliseconds since 1970.
func (c *clock) millis() int64 {
	return c.start.UnixMilli() + (time.Since(c.start) + c.skipped).Milliseconds()
}

// SkipTime moves the server's clock forward by d and returns when all sessions
// have ended whose time-out is over by that: also those of clients that are
// connected but have not had the time to say anything. Containers and TTL
// nodes are swept too.
func (s *Server) SkipTime(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d <= 0 || s.closed {
		return
	}
	s.clock.skipped += d
	s.expire()
	s.sweep()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// track ends sessions at their time, and sweeps.
func (s *Server) track() {
	sweep := time.NewTicker(s.cfg.SweepEvery)
	defer sweep.Stop()
	timer := time.NewTimer(s.untilTick())
	defer timer.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-s.wake:
		case <-timer.C:
			s.mu.Lock()
			s.expire()
			s.mu.Unlock()
		case <-sweep.C:
			s.mu.Lock()
			s.sweep()
			s.mu.Unlock()
		}
		timer.Reset(s.untilTick())
	}
}

// untilTick is the time to the next tick: sessions end at ticks only.
func (s *Server) untilTick() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	tick := s.cfg.Tick.Milliseconds()
	return time.Duration(tick-s.clock.millis()%tick) * time.Millisecond
}

// expire ends the sessions whose time is up. S.mu is held.
func (s *Server) expire() {
	if s.listener == nil {
		return // time stands still for sessions while the server is down
	}
	for _, e := range s.tree.Expire(s.clock.millis()) {
		s.log.Debug("session expired", zap.Int64("session", e.Session))
		s.ended(e)
	}
}

// ended tells of a session that the server has ended. S.mu is held.
func (s *Server) ended(e tree.Ended) {
	s.keep(tree.Entry{Kind: tree.EntryClose, Now: e.Txn.Time, Session: e.Session, Zxid: e.Txn.Zxid})
	s.deliver(e.Events, nil)
	if c := s.conns[e.Conn]; c != nil {
		s.tree.Disconnect(e.Conn)
		c.closeAfter()
	}
}

// sweep removes containers and TTL nodes. S.mu is held.
func (s *Server) sweep() {
	if s.listener == nil {
		return
	}
	for _, e := range s.tree.Sweep(s.clock.millis()) {
		s.keep(tree.Entry{Kind: tree.EntrySweep, Now: e.Txn.Time, Path: e.Path, Zxid: e.Txn.Zxid})
		s.deliver(e.Events, nil)
	}
}
