package coordinator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// notice is a role that a tablet has to be told of: that of a bucket, at a
// leader epoch and at least a bucket epoch.
type notice struct {
	b           *bucket
	leaderEpoch int
	bucketEpoch int
	try         int
	due         time.Duration
	silent      bool // sent, and not to be sent again without an answer (a planted bug)
}

// tell makes the bucket's present LAI something that the tablet must hear.
func (ch *channel) tell(b *bucket) {
	ch.notices[b.id] = &notice{b: b, leaderEpoch: b.lai.LeaderEpoch, bucketEpoch: b.lai.BucketEpoch, due: ch.t.h.Now()}
	ch.cond.Broadcast()
}

// notify sends what is due. Several requests may be under way, because a tablet
// holds its answer back while it activates, which must not hold up others.
func (ch *channel) notify(ctx context.Context) {
	for ch.open() && ctx.Err() == nil {
		due, pause := ch.dueNotices()
		if len(due) == 0 {
			ch.sleep(pause)
			continue
		}
		ch.send(due)
	}
}

// dueNotices lists the notices to send now, by bucket, and how long there will
// be nothing to do otherwise. No park.
func (ch *channel) dueNotices() (due []*notice, pause time.Duration) {
	now := ch.t.h.Now()
	pause = time.Hour
	for _, n := range ch.notices { // sorted below
		if ch.t.buckets[n.b.id] != n.b {
			delete(ch.notices, n.b.id)
			continue
		}
		if n.silent {
			continue
		}
		if n.due <= now {
			due = append(due, n)
		} else {
			pause = min(pause, n.due-now)
		}
	}
	slices.SortFunc(due, func(a, b *notice) int { return cmp.Compare(a.b.id, b.b.id) })
	return due, pause
}

// send makes one request of what is due, as it stands now. No park.
func (ch *channel) send(due []*notice) {
	t := ch.t
	wait := t.timing.NotifyWait
	if !t.policy.ResendNotify {
		wait = t.timing.NotifyTimeout
	}
	m := &protocol.NotifyLeaderAndIsr{Term: t.ref, CoordinatorEpoch: t.epoch, MaxWaitMillis: int(wait / time.Millisecond)}
	now := t.h.Now()
	for _, n := range due {
		n.try++
		n.leaderEpoch, n.bucketEpoch = n.b.lai.LeaderEpoch, n.b.lai.BucketEpoch
		n.due = now + wait + t.c.backOff(n.try)
		n.silent = !t.policy.ResendNotify
		m.Buckets = append(m.Buckets, protocol.BucketState{
			Bucket: n.b.id, Table: n.b.table.info, Replicas: n.b.replicas, LAI: n.b.lai.Clone(), Incarnation: ch.key.incarnation,
		})
		ch.observe(n, "sent")
	}
	t.h.Go(t.ctx, "notify", func(ctx context.Context) {
		reply, err := call[*protocol.NotifyLeaderAndIsrReply](ctx, ch, m, wait+t.timing.NotifyTimeout)
		switch {
		case t.over:
		case err != nil:
			ch.notifyFailed(due, err)
		case reply.Code == protocol.CodeInvalidCoordinator:
			t.refusedAsOld(ch.key.server, reply.Code)
		case reply.Code != protocol.CodeNone:
			ch.notifyFailed(due, protocol.CodeError{Code: reply.Code})
		default:
			ch.notified(m, reply)
		}
	})
}

func (ch *channel) observe(n *notice, result string) {
	ch.t.h.Observe(history.Notify{
		Bucket: string(n.b.id), LeaderEpoch: n.leaderEpoch, Server: ch.key.server, Try: n.try, Result: result,
	})
}

// notifyFailed takes in that a request got no answer: each notice is sent again
// after its back-off, counted from now.
func (ch *channel) notifyFailed(sent []*notice, err error) {
	t := ch.t
	for _, n := range sent {
		ch.observe(n, err.Error())
		b := n.b
		n.due = min(n.due, t.h.Now()+t.c.backOff(n.try))
		if b.lai.Leader == ch.key.server && t.buckets[b.id] == b && b.act.dropped(t.policy.KeepPendingOnRPCFailure) {
			t.admitted(b)
		}
	}
	ch.cond.Broadcast()
}

