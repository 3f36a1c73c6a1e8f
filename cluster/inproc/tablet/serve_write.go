package tablet

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// putKv upserts rows: the changelog first, the table through it.
func (s *server) putKv(ctx context.Context, m *protocol.PutKv) *protocol.WriteReply {
	w := write{
		bucket: request{m.Client, m.Process, protocol.APIPutKv, m.Bucket, m.LeaderEpoch}, writer: m.Writer, seq: m.Seq,
		acks: m.Acks, deadline: s.deadline(m.TimeoutMillis),
	}
	return s.write(ctx, w, func(l *leadership) ([]protocol.LogRecord, protocol.Code) {
		if l.table == nil {
			return nil, protocol.CodeInvalidTable
		}
		return l.table.changes(m.Rows), protocol.CodeNone
	})
}

// produceLog appends a batch to a log table.
func (s *server) produceLog(ctx context.Context, m *protocol.ProduceLog) *protocol.WriteReply {
	w := write{
		bucket: request{m.Client, m.Process, protocol.APIProduceLog, m.Bucket, m.LeaderEpoch}, writer: m.Writer, seq: m.Seq,
		acks: m.Acks, deadline: s.deadline(m.TimeoutMillis),
	}
	return s.write(ctx, w, func(l *leadership) ([]protocol.LogRecord, protocol.Code) {
		if l.r.isKV() {
			return nil, protocol.CodeInvalidTable
		}
		batch := make([]protocol.LogRecord, len(m.Records))
		for i, value := range m.Records {
			batch[i] = protocol.LogRecord{Change: protocol.ChangeAppend, Value: value}
		}
		return batch, protocol.CodeNone
	})
}

// write is what the two kinds of writes have in common.
type write struct {
	bucket   request
	writer   int64
	seq      int
	acks     protocol.Acks
	deadline time.Duration
}

// write checks the leadership and the sequence, appends what records makes, and
// waits as far as the acks ask for.
func (s *server) write(
	ctx context.Context, w write, records func(*leadership) ([]protocol.LogRecord, protocol.Code),
) *protocol.WriteReply {
	l, code := s.leading(ctx, &w.bucket, w.deadline, false)
	if code != protocol.CodeNone {
		return &protocol.WriteReply{Code: code, LeaderEpoch: s.epochOf(w.bucket.id)}
	}
	r := l.r
	reply := &protocol.WriteReply{LeaderEpoch: l.epoch}
	// No park from here to the append: what is checked holds when it is appended.
	what, ref := r.writers.judge(w.writer, w.seq)
	switch what {
	case outOfOrder:
		reply.Code = protocol.CodeOutOfOrderSequence
		return reply
	case forgotten:
		reply.Code = protocol.CodeDuplicateSequence
		return reply
	case duplicate:
		reply.Base = ref.base
		if s.policy.DuplicateWaits { // as the original does (rule S10)
			reply.Code = s.acknowledge(ctx, l, ref.end, w)
		}
		return reply
	case fresh:
	}
	if w.acks == protocol.AcksAll && l.tooFew() {
		reply.Code = protocol.CodeNotEnoughReplicas
		return reply
	}
	batch, code := records(l)
	if code != protocol.CodeNone || len(batch) == 0 {
		reply.Code = code
		return reply
	}
	base, end := r.append(l.epoch, w.writer, w.seq, batch)
	if l.table != nil {
		for offset := base; offset < end; offset++ {
			l.table.stage(r.records.at(offset))
		}
	}
	if !s.policy.CountSyncedOnly {
		l.advance()
	}
	for _, f := range l.followers {
		f.peer.wake()
	}
	reply.Base = base
	reply.Code = s.acknowledge(ctx, l, end, w)
	return reply
}

// acknowledge waits until the high watermark has passed end, if the write asks
// for that (p).
func (s *server) acknowledge(ctx context.Context, l *leadership, end int64, w write) protocol.Code {
	if w.acks != protocol.AcksAll || l.r.hw >= end {
		return protocol.CodeNone
	}
	waiting := &waiter{mark: end, deadline: w.deadline, cond: s.h.NewCond()}
	l.writes = slices.Insert(l.writes, l.place(end), waiting) // a duplicate's end lies behind
	return s.wait(ctx, waiting)
}

// wait parks until the waiter is answered (p). Its deadline is kept by the sweep.
func (s *server) wait(ctx context.Context, w *waiter) protocol.Code {
	s.sweepDeadlines()
	for !w.done {
		if w.cond.Wait(ctx) != nil {
			return protocol.CodeRequestTimedOut
		}
	}
	return w.code
}

// sweepDeadlines starts the task that answers requests whose time is up. One
// task for all, because a timer for every request costs a tenth of the
// processor.
func (s *server) sweepDeadlines() {
	if s.sweeping {
		return
	}
	s.sweeping = true
	s.h.Go(s.ctx, "deadlines", func(ctx context.Context) {
		for waiting := true; waiting; {
			if s.h.Sleep(ctx, s.timing.Expiry) != nil {
				return
			}
			waiting = s.sweep(s.h.Now())
		}
		s.sweeping = false
	})
}

// sweep answers what is overdue and reports whether anyone still waits.
func (s *server) sweep(now time.Duration) bool {
	waiting := false
	overdue := func(w *waiter) bool {
		if w.deadline <= now {
			w.finish(protocol.CodeRequestTimedOut) // unknown: the record stays in the log
			return true
		}
		waiting = true
		return false
	}
	for _, r := range s.order {
		if l := r.lead; l != nil {
			l.writes = slices.DeleteFunc(l.writes, overdue)
			l.reads = slices.DeleteFunc(l.reads, overdue)
		}
	}
	return waiting
}

// deadline is when a request with this time-out must be answered.
func (s *server) deadline(millis int) time.Duration {
	d := time.Duration(millis) * time.Millisecond
	if d <= 0 {
		d = s.timing.ReadWait
	}
	return s.h.Now() + d
}
