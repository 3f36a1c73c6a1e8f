package tablet

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// isrProposer is the one task that sends AdjustIsr: all buckets in one request,
// one request at a time, so one proposal outstanding a bucket.
type isrProposer struct {
	cond     host.Cond
	kicked   bool
	patience time.Duration // how long an answer is waited for; grows like a fetcher's
}

func (p *isrProposer) kick() {
	p.kicked = true
	p.cond.Broadcast()
}

func (s *server) adjustISRs(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		s.isr.kicked = false
		m := s.proposals()
		switch {
		case len(m.Buckets) == 0:
			s.awaitKick(ctx)
		case s.adjust(ctx, m):
			pause = 0
		default:
			pause = grown(pause, s.timing.AdjustBackOff)
			_ = s.h.Sleep(ctx, pause/2+s.jitter(pause/2)) // the loop looks at ctx
		}
	}
}

// awaitKick waits until a follower may join, or for half the lag after which one
// must leave.
func (s *server) awaitKick(ctx context.Context) {
	ctx, cancel := s.h.WithTimeout(ctx, s.timing.MaxLag/2)
	defer cancel()
	for !s.isr.kicked {
		if s.isr.cond.Wait(ctx) != nil {
			return
		}
	}
}

// proposals collects what to propose, and widens the maximal ISRs by it before
// the request leaves (rule S3). No park.
func (s *server) proposals() *protocol.AdjustIsr {
	m := &protocol.AdjustIsr{Server: s.cfg.Server, Incarnation: s.incarnation}
	if s.coordinator.Node == "" {
		return m
	}
	now := s.h.Now()
	for _, r := range s.order {
		l := r.lead
		if l == nil {
			continue
		}
		isr := l.wantedISR(now)
		committed := slices.Sorted(slices.Values(r.lai.ISR))
		if slices.Equal(isr, committed) && slices.Equal(l.maximal, committed) {
			continue
		}
		// A proposal that was not accepted is given up by getting another accepted,
		// be it the committed ISR itself.
		l.propose(isr)
		m.Buckets = append(m.Buckets, protocol.IsrProposal{
			Bucket: r.id, LeaderEpoch: l.epoch, BucketEpoch: r.lai.BucketEpoch,
			CoordinatorEpoch: r.lai.CoordinatorEpoch, NewISR: isr,
		})
	}
	return m
}

// wantedISR is the ISR as it should be: of the committed one those that keep up,
// and those who may join. Sorted.
func (l *leadership) wantedISR(now time.Duration) []int {
	lag := l.r.s.timing.MaxLag
	isr := []int{l.r.s.cfg.Server}
	for _, f := range l.followers {
		if slices.Contains(l.r.lai.ISR, f.server) {
			if now-f.caughtUp <= lag {
				isr = append(isr, f.server)
			}
		} else if l.mayJoin(f) && now-f.lastFetch <= lag && now >= f.barredUntil {
			isr = append(isr, f.server)
		}
	}
	slices.Sort(isr)
	return isr
}

// mayJoin is rule S5: the follower's reconciled, synced end, as reported at this
// leader epoch, has reached both the high watermark and the epoch start. The
// high watermark alone is not enough: a new leader's may lie below what an
// earlier one acknowledged (KAFKA-7128).
func (l *leadership) mayJoin(f *follower) bool {
	need := l.r.hw
	if l.r.s.policy.JoinAtEpochStart {
		need = max(need, l.start)
	}
	return f.heard && f.end >= need && l.r.s.meta.alive(f.server)
}

// adjust sends the proposals and takes in the answers; it reports whether all
// were accepted (p).
func (s *server) adjust(ctx context.Context, m *protocol.AdjustIsr) bool {
	began := s.h.Now()
	call, cancel := s.h.WithTimeout(ctx, s.isr.patience)
	answer, err := s.h.Call(call, s.coordinator.Node, m)
	cancel()
	if took := s.h.Now() - began; err == nil || took >= s.isr.patience {
		s.isr.patience = min(max(2*took, s.timing.AdjustTimeout), maxPatience*s.timing.AdjustTimeout)
	}
	reply, ok := answer.(*protocol.AdjustIsrReply)
	if err != nil || !ok || reply.Code != protocol.CodeNone {
		s.log.Debug("isr not adjusted", zap.Error(err))
		for i := range m.Buckets {
			s.adjusted(&m.Buckets[i], protocol.IsrResult{Code: protocol.CodeNetwork})
		}
		return false
	}
	accepted := true
	results := map[string]protocol.IsrResult{}
	for _, result := range reply.Buckets {
		results[string(result.Bucket)] = result
	}
	for i := range m.Buckets {
		result, found := results[string(m.Buckets[i].Bucket)]
		if !found {
			result.Code = protocol.CodeNotAttempted
		}
		accepted = s.adjusted(&m.Buckets[i], result) && accepted
	}
	return accepted
}

// adjusted takes in the answer to one proposal. Refused, timed out or lost, it
// stays in the maximal ISR: someone may have it accepted, or has. No park.
func (s *server) adjusted(p *protocol.IsrProposal, result protocol.IsrResult) bool {
	r := s.replicas[p.Bucket]
	if r == nil || r.lead == nil || r.lead.epoch != p.LeaderEpoch {
		return true // its answer concerns nobody
	}
	l := r.lead
	if result.LAI.LeaderEpoch == l.epoch && result.LAI.BucketEpoch > r.lai.BucketEpoch {
		l.adopt(result.LAI)
	}
	if result.Code == protocol.CodeNone {
		return true
	}
	if result.Code == protocol.CodeIneligibleReplica {
		until := s.h.Now() + s.timing.MaxLag
		for _, f := range l.followers {
			if slices.Contains(p.NewISR, f.server) && !slices.Contains(r.lai.ISR, f.server) {
				f.barredUntil = until
			}
		}
	}
	if !s.policy.MaximalISR && r.lai.BucketEpoch == p.BucketEpoch {
		l.setMaximal(r.lai.ISR) // what Kafka and Fluss do: a refusal reverts
		l.advance()
		l.confirmReads()
	}
	return false
}