// notified takes in the answers, bucket by bucket, each with its key: an answer
// may be of an older request, and even of an earlier incarnation of the tablet.
func (ch *channel) notified(m *protocol.NotifyLeaderAndIsr, reply *protocol.NotifyLeaderAndIsrReply) {
	t := ch.t
	sent := map[string]int{} // bucket epoch, by bucket
	for _, s := range m.Buckets {
		sent[string(s.Bucket)] = s.LAI.BucketEpoch
	}
	for _, r := range reply.Buckets {
		b := t.buckets[r.Bucket]
		bucketEpoch, asked := sent[string(r.Bucket)]
		if b == nil || !asked {
			continue
		}
		n := ch.notices[r.Bucket]
		current := n != nil && r.LeaderEpoch == n.leaderEpoch && r.Incarnation == ch.key.incarnation
		shown := notice{b: b, leaderEpoch: r.LeaderEpoch}
		if n != nil {
			shown.try = n.try
		}
		switch r.Status {
		case protocol.NotifySuccess:
			ch.observe(&shown, "ok")
			if current && bucketEpoch >= n.bucketEpoch {
				delete(ch.notices, r.Bucket)
			}
			if b.lai.Leader == ch.key.server && b.act.succeeded(key{r.LeaderEpoch, r.Incarnation}, t.policy.MatchAckKey) {
				t.admitted(b)
			}
		case protocol.NotifyInProgress:
			ch.observe(&shown, "in progress")
			if current {
				n.due, n.silent = t.h.Now()+t.timing.Resend/10, false // it holds the answer back by itself
			}
		default:
			ch.observe(&shown, r.Code.String())
			if current {
				ch.roleRefused(b, n, r.Code)
			}
		}
	}
	ch.cond.Broadcast()
}

// admitted says that a bucket's leader serves: clients may be told now. No park.
func (t *term) admitted(b *bucket) {
	b.failures = 0
	b.changed = t.tick()
	t.changed.Broadcast()
	t.wake()
}

// roleRefused takes in that a tablet does not take a role: a leader that cannot
// activate is replaced, or elected again at a higher leader epoch; everything
// else is tried again.
func (ch *channel) roleRefused(b *bucket, n *notice, code protocol.Code) {
	t := ch.t
	n.due = t.h.Now() + t.c.backOff(n.try)
	n.silent = false
	leads := b.lai.Leader == ch.key.server
	switch {
	case !leads || code == protocol.CodeNotAttempted:
		return // not its leader, or its registration has not arrived there yet
	case code == protocol.CodeFencedLeaderEpoch && !t.policy.ReelectRestarted:
		return
	}
	b.failures++
	at, failed := b.act.key, ch.key.server
	pause := time.Duration(0)
	if b.failures > 1 {
		pause = t.c.backOff(b.failures)
	}
	t.h.Go(t.ctx, "activation failed", func(ctx context.Context) {
		if pause > 0 && t.h.Sleep(ctx, pause) != nil {
			return
		}
		t.post("activation failed", func(ctx context.Context) { t.replaceLeader(ctx, b, at, failed, code) })
	})
}

// replaceLeader elects after an activation that failed (p): another if there is
// one, else the same at a higher leader epoch, which it may lead at. A storage
// that failed is only tried again, at the same epoch, if there is no other.
func (t *term) replaceLeader(ctx context.Context, b *bucket, at key, failed int, code protocol.Code) {
	err := t.settle(ctx, []*bucket{b}, func(b *bucket) (protocol.LeaderAndIsr, bool) {
		if b.act.key != at || b.lai.Leader != failed || b.act.stage == confirmed {
			return b.lai, false // it has another leader by now, or serves after all
		}
		next := elect(b.replicas, b.lai, t.view(), failed, noServer)
		if next.Leader == failed && code == protocol.CodeStorage {
			return b.lai, false
		}
		return next, true
	})
	if err != nil && !t.over {
		t.log.Info("replace leader", zap.String("bucket", string(b.id)), zap.Error(err))
	}
}

// sortedKeys lists a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
