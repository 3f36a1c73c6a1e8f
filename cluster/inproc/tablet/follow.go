package tablet

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// fetchLimit is about how many records of a bucket a follower takes at a time.
const fetchLimit = 4096

// fetcher fetches from one leading server for all buckets that follow it: one
// request at a time, long-polled. A change of roles abandons the request under
// way; its reply, if one comes, counts for nothing (rule S8).
type fetcher struct {
	s       *server
	leader  int
	buckets []*replica // sorted
	cond    host.Cond
	request int64 // names the outstanding request
	done    bool  // it was answered, or failed
	failed  bool
	kicked  bool // roles changed
	skipped bool // a bucket was left out of the request until its log is durable
	pause   time.Duration
	// patience is how long an answer is waited for. It grows with links that turn
	// out slow: a reply that comes too late counts for nothing, so a fixed one
	// would never get anywhere behind a link slower than it.
	patience time.Duration
}

func (s *server) fetcherOf(leader int) *fetcher {
	f := s.fetchers[leader]
	if f == nil {
		f = &fetcher{s: s, leader: leader, cond: s.h.NewCond(), patience: s.timing.FetchTimeout}
		s.fetchers[leader] = f
		s.h.Go(s.ctx, "fetch from "+string(NodeOf(leader)), f.run)
	}
	return f
}

// add takes a replica in, or notices its new leader epoch.
func (f *fetcher) add(r *replica) {
	at, found := slices.BinarySearchFunc(f.buckets, r, func(a, b *replica) int {
		return strings.Compare(string(a.id), string(b.id))
	})
	if !found {
		f.buckets = slices.Insert(f.buckets, at, r)
	}
	f.kicked = true
	f.cond.Broadcast()
}

func (f *fetcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		m, wait := f.build()
		if len(m.Buckets) == 0 {
			f.kicked = false
			f.idle(ctx, wait)
			continue
		}
		f.kicked, f.done, f.failed = false, false, false
		f.request++
		this := f.request
		began := f.s.h.Now()
		f.s.h.Go(ctx, "fetch", func(ctx context.Context) { f.call(ctx, this, m) })
		f.await(ctx)
		f.request++ // from here on a reply is late
		switch {
		case f.done && !f.failed:
			f.pause, f.patience = 0, max(f.s.timing.FetchTimeout, 2*(f.s.h.Now()-began))
			f.awaitSync(ctx, m)
		case f.failed:
			f.backOff(ctx)
		case !f.kicked:
			f.patience = min(2*f.patience, maxPatience*f.s.timing.FetchTimeout)
			f.backOff(ctx)
		}
	}
}

// build makes the request: every bucket that follows this leader, is not backing
// off, and whose log is durable as it is. Wait is the time until a bucket's
// back-off ends, if none is ready before.
func (f *fetcher) build() (*protocol.FetchLog, time.Duration) {
	now, wait := f.s.h.Now(), time.Duration(0)
	f.skipped = false
	m := &protocol.FetchLog{
		Client: string(f.s.h.ID()), Process: -1, Follower: f.s.cfg.Server, Incarnation: f.s.incarnation,
		MaxWaitMillis: int(f.s.timing.FetchWait / time.Millisecond), MinRecords: 1,
	}
	f.buckets = slices.DeleteFunc(f.buckets, func(r *replica) bool { return !f.follows(r) })
	m.Buckets = make([]protocol.FetchBucket, 0, len(f.buckets))
	for _, r := range f.buckets {
		switch {
		case r.fetchAfter > now:
			if left := r.fetchAfter - now; wait == 0 || left < wait {
				wait = left
			}
		case f.s.policy.CountSyncedOnly && !r.file.settled(r):
			f.skipped = true // it cannot report its end yet; the flush wakes this task
		default:
			m.Buckets = append(m.Buckets, protocol.FetchBucket{
				Bucket: r.id, Offset: r.records.end, MaxRecords: fetchLimit,
				LeaderEpoch: r.leaderEpoch, LastEpoch: r.records.lastEpoch(), Token: r.token,
			})
		}
	}
	if wait > 0 && len(m.Buckets) > 0 {
		m.MaxWaitMillis = min(m.MaxWaitMillis, int(wait/time.Millisecond)+1)
	}
	return m, wait
}

func (f *fetcher) follows(r *replica) bool {
	return r.lead == nil && r.leader == f.leader && f.s.replicas[r.id] == r
}

// idle waits for a change of roles, a flush, or the end of the nearest back-off.
func (f *fetcher) idle(ctx context.Context, wait time.Duration) {
	if wait == 0 {
		_ = f.cond.Wait(ctx) // the caller looks at ctx
		return
	}
	ctx, cancel := f.s.h.WithTimeout(ctx, wait)
	defer cancel()
	_ = f.cond.Wait(ctx) // the time-out is what was waited for
}

// await waits for the outstanding request, a change of roles, or the time-out.
func (f *fetcher) await(ctx context.Context) {
	ctx, cancel := f.s.h.WithTimeout(ctx, f.patience)
	defer cancel()
	for !f.done && !f.kicked {
		if f.cond.Wait(ctx) != nil {
			return
		}
	}
}

