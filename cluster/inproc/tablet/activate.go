package tablet

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// activateAll restores tables, one after the other, as the real system does
// inside NotifyLeaderAndIsr; but here the control queue does not wait for it. The
// bucket in restore blocks its callers, those behind it refuse.
func (s *server) activateAll(ctx context.Context) {
	for {
		l, err := s.activation.Take(ctx)
		if err != nil {
			return
		}
		if !l.over && l.stage == queued {
			s.restore(ctx, l)
		}
	}
}

// restore rebuilds one table: the newest snapshot, and the changelog from there
// on. Its length has a part that the harness sets; a leadership that ends
// meanwhile is not restored to the end.
func (s *server) restore(ctx context.Context, l *leadership) {
	r := l.r
	l.stage = restoring
	l.changed.Broadcast()
	event := history.Recovery{Server: s.cfg.Server, Bucket: string(r.id), What: "kv", State: history.StateStart, Bytes: r.file.size}
	s.observe(event)
	snap, err := s.readSnapshot(ctx, r)
	replay := r.records.end
	if snap != nil {
		replay -= snap.offset
	}
	s.spend(ctx, l, s.cfg.Knobs.PerBucket.Get()+time.Duration(replay)*s.cfg.Knobs.PerRecord.Get())
	event.State, event.Bytes = history.StateEnd, r.file.size
	switch {
	case l.over:
	case err == nil && !r.file.stuck:
		l.restoredNow(rebuild(&r.records, r.hw, snap))
	case s.policy.FailedRestoreFails:
		// A disk that refuses cannot be led on.
		s.log.Info("restore failed", zap.String("bucket", string(r.id)), zap.Error(err))
		l.stage = failed
		r.role(history.RoleFailed, l.incarnation)
		l.changed.Broadcast()
	default:
		// What Fluss does after its fifth try: it goes on with the store that it has.
		l.restoredNow(rebuild(&r.records, r.hw, &snapshot{offset: r.hw, rows: map[string][]byte{}}))
	}
	s.observe(event)
}

// spend lets the time of a restore pass.
func (s *server) spend(ctx context.Context, l *leadership, cost time.Duration) {
	if cost <= 0 {
		return
	}
	ctx, cancel := s.h.WithTimeout(ctx, cost)
	defer cancel()
	for !l.over {
		if l.changed.Wait(ctx) != nil {
			return
		}
	}
}

// restoredNow begins to take writes, and reads if everything inherited is
// committed. No park.
func (l *leadership) restoredNow(t *table) {
	l.table, l.stage = t, restored
	l.changed.Broadcast()
	l.admitIfReady()
}

// status is how far the role is that a notification names.
func (s *server) status(b *protocol.BucketState) protocol.BucketResult {
	result := protocol.BucketResult{
		Bucket: b.Bucket, LeaderEpoch: b.LAI.LeaderEpoch, Incarnation: s.incarnation, Status: protocol.NotifySuccess,
	}
	r := s.replicas[b.Bucket]
	switch {
	case r == nil:
		result.Status, result.Code = protocol.NotifyFailed, protocol.CodeUnknownTableOrBucket
	case r.leaderEpoch != b.LAI.LeaderEpoch:
		result.Status, result.Code = protocol.NotifyFailed, protocol.CodeFencedLeaderEpoch
	case b.LAI.Leader != s.cfg.Server:
	case r.lead == nil:
		result.Status, result.Code = protocol.NotifyFailed, protocol.CodeFencedLeaderEpoch
	case r.lead.stage == failed:
		result.Status, result.Code = protocol.NotifyFailed, protocol.CodeStorage
	case !r.lead.admitted:
		result.Status = protocol.NotifyInProgress
	}
	return result
}
