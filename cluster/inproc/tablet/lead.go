package tablet

import (
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// stage is how far an activation is.
type stage uint8

// queued ──▶ restoring ──▶ restored ──▶ (admitted, once HW ≥ epoch start)
// refuses    blocks        takes writes; reads wait
const (
	queued stage = iota
	restoring
	restored
	failed
)

// leadership is one leader epoch of one replica in one incarnation.
type leadership struct {
	r           *replica
	epoch       int
	incarnation int64
	start       int64 // the log's end at the election (rule S6)
	stage       stage
	admitted    bool
	over        bool
	changed     host.Cond // stage, admitted, over

	followers []*follower // every other replica, sorted by server
	// maximal is the newest known ISR united with every ISR proposed at its
	// bucket epoch (rule S3), sorted; members and readers are its followers.
	maximal []int
	members []*follower
	readers []*follower // whose echoes confirm reads

	table *table // nil for log tables and before the restore

	// Reads that wait for the echo of a token, in the order of rounds.
	round     int64
	roundSent bool // the newest token has left in a reply
	reads     []*waiter
	writes    []*waiter // in the order of ends
}

// follower is what a leader knows of one, at this leader epoch.
type follower struct {
	server      int
	peer        *peer
	incarnation int64
	heard       bool  // a fetch at this leader epoch has been reconciled
	end         int64 // its synced end, as reported by such a fetch
	echo        int64 // the newest round that it has echoed
	hwSent      int64 // the high watermark last sent to it
	digestSent  int64 // and the offset of the digest last sent
	caughtUp    time.Duration
	lastFetch   time.Duration
	lastEnd     int64 // the leader's end at that fetch
	barredUntil time.Duration
}

// waiter is a request that waits for the high watermark or for a round.
type waiter struct {
	mark     int64
	deadline time.Duration
	cond     host.Cond
	done     bool
	code     protocol.Code
}

func (w *waiter) finish(code protocol.Code) {
	w.done, w.code = true, code
	w.cond.Broadcast()
}

// takeLead makes the replica a leader and puts its table's restore into the
// queue; a log table needs none. The leader epoch is on disk already. No park.
func (r *replica) takeLead(lai protocol.LeaderAndIsr) {
	r.resign()
	s := r.s
	now := s.h.Now()
	r.lai, r.leader = lai, lai.Leader
	l := &leadership{
		r: r, epoch: lai.LeaderEpoch, incarnation: s.incarnation, start: r.records.end, changed: s.h.NewCond(),
	}
	for _, server := range r.replicas {
		if server != s.cfg.Server {
			l.followers = append(l.followers, &follower{
				server: server, peer: s.peerOf(server), caughtUp: now, hwSent: -1,
			})
		}
	}
	slices.SortFunc(l.followers, func(a, b *follower) int { return a.server - b.server })
	if !s.policy.HeardThisEpoch {
		l.trustFormerEnds(r)
	}
	r.lead = l
	l.setMaximal(lai.ISR)
	r.role(history.RoleActivating, l.incarnation)
	s.observe(history.EpochStart{Bucket: string(r.id), Server: s.cfg.Server, LeaderEpoch: l.epoch, Offset: l.start})
	if r.isKV() {
		s.activation.Put(l)
	} else {
		l.restoredNow(nil)
	}
	l.advance()
	s.isr.kick()
	for _, f := range l.followers {
		f.peer.wake() // its fetch may have come before
	}
}

// trustFormerEnds is the bug that counts what followers reported to an earlier
// leadership of this process, or may have had: everything.
func (l *leadership) trustFormerEnds(r *replica) {
	for _, f := range l.followers {
		f.heard, f.end = true, r.records.end
	}
}

// setMaximal makes isr the whole of the maximal ISR.
func (l *leadership) setMaximal(isr []int) {
	l.maximal = slices.Clone(isr)
	slices.Sort(l.maximal)
	l.maximal = slices.Compact(l.maximal)
	l.refreshMembers()
}

// propose widens the maximal ISR by a proposal, before it leaves (rule S3).
func (l *leadership) propose(isr []int) {
	l.setMaximal(append(slices.Clone(l.maximal), isr...))
}

func (l *leadership) refreshMembers() {
	l.members, l.readers = l.members[:0], l.readers[:0]
	for _, f := range l.followers {
		_, in := slices.BinarySearch(l.maximal, f.server)
		if in {
			l.members = append(l.members, f)
		}
		if (in && l.r.s.policy.ReadsNeedMaximalISR) || (!l.r.s.policy.ReadsNeedMaximalISR && slices.Contains(l.r.lai.ISR, f.server)) {
			l.readers = append(l.readers, f)
		}
	}
}

// inMaximal reports whether a server is in the maximal ISR.
func (l *leadership) inMaximal(server int) bool {
	_, in := slices.BinarySearch(l.maximal, server)
	return in
}

// tooFew says that writes must be refused and the high watermark stands still.
// The maximal ISR counts: every member of it holds what HW passes.
func (l *leadership) tooFew() bool {
	return l.r.s.policy.HoldBelowMinISR && len(l.maximal) < l.r.minISR()
}

// adopt takes in a LeaderAndIsr of this leader epoch that ZooKeeper is known to
// hold. Only a higher bucket epoch clears the proposals (rule S3). No park.
func (l *leadership) adopt(lai protocol.LeaderAndIsr) {
	if l.over || lai.LeaderEpoch != l.epoch || lai.BucketEpoch <= l.r.lai.BucketEpoch {
		return
	}
	if !slices.Contains(lai.ISR, l.r.s.cfg.Server) {
		l.r.violation("leader-in-isr", fmt.Sprintf("leader %d, isr %v, leader epoch %d", lai.Leader, lai.ISR, lai.LeaderEpoch))
	}
	for _, f := range l.followers {
		if slices.Contains(lai.ISR, f.server) && !slices.Contains(l.r.lai.ISR, f.server) {
			// Who joined at the high watermark may still be behind the end: without a
			// fresh start it would be put out at once, and let in again, for ever.
			f.caughtUp = max(f.caughtUp, l.r.s.h.Now())
		}
	}
	l.r.lai = lai
	l.setMaximal(lai.ISR)
	l.advance()
	l.confirmReads()
}

// advance moves the high watermark to the smallest counted end over the maximal
// ISR, each heard at this leader epoch (rule S4), and does what depends on it.
// No park.
func (l *leadership) advance() {
	r := l.r
	if l.over || l.tooFew() {
		return
	}
	hw := r.counted()
	for _, f := range l.members {
		if !f.heard {
			return
		}
		hw = min(hw, f.end)
	}
	if hw > r.hw {
		r.setHW(hw)
		if l.table != nil {
			l.table.advance(&r.records, hw)
		}
		l.answerWrites()
		for _, f := range l.followers {
			f.peer.hwMoved()
		}
	}
	l.admitIfReady()
}

// answerWrites answers the writes that the high watermark has passed.
func (l *leadership) answerWrites() {
	n := 0
	for n < len(l.writes) && l.writes[n].mark <= l.r.hw {
		l.writes[n].finish(protocol.CodeNone)
		n++
	}
	if n > 0 {
		l.writes = slices.Delete(l.writes, 0, n)
	}
}

// admitIfReady begins to serve once the table is there and everything inherited
// is committed (rule S6). No park.
func (l *leadership) admitIfReady() {
	if l.admitted || l.over || l.stage != restored {
		return
	}
	if l.r.s.policy.ServeAfterEpochStart && l.r.hw < l.start {
		return
	}
	l.admitted = true
	l.r.role(history.RoleAdmitted, l.incarnation)
	l.changed.Broadcast()
}

// end answers everyone who waits: the outcome of a write that is in the log is
// unknown, a read was not done.
func (l *leadership) end() {
	l.over = true
	lost := protocol.CodeLeadershipLostAfterAppend
	if !l.r.s.policy.LostAfterAppendIsUnknown {
		lost = protocol.CodeNotLeaderOrFollower
	}
	for _, w := range l.writes {
		w.finish(lost)
	}
	for _, w := range l.reads {
		w.finish(protocol.CodeNotLeaderOrFollower)
	}
	l.writes, l.reads = nil, nil
	l.changed.Broadcast()
	for _, f := range l.followers {
		f.peer.wake()
	}
}

// followerOf finds a follower by its server id.
func (l *leadership) followerOf(server int) *follower {
	for _, f := range l.followers {
		if f.server == server {
			return f
		}
	}
	return nil
}
