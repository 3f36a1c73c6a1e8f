package tablet

import (
	"context"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// peer is another server as a fetcher of ours. Its fetches are parked here and
// woken by appends, by waiting reads' tokens and, a little later, by moves of the
// high watermark.
type peer struct {
	s      *server
	cond   host.Cond
	parked int
	fetch  int64 // counts its fetches: a newer one dismisses those parked before
	hwNews bool  // a task will wake it for the high watermark
	hwDue  bool
}

func (s *server) peerOf(server int) *peer {
	p := s.peers[server]
	if p == nil {
		p = &peer{s: s, cond: s.h.NewCond()}
		s.peers[server] = p
	}
	return p
}

func (p *peer) wake() {
	if p.parked > 0 {
		p.cond.Broadcast()
	}
}

// hwMoved wakes the peer soon: news of the high watermark mostly travels with
// records, and alone it would double the fetches of a quiet bucket.
func (p *peer) hwMoved() {
	if p.hwNews || p.parked == 0 {
		return
	}
	p.hwNews = true
	p.s.h.Go(p.s.ctx, "hw news", func(ctx context.Context) {
		err := p.s.h.Sleep(ctx, p.s.timing.HWDelay)
		p.hwNews, p.hwDue = false, err == nil
		p.wake()
	})
}

// fetchForFollower answers a follower's fetch: at once if there is anything to
// say, else when there is, or after the wait that it allows.
func (s *server) fetchForFollower(ctx context.Context, m *protocol.FetchLog) *protocol.FetchLogReply {
	p := s.peerOf(m.Follower)
	p.fetch++
	this := p.fetch
	p.wake()
	for i := range m.Buckets {
		s.hear(m, &m.Buckets[i])
	}
	reply := &protocol.FetchLogReply{}
	if s.gather(m, reply, false, false) || m.MaxWaitMillis <= 0 {
		return reply
	}
	ctx, cancel := s.h.WithTimeout(ctx, time.Duration(m.MaxWaitMillis)*time.Millisecond)
	defer cancel()
	for {
		p.parked++
		if s.hwNewsFor(m) {
			p.hwMoved()
		}
		err := p.cond.Wait(ctx)
		p.parked--
		if this != p.fetch {
			return reply // a newer fetch speaks for the follower
		}
		s.hearEarly(m)
		if err != nil {
			s.gather(m, reply, true, true)
			return reply
		}
		due := p.hwDue
		p.hwDue = false
		if s.gather(m, reply, due, false) {
			return reply
		}
	}
}

// hear takes in what a fetch proves: that the follower is at this leader epoch,
// which token it has seen, and, if its log is reconciled, its synced end.
func (s *server) hear(m *protocol.FetchLog, b *protocol.FetchBucket) {
	r := s.replicas[b.Bucket]
	if r == nil || r.lead == nil || r.lead.epoch != b.LeaderEpoch {
		return
	}
	l := r.lead
	f := l.followerOf(m.Follower)
	if f == nil || (f.heard && m.Incarnation < f.incarnation) {
		return // not a replica, or a former life of it
	}
	l.hearToken(f, b.Token)
	if _, _, diverging := r.diverges(b); diverging {
		return
	}
	now := s.h.Now()
	if f.heard && m.Incarnation == f.incarnation {
		f.end = max(f.end, b.Offset) // fetches may overtake each other
	} else {
		f.end = b.Offset
	}
	f.heard, f.incarnation = true, m.Incarnation
	switch {
	case b.Offset >= r.records.end:
		f.caughtUp = now
	case b.Offset >= f.lastEnd:
		f.caughtUp = max(f.caughtUp, f.lastFetch)
	}
	f.lastFetch, f.lastEnd = now, r.records.end
	l.advance()
	if !l.over && !l.inMaximal(f.server) && l.mayJoin(f) {
		s.isr.kick()
	}
}

// hearEarly takes in what a parked fetch proves for leaderships that began after
// it came: followers are often told of a leader before it is. What it says was
// true when it was sent, at that very leader epoch.
func (s *server) hearEarly(m *protocol.FetchLog) {
	for i := range m.Buckets {
		if r := s.replicas[m.Buckets[i].Bucket]; r != nil && r.lead != nil && r.lead.epoch == m.Buckets[i].LeaderEpoch {
			if f := r.lead.followerOf(m.Follower); f != nil && !f.heard {
				s.hear(m, &m.Buckets[i])
			}
		}
	}
}

// hearToken takes in the echo of a token (rule S7). It proves something only if
// it names this leadership: an echo of a former life's counter does not, and the
// mere arrival of a fetch does not.
func (l *leadership) hearToken(f *follower, t protocol.ReadToken) {
	policy := &l.r.s.policy
	mine := t.LeaderEpoch == l.epoch && t.Incarnation == l.incarnation
	if !policy.EchoConfirms {
		t.Round, mine = l.round, true
	}
	if (mine || !policy.TokenNamesLeadership) && t.Round > f.echo {
		f.echo = t.Round
		l.confirmReads()
	}
}

// diverges compares the follower's last record with this log (rule S8).
func (r *replica) diverges(b *protocol.FetchBucket) (epoch int, end int64, diverging bool) {
	if !r.s.policy.TruncateByEpoch {
		return 0, 0, false
	}
	if b.LastEpoch < 0 {
		return -1, 0, b.Offset != 0
	}
	epoch, end = r.records.epochEnd(b.LastEpoch)
	return epoch, end, epoch != b.LastEpoch || b.Offset > end
}

// gather fills in the reply what there is to say, and reports whether it should
// be sent now: if something is urgent, or on demand if there is anything at all.
// All includes buckets without news, so that a follower whose reply was lost
// learns the high watermark in the end.
func (s *server) gather(m *protocol.FetchLog, reply *protocol.FetchLogReply, demand, all bool) bool {
	reply.Buckets = reply.Buckets[:0]
	send := all
	for i := range m.Buckets {
		if out, urgent, some := s.tell(m.Follower, &m.Buckets[i]); some || all {
			send = send || urgent || demand
			reply.Buckets = append(reply.Buckets, out)
		}
	}
	if !send {
		reply.Buckets = reply.Buckets[:0]
		return false
	}
	s.markSent(m, reply, all)
	return true
}

// markSent remembers what has left: a token that has left cannot serve reads
// that come later.
func (s *server) markSent(m *protocol.FetchLog, reply *protocol.FetchLogReply, idle bool) {
	for i := range reply.Buckets {
		b := &reply.Buckets[i]
		r := s.replicas[b.Bucket]
		if b.Code != protocol.CodeNone || r == nil || r.lead == nil {
			continue
		}
		r.lead.roundSent = true
		if f := r.lead.followerOf(m.Follower); f != nil && !b.Diverging {
			f.hwSent = b.HW
			r.lead.sign(f, b, idle)
		}
	}
}

// tell is one bucket's answer; urgent says that the follower should hear it now,
// some that there is something new at all.
func (s *server) tell(server int, b *protocol.FetchBucket) (out protocol.FetchedBucket, urgent, some bool) {
	out = protocol.FetchedBucket{Bucket: b.Bucket, LeaderEpoch: unknownEpoch}
	r := s.replicas[b.Bucket]
	if r == nil {
		out.Code = protocol.CodeUnknownTableOrBucket
		return out, false, true // it may be told of the bucket any moment
	}
	out.LeaderEpoch = r.leaderEpoch
	l := r.lead
	switch {
	case b.LeaderEpoch > r.leaderEpoch:
		out.Code = protocol.CodeNotLeaderOrFollower
		return out, false, true // and of its role
	case l == nil:
		out.Code = protocol.CodeNotLeaderOrFollower
		return out, true, true
	case b.LeaderEpoch < l.epoch:
		out.Code = protocol.CodeFencedLeaderEpoch
		return out, true, true
	}
	f := l.followerOf(server)
	if f == nil {
		out.Code = protocol.CodeNotLeaderOrFollower
		return out, true, true
	}
	out.HW, out.LogEnd = r.hw, r.records.end
	out.Token = protocol.ReadToken{LeaderEpoch: l.epoch, Incarnation: l.incarnation, Round: l.round}
	if epoch, end, diverging := r.diverges(b); diverging {
		out.Diverging, out.DivergingEpoch, out.DivergingEnd = true, epoch, end
		return out, true, true
	}
	if b.Offset > r.records.end {
		out.Code = protocol.CodeOffsetOutOfRange // only where epochs are not compared
		return out, true, true
	}
	if b.Offset < r.records.end {
		out.Records = r.records.slice(b.Offset, r.records.wholeBatches(b.Offset, b.MaxRecords))
		return out, true, true
	}
	asked := len(l.reads) > 0 && l.reads[len(l.reads)-1].mark > f.echo
	return out, asked, asked || r.hw > f.hwSent
}

// hwNewsFor reports whether the follower has not been told of a high watermark.
func (s *server) hwNewsFor(m *protocol.FetchLog) bool {
	for i := range m.Buckets {
		r := s.replicas[m.Buckets[i].Bucket]
		if r == nil || r.lead == nil {
			continue
		}
		if f := r.lead.followerOf(m.Follower); f != nil && r.hw > f.hwSent {
			return true
		}
	}
	return false
}
