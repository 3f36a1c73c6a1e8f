package coordinator

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// adjustISR answers a leader's proposals (p). All that may be accepted are
// written in one transaction, and answered once ZooKeeper is known to hold them
// (rule S9).
func (t *term) adjustISR(ctx context.Context, m *protocol.AdjustIsr) *protocol.AdjustIsrReply {
	reply := &protocol.AdjustIsrReply{Buckets: make([]protocol.IsrResult, len(m.Buckets))}
	// With the bug a proposal is compared here, when it arrives, and no more when
	// it is written: what happens in between is overwritten.
	var early []laiChange
	if !t.policy.CompareAndSetLAI {
		early = t.judge(m, reply)
	}
	switch t.ask(ctx, "adjust isr", func(ctx context.Context) {
		changes := early
		if t.policy.CompareAndSetLAI {
			changes = t.judge(m, reply)
		}
		t.writeISRs(ctx, changes, reply)
	}) {
	case refused:
		return &protocol.AdjustIsrReply{Code: protocol.CodeNotCoordinatorLeader}
	case uncertain:
		return &protocol.AdjustIsrReply{Code: protocol.CodeUnknownServer}
	default:
		return reply
	}
}

// judge checks proposals against the buckets as they are now. No park.
func (t *term) judge(m *protocol.AdjustIsr, reply *protocol.AdjustIsrReply) []laiChange {
	var changes []laiChange
	for i, p := range m.Buckets {
		result := &reply.Buckets[i]
		result.Bucket = p.Bucket
		b := t.buckets[p.Bucket]
		if b == nil {
			result.Code = protocol.CodeUnknownTableOrBucket
			continue
		}
		result.Code = checkProposal(b, tabletKey{m.Server, m.Incarnation}, p, t.view(), t.policy.CompareAndSetLAI)
		switch result.Code {
		case protocol.CodeNone:
			changes = append(changes, laiChange{b, accepted(b.lai, p, t.epoch)})
		case protocol.CodeInvalidUpdateVersion:
			result.LAI = b.lai.Clone()
		default: // refused
		}
	}
	return changes
}

func (t *term) writeISRs(ctx context.Context, changes []laiChange, reply *protocol.AdjustIsrReply) {
	_, err := t.store(ctx, changes)
	for _, c := range changes {
		at := slices.IndexFunc(reply.Buckets, func(r protocol.IsrResult) bool { return r.Bucket == c.b.id })
		result := &reply.Buckets[at]
		switch {
		case sameLAI(c.b.lai, c.next):
			result.LAI = c.b.lai.Clone() // held, whatever became of the others
		case err != nil:
			result.Code = protocol.CodeUnknownServer
		default:
			result.Code = protocol.CodeInvalidUpdateVersion
			result.LAI = c.b.lai.Clone()
		}
	}
	if err != nil && !t.over {
		t.log.Info("adjust isr", zap.Error(err))
	}
}

// controlledShutdown moves leaders off a server that is about to stop, and takes
// it out of every ISR that has another member (p).
func (t *term) controlledShutdown(ctx context.Context, m *protocol.ControlledShutdown) *protocol.ControlledShutdownReply {
	reply := &protocol.ControlledShutdownReply{}
	switch t.ask(ctx, "controlled shutdown", func(ctx context.Context) {
		if s, ok := t.tablets[m.Server]; !ok || s.incarnation != m.Incarnation {
			reply.Code = protocol.CodeNotAttempted // another life of it is registered, or none
			return
		}
		t.leaving[m.Server] = m.Incarnation
		reply.Remaining = t.moveAway(ctx, m.Server)
	}) {
	case refused:
		return &protocol.ControlledShutdownReply{Code: protocol.CodeNotCoordinatorLeader}
	case uncertain:
		return &protocol.ControlledShutdownReply{Code: protocol.CodeUnknownServer}
	default:
		return reply
	}
}

// moveAway returns the buckets that the server still leads (p).
func (t *term) moveAway(ctx context.Context, server int) []cluster.BucketID {
	var concerned []*bucket
	for _, b := range t.order {
		if b.stored && (b.lai.Leader == server || slices.Contains(b.lai.ISR, server)) {
			concerned = append(concerned, b)
		}
	}
	err := t.settle(ctx, concerned, func(b *bucket) (protocol.LeaderAndIsr, bool) {
		if b.lai.Leader != server {
			return shrink(b.lai, t.view())
		}
		next := elect(b.replicas, b.lai, t.view(), server, noServer)
		return next, next.Leader != server
	})
	if err != nil && !t.over {
		t.log.Info("move leaders away", zap.Int("tablet", server), zap.Error(err))
	}
	var remaining []cluster.BucketID
	for _, b := range concerned {
		if b.lai.Leader == server && t.buckets[b.id] == b {
			remaining = append(remaining, b.id)
		}
	}
	return remaining
}

// moveLeader elects another member of the ISR, or the one asked for (p).
func (t *term) moveLeader(ctx context.Context, m *protocol.MoveLeader) *protocol.CodeReply {
	return t.command(ctx, "move leader", func(ctx context.Context) *protocol.CodeReply {
		b := t.buckets[m.Bucket]
		if b == nil || !b.stored {
			return refuse(protocol.CodeUnknownTableOrBucket, "no bucket %s", m.Bucket)
		}
		before := b.lai.LeaderEpoch
		reply := &protocol.CodeReply{}
		err := t.settle(ctx, []*bucket{b}, func(b *bucket) (protocol.LeaderAndIsr, bool) {
			if b.lai.LeaderEpoch != before {
				return b.lai, false
			}
			next := elect(b.replicas, b.lai, t.view(), b.lai.Leader, m.To)
			if next.Leader == b.lai.Leader || (m.To >= 0 && next.Leader != m.To) {
				reply = refuse(protocol.CodeIneligibleReplica, "isr %v has no other candidate", b.lai.ISR)
				return b.lai, false
			}
			return next, true
		})
		if err != nil {
			return failed(err)
		}
		return reply
	})
}

// command has the event loop execute a request that is answered by a code (p).
func (t *term) command(ctx context.Context, name string, run func(ctx context.Context) *protocol.CodeReply) *protocol.CodeReply {
	var reply *protocol.CodeReply
	switch t.ask(ctx, name, func(ctx context.Context) { reply = run(ctx) }) {
	case refused:
		return refuse(protocol.CodeNotCoordinatorLeader, "not in office")
	case uncertain:
		return refuse(protocol.CodeUnknownServer, "the term ended meanwhile")
	default:
		return reply
	}
}

func refuse(code protocol.Code, format string, args ...any) *protocol.CodeReply {
	return &protocol.CodeReply{Code: code, Message: fmt.Sprintf(format, args...)}
}

// failed is the answer to a request whose outcome is not known to be anything
// else than unknown.
func failed(err error) *protocol.CodeReply { return refuse(protocol.CodeUnknownServer, "%v", err) }
