package tablet

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// lookup reads rows at the high watermark, once it is sure that no newer leader
// had acknowledged anything when the request came.
func (s *server) lookup(ctx context.Context, m *protocol.Lookup) *protocol.LookupReply {
	q := request{m.Client, m.Process, protocol.APILookup, m.Bucket, m.LeaderEpoch}
	deadline := s.deadline(m.TimeoutMillis)
	l, code := s.leading(ctx, &q, deadline, true)
	if code == protocol.CodeNone {
		if code = s.confirm(ctx, l, deadline); code.Refusal() {
			s.refuse(&q, code)
		}
	}
	reply := &protocol.LookupReply{Code: code, LeaderEpoch: s.epochOf(m.Bucket)}
	if code != protocol.CodeNone {
		return reply
	}
	if l.table == nil {
		reply.Code = protocol.CodeInvalidTable
		return reply
	}
	reply.LeaderEpoch = l.epoch
	reply.Values = make([][]byte, len(m.Keys))
	for i, key := range m.Keys {
		reply.Values[i] = l.table.committed[key]
	}
	return reply
}

// confirm waits until every member of the maximal ISR has echoed a token that did
// not exist when the read came (p). Then all of them were below any higher leader
// epoch after the read came; the next leader is one of them, so nothing had been
// acknowledged at a higher epoch before (rule S7). A maximal ISR of this server
// alone confirms at once for the same reason: the next leader can only be this
// server, and it is still at this epoch. One round serves all reads that came
// before its token left.
func (s *server) confirm(ctx context.Context, l *leadership, deadline time.Duration) protocol.Code {
	if l.over {
		return protocol.CodeNotLeaderOrFollower
	}
	if !s.policy.ConfirmReads || len(l.readers) == 0 {
		return protocol.CodeNone
	}
	if l.round == 0 || l.roundSent {
		l.round++
		l.roundSent = false
	}
	w := &waiter{mark: l.round, deadline: deadline, cond: s.h.NewCond()}
	l.reads = append(l.reads, w)
	l.confirmReads() // nobody can have echoed the token yet, unless bare counters are compared
	for _, f := range l.readers {
		f.peer.wake()
	}
	return s.wait(ctx, w)
}

// confirmReads answers the reads whose token every reader has echoed. No park.
func (l *leadership) confirmReads() {
	if len(l.reads) == 0 {
		return
	}
	echoed := l.round
	for _, f := range l.readers {
		echoed = min(echoed, f.echo)
	}
	n := 0
	for n < len(l.reads) && l.reads[n].mark <= echoed {
		l.reads[n].finish(protocol.CodeNone)
		n++
	}
	l.reads = slices.Delete(l.reads, 0, n)
}

// listOffsets answers with the high watermark, confirmed like a read, or with
// the log's start.
func (s *server) listOffsets(ctx context.Context, m *protocol.ListOffsets) *protocol.ListOffsetsReply {
	q := request{m.Client, -1, protocol.APIListOffsets, m.Bucket, unknownEpoch}
	deadline := s.deadline(0)
	l, code := s.leading(ctx, &q, deadline, true)
	if code == protocol.CodeNone && m.Latest {
		if code = s.confirm(ctx, l, deadline); code.Refusal() {
			s.refuse(&q, code)
		}
	}
	reply := &protocol.ListOffsetsReply{Code: code}
	if code == protocol.CodeNone && m.Latest {
		reply.Offset = l.r.hw
	}
	return reply
}

// fetchForClient reads committed records of one or more buckets. Each bucket is
// confirmed like a lookup, so that the high watermark in the reply is not older
// than the request. It waits as long as the request allows for MinRecords.
func (s *server) fetchForClient(ctx context.Context, m *protocol.FetchLog) *protocol.FetchLogReply {
	wait := time.Duration(m.MaxWaitMillis) * time.Millisecond
	deadline := s.h.Now() + wait + s.timing.ReadWait
	reply := &protocol.FetchLogReply{Buckets: make([]protocol.FetchedBucket, len(m.Buckets))}
	leads := make([]*leadership, len(m.Buckets))
	for i := range m.Buckets {
		b := &m.Buckets[i]
		q := request{m.Client, m.Process, protocol.APIFetchLog, b.Bucket, b.LeaderEpoch}
		l, code := s.leading(ctx, &q, deadline, true)
		if code == protocol.CodeNone {
			if code = s.confirm(ctx, l, deadline); code.Refusal() {
				s.refuse(&q, code)
			}
		}
		reply.Buckets[i] = protocol.FetchedBucket{Bucket: b.Bucket, Code: code, LeaderEpoch: s.epochOf(b.Bucket)}
		leads[i] = l
	}
	s.awaitRecords(ctx, m, reply, leads, wait)
	for i := range m.Buckets {
		leads[i].fetched(&m.Buckets[i], &reply.Buckets[i])
	}
	return reply
}

// awaitRecords parks until enough is committed, an error is to be told, or the
// wait is over (p).
func (s *server) awaitRecords(
	ctx context.Context, m *protocol.FetchLog, reply *protocol.FetchLogReply, leads []*leadership, wait time.Duration,
) {
	if wait <= 0 || m.MinRecords <= 0 {
		return
	}
	deadline := s.h.Now() + wait
	for {
		available := int64(0)
		var parked *leadership
		for i, l := range leads {
			if reply.Buckets[i].Code != protocol.CodeNone || l.over {
				return
			}
			available += max(0, l.r.hw-m.Buckets[i].Offset)
			if parked == nil {
				parked = l
			}
		}
		if parked == nil || available >= int64(m.MinRecords) || s.h.Now() >= deadline {
			return
		}
		if len(leads) > 1 { // rare: one wait cannot watch several buckets
			if s.h.Sleep(ctx, min(s.timing.Expiry, deadline-s.h.Now())) != nil {
				return
			}
			continue
		}
		w := &waiter{mark: parked.r.hw + 1, deadline: deadline, cond: s.h.NewCond()}
		parked.writes = slices.Insert(parked.writes, parked.place(w.mark), w)
		if s.wait(ctx, w) != protocol.CodeNone {
			return
		}
	}
}

// place is where a waiter for mark belongs among the writes.
func (l *leadership) place(mark int64) int {
	at := len(l.writes)
	for at > 0 && l.writes[at-1].mark > mark {
		at--
	}
	return at
}

// fetched fills in one bucket's committed records.
func (l *leadership) fetched(b *protocol.FetchBucket, out *protocol.FetchedBucket) {
	if out.Code != protocol.CodeNone {
		return
	}
	r := l.r
	out.LeaderEpoch, out.HW, out.LogEnd = l.epoch, r.hw, r.hw
	if b.Offset < 0 || b.Offset > r.records.end {
		out.Code = protocol.CodeOffsetOutOfRange
		return
	}
	to := r.hw
	if b.MaxRecords > 0 {
		to = min(to, b.Offset+int64(b.MaxRecords))
	}
	out.Records = r.records.slice(b.Offset, to)
}
