package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// laiChange is an LAI to write, built on what the bucket is known to be.
type laiChange struct {
	b    *bucket
	next protocol.LeaderAndIsr
}

const (
	maxLAIBatch  = 128 // changes in one transaction
	maxLAIRounds = 5   // how often a lost compare-and-set is decided again at once
)

func (t *term) view() view {
	return view{
		live:    func(s int) bool { _, ok := t.tablets[s]; return ok },
		leaving: t.isLeaving,
		epoch:   t.epoch,
	}
}

// settle decides what buckets need now, writes it, and decides again where the
// compare-and-set was lost (p). The decision is a function of the bucket, false
// for no change.
func (t *term) settle(
	ctx context.Context, buckets []*bucket, decide func(b *bucket) (protocol.LeaderAndIsr, bool),
) error {
	for round := 0; len(buckets) > 0 && round < maxLAIRounds; round++ {
		var changes []laiChange
		for _, b := range buckets {
			if t.buckets[b.id] != b {
				continue // dropped meanwhile
			}
			if next, change := decide(b); change {
				changes = append(changes, laiChange{b, next})
			}
		}
		var err error
		if buckets, err = t.store(ctx, changes); err != nil {
			return err
		}
	}
	return nil
}

// replan settles buckets after servers came or went (p).
func (t *term) replan(ctx context.Context, buckets []*bucket, restarted func(b *bucket) bool) {
	err := t.settle(ctx, buckets, func(b *bucket) (protocol.LeaderAndIsr, bool) {
		return plan(b, t.view(), restarted(b))
	})
	if err != nil && !t.over {
		t.log.Info("settle buckets", zap.Error(err))
	}
}

// store writes LAIs, many in one transaction, until each is known to be held or
// lost (p). Those held are applied at once; nothing that depends on one leaves
// before. It returns the buckets that are not as they were thought to be: they
// have been read again.
func (t *term) store(ctx context.Context, changes []laiChange) (lost []*bucket, err error) {
	for len(changes) > 0 {
		batch := changes[:min(len(changes), maxLAIBatch)]
		got, err := t.try(ctx, t.laiOps(batch))
		switch {
		case err != nil:
			return lost, fmt.Errorf("write leader and isr: %w", err)
		case got.outcome == committed:
			for i, c := range batch {
				version := int32(0)
				if c.b.stored {
					version = got.Stats[t.guards()+i].Version
				}
				t.applied(c, version, got.Zxid)
			}
			changes = changes[len(batch):]
		case !t.policy.CompareAndSetLAI:
			// The memory is overwritten whatever became of the write.
			for _, c := range batch {
				t.applied(c, c.b.version+1, 0)
			}
			changes = changes[len(batch):]
		case got.outcome == notTaken:
			if err := t.reload(ctx, t.z, batch[got.failed].b); err != nil {
				return lost, err
			}
			lost = append(lost, batch[got.failed].b)
			changes = slices.Delete(slices.Clone(changes), got.failed, got.failed+1)
		default:
			again, gone, err := t.readBack(ctx, batch)
			if err != nil {
				return lost, err
			}
			lost = append(lost, gone...)
			changes = append(again, changes[len(batch):]...)
		}
	}
	return lost, nil
}

// guards is the number of operations that try puts first.
func (t *term) guards() int {
	if t.policy.GuardWrites {
		return 1
	}
	return 0
}

func (t *term) laiOps(batch []laiChange) []host.ZKOp {
	ops := make([]host.ZKOp, 0, len(batch))
	for _, c := range batch {
		data := protocol.EncodeLeaderAndIsr(c.next)
		switch {
		case !c.b.stored:
			ops = append(ops, host.CreateOp(c.b.path, data, host.Persistent))
		case t.policy.CompareAndSetLAI:
			ops = append(ops, host.SetOp(c.b.path, data, c.b.version))
		default:
			ops = append(ops, host.SetOp(c.b.path, data, -1))
		}
	}
	return ops
}

// readBack decides an unknown outcome (p): what is held is applied, what is as
// before is to be written again, and the rest is lost.
func (t *term) readBack(ctx context.Context, batch []laiChange) (again []laiChange, lost []*bucket, err error) {
	z, err := t.settled(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range batch {
		before := *c.b
		held, err := t.readLAI(ctx, z, c.b)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case held.stored && sameLAI(held.lai, c.next):
			t.applied(c, held.version, held.zxid)
		case held.stored == before.stored && held.version == before.version:
			again = append(again, c)
		default:
			t.adopt(c.b, held)
			lost = append(lost, c.b)
		}
	}
	return again, lost, nil
}