// awaitSync waits until what the reply brought is durable, but not for a disk
// that refuses.
func (f *fetcher) awaitSync(ctx context.Context, m *protocol.FetchLog) {
	if !f.s.policy.CountSyncedOnly {
		return
	}
	for !f.kicked && f.syncing(m) {
		if f.cond.Wait(ctx) != nil {
			return
		}
	}
}

func (f *fetcher) syncing(m *protocol.FetchLog) bool {
	for i := range m.Buckets {
		r := f.s.replicas[m.Buckets[i].Bucket]
		if r != nil && f.follows(r) && !r.file.settled(r) && !r.file.stuck {
			return true
		}
	}
	return false
}

// backOff pauses after a failed request, longer each time, with jitter.
func (f *fetcher) backOff(ctx context.Context) {
	f.pause = grown(f.pause, f.s.timing.FetchBackOff)
	_ = f.s.h.Sleep(ctx, f.pause/2+f.s.jitter(f.pause/2)) // the caller looks at ctx
}

// jitter is a uniform duration below d.
func (s *server) jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(s.h.Rand().Int64N(int64(d)))
}

// call sends one request and takes in its reply. It may outlive the fetcher's
// patience: then its reply is late, and counts only where that bug is planted.
func (f *fetcher) call(ctx context.Context, this int64, m *protocol.FetchLog) {
	patience := f.patience
	if !f.s.policy.MatchReply {
		patience *= 5
	}
	ctx, cancel := f.s.h.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := f.s.h.Call(ctx, f.s.meta.nodeOf(f.leader), m)
	reply, ok := answer.(*protocol.FetchLogReply)
	current := this == f.request
	if err == nil && ok && (current || !f.s.policy.MatchReply) {
		f.apply(m, reply, current)
	}
	if current {
		f.done, f.failed = true, err != nil || !ok
		f.cond.Broadcast()
	}
}

// apply takes a reply in. It holds for a bucket only if nothing changed since
// the request: same role, same leader epoch, same end.
func (f *fetcher) apply(m *protocol.FetchLog, reply *protocol.FetchLogReply, current bool) {
	next := 0 // answers stand in the order of the request, some left out
	for i := range reply.Buckets {
		b := &reply.Buckets[i]
		for next < len(m.Buckets) && m.Buckets[next].Bucket != b.Bucket {
			next++
		}
		if next == len(m.Buckets) {
			return
		}
		r, request := f.s.replicas[b.Bucket], &m.Buckets[next]
		if r == nil || r.lead != nil || r.leader == protocol.NoLeader {
			continue
		}
		same := current && r.leader == f.leader && r.leaderEpoch == request.LeaderEpoch && r.records.end == request.Offset
		if !same && f.s.policy.MatchReply {
			continue
		}
		r.applyFetched(b)
	}
}

// applyFetched takes in one bucket's answer. No park.
func (r *replica) applyFetched(b *protocol.FetchedBucket) {
	switch b.Code {
	case protocol.CodeNone:
	case protocol.CodeOffsetOutOfRange:
		r.truncate(b.LogEnd) // only where epochs are not compared
		return
	default:
		r.refusedByLeader()
		return
	}
	if b.LeaderEpoch != r.leaderEpoch && r.s.policy.MatchReply {
		return
	}
	r.backOff = 0
	r.takeToken(b.Token)
	if b.Diverging {
		// The smaller of both ends of that epoch (rule S8), then ask again.
		_, own := r.records.epochEnd(b.DivergingEpoch)
		r.truncate(min(own, b.DivergingEnd))
		return
	}
	records := b.Records
	if len(records) > 0 && records[0].Offset != r.records.end {
		// Only a reply that matches no request comes here: it is taken as far as it
		// fits, as an unsuspecting follower would.
		n := slices.IndexFunc(records, func(rec protocol.LogRecord) bool { return rec.Offset == r.records.end })
		if n < 0 {
			records = nil
		} else {
			records = records[n:]
		}
	}
	r.take(records)
	r.followHW(b.HW)
	r.compare(b)
}

// takeToken keeps the newest token of this leadership, for the next fetch to
// echo (rule S7).
func (r *replica) takeToken(t protocol.ReadToken) {
	if !r.s.policy.TokenNamesLeadership {
		if t.Round > r.token.Round {
			r.token = t // the bug compares counters alone
		}
		return
	}
	if t.LeaderEpoch != r.leaderEpoch {
		return
	}
	if t.Incarnation > r.token.Incarnation || (t.Incarnation == r.token.Incarnation && t.Round > r.token.Round) {
		r.token = t
	}
}

// refusedByLeader backs off: the server named as leader says that it is not, or
// not at this epoch.
func (r *replica) refusedByLeader() {
	if !r.s.policy.FetcherBacksOff {
		return
	}
	r.backOff = grown(r.backOff, r.s.timing.FetchBackOff)
	r.fetchAfter = r.s.h.Now() + r.backOff/2 + r.s.jitter(r.backOff/2)
}
