package tablet

import (
	"context"
	"slices"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// probe tells an observer what this server holds and would answer, without side
// effects or refusals.
func (s *server) probe() *protocol.ProbeReply {
	reply := &protocol.ProbeReply{
		Server: s.cfg.Server, Incarnation: s.incarnation, Registered: s.registered, Metadata: s.meta.all(),
	}
	for _, r := range s.order {
		state := protocol.ReplicaState{
			Bucket: r.id, Leader: r.leader, LeaderEpoch: r.leaderEpoch, BucketEpoch: r.lai.BucketEpoch,
			Admitted: r.lead != nil && r.lead.admitted, ISR: slices.Clone(r.lai.ISR),
			HW: r.hw, LogEnd: r.records.end, Digest: r.digest.at(&r.records, r.hw),
		}
		reply.Replicas = append(reply.Replicas, state)
	}
	return reply
}

// reportHWsLater starts the task that reports the moves of high watermarks which
// came too soon after a report.
func (s *server) reportHWsLater() {
	if s.hwReporting {
		return
	}
	s.hwReporting = true
	s.h.Go(s.ctx, "report high watermarks", func(ctx context.Context) {
		err := s.h.Sleep(ctx, s.timing.HWEvents)
		s.hwReporting = false
		if err != nil {
			return
		}
		for _, r := range s.order {
			r.reportHW(false)
		}
	})
}