// heldLAI is a leader_isr node as read.
type heldLAI struct {
	stored  bool
	lai     protocol.LeaderAndIsr
	version int32
	zxid    int64
}

func (t *term) readLAI(ctx context.Context, z zk, b *bucket) (heldLAI, error) {
	data, stat, err := z.get(ctx, b.path)
	if errors.Is(err, host.ErrNoNode) {
		return heldLAI{}, nil
	}
	if err != nil {
		return heldLAI{}, fmt.Errorf("read leader and isr: %w", err)
	}
	lai, err := protocol.DecodeLeaderAndIsr(data)
	if err != nil {
		return heldLAI{}, fmt.Errorf("read %s: %w", b.path, err)
	}
	return heldLAI{true, lai, stat.Version, stat.Mzxid}, nil
}

func sameLAI(a, b protocol.LeaderAndIsr) bool {
	isrA, isrB := a.ISR, b.ISR
	a.ISR, b.ISR = nil, nil
	return slices.Equal(isrA, isrB) && a.Leader == b.Leader && a.LeaderEpoch == b.LeaderEpoch &&
		a.BucketEpoch == b.BucketEpoch && a.CoordinatorEpoch == b.CoordinatorEpoch
}

// reload reads a bucket again after a lost compare-and-set (p).
func (t *term) reload(ctx context.Context, z zk, b *bucket) error {
	held, err := t.readLAI(ctx, z, b)
	if err != nil {
		return err
	}
	t.adopt(b, held)
	return nil
}

// adopt takes over what ZooKeeper holds, by whoever wrote it: its leader is to
// be confirmed like one that stands since an earlier term.
func (t *term) adopt(b *bucket, held heldLAI) {
	if held.stored && held.lai.CoordinatorEpoch > t.epoch && t.policy.BumpEpoch {
		t.fence(fmt.Sprintf("%s was written by epoch %d", b.id, held.lai.CoordinatorEpoch))
		return
	}
	b.stored, b.version, b.zxid = held.stored, held.version, held.zxid
	if held.stored {
		b.lai = held.lai
		b.act = standing(key{b.lai.LeaderEpoch, t.tablets[b.lai.Leader].incarnation})
	}
	b.changed = t.tick()
	t.tellReplicas(b)
	t.wake()
}

// applied takes in an LAI that ZooKeeper is known to hold: a pending activation
// begins in the same event, before any message leaves. No park. Zxid 0 means
// that nobody knows (a planted bug).
func (t *term) applied(c laiChange, version int32, zxid int64) {
	b := c.b
	newLeader := !b.stored || c.next.LeaderEpoch != b.lai.LeaderEpoch
	b.stored, b.lai, b.version, b.zxid = true, c.next, version, zxid
	if zxid != 0 {
		t.h.Observe(history.LAI{
			Bucket: string(b.id), Leader: b.lai.Leader, LeaderEpoch: b.lai.LeaderEpoch, BucketEpoch: b.lai.BucketEpoch,
			ISR: slices.Clone(b.lai.ISR), Replicas: slices.Clone(b.replicas), CoordinatorEpoch: b.lai.CoordinatorEpoch, Zxid: zxid,
		})
	}
	if newLeader {
		b.act = elected(key{b.lai.LeaderEpoch, t.tablets[b.lai.Leader].incarnation})
		b.changed = t.tick()
		t.tellReplicas(b)
	} else if ch := t.channels[b.lai.Leader]; ch != nil {
		ch.tell(b)
	}
	t.wake()
}

// tellReplicas has every live replica notified of the bucket as it stands.
func (t *term) tellReplicas(b *bucket) {
	if !b.stored {
		return
	}
	for _, server := range b.replicas {
		if ch := t.channels[server]; ch != nil {
			ch.tell(b)
		}
	}
}

// wake has every channel look for what there is to send.
func (t *term) wake() {
	for _, s := range t.liveTablets() {
		if ch := t.channels[s.Server]; ch != nil {
			ch.cond.Broadcast()
		}
	}
}
