package coordinator

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// deletion is the rest of a drop: the replicas of a partition must be removed by
// every server that has one, dead ones included when they return, and metadata
// must have forgotten it, before its assignment goes from ZooKeeper. Until then
// the next coordinator can take it up.
type deletion struct {
	part    *partition
	stopped map[replicaKey]bool
	changed int64
	posted  bool
}

type replicaKey struct {
	bucket cluster.BucketID
	server int
}

// forgetPartition makes a partition unknown and begins its deletion. No park.
func (t *term) forgetPartition(tb *table, p *partition) {
	t.removePartition(tb, p)
	t.beginDeletion(p)
}

// forgetTable makes a table unknown; its partitions are forgotten already.
func (t *term) forgetTable(tb *table) {
	if t.tables[tb.info.Name] == tb {
		delete(t.tables, tb.info.Name)
	}
	t.deleted = append(t.deleted, deletedEntry{table: tb.info.ID, changed: t.tick()})
	t.wake()
}

func (t *term) beginDeletion(p *partition) {
	d := &deletion{part: p, stopped: map[replicaKey]bool{}}
	for _, b := range p.buckets {
		if !slices.ContainsFunc(t.deleted, func(e deletedEntry) bool { return e.table < 0 && e.bucket == b.id }) {
			t.deleted = append(t.deleted, deletedEntry{bucket: b.id, table: -1, changed: t.tick()})
		}
	}
	d.changed = t.clock
	t.gone = append(t.gone, d)
	for _, s := range t.liveTablets() {
		if ch := t.channels[s.Server]; ch != nil {
			ch.stopAll(d)
		}
	}
	t.wake()
}

// stopAll has the tablet remove its replicas of a deleted partition.
func (ch *channel) stopAll(d *deletion) {
	for _, b := range d.part.buckets {
		if slices.Contains(b.replicas, ch.key.server) && !d.stopped[replicaKey{b.id, ch.key.server}] {
			ch.stops[b.id] = protocol.StopBucket{Bucket: b.id, LeaderEpoch: max(b.lai.LeaderEpoch, 0), Delete: true}
		}
	}
	ch.cond.Broadcast()
}

// stopReplicas sends StopReplica until it is acknowledged.
func (ch *channel) stopReplicas(ctx context.Context) {
	t := ch.t
	failures := 0
	for ch.open() && ctx.Err() == nil {
		if len(ch.stops) == 0 {
			ch.sleep(t.timing.Heartbeat)
			continue
		}
		m := &protocol.StopReplica{Term: t.ref, CoordinatorEpoch: t.epoch}
		for _, id := range sortedKeys(ch.stops) {
			m.Buckets = append(m.Buckets, ch.stops[id])
		}
		reply, err := call[*protocol.CodeReply](ctx, ch, m, t.timing.CallTimeout)
		switch {
		case t.over || ctx.Err() != nil:
			return
		case err == nil && reply.Code == protocol.CodeNone:
			failures = 0
			for _, s := range m.Buckets {
				delete(ch.stops, s.Bucket)
				t.stopped(s.Bucket, ch.key.server)
			}
			t.finishDeletions()
			continue
		case err == nil:
			t.refusedAsOld(ch.key.server, reply.Code)
		}
		failures++
		if t.h.Sleep(ctx, t.c.backOff(failures)) != nil {
			return
		}
	}
}

func (t *term) stopped(id cluster.BucketID, server int) {
	for _, d := range t.gone {
		for _, b := range d.part.buckets {
			if b.id == id {
				d.stopped[replicaKey{id, server}] = true
			}
		}
	}
}

// finishDeletions removes the assignments of which nothing is left anywhere.
func (t *term) finishDeletions() {
	for _, d := range t.gone {
		if d.posted || !t.deletionDone(d) {
			continue
		}
		d.posted = true
		t.post("finish deletion", func(ctx context.Context) { t.finishDeletion(ctx, d) })
	}
}

func (t *term) deletionDone(d *deletion) bool {
	for _, b := range d.part.buckets {
		for _, server := range b.replicas {
			if !d.stopped[replicaKey{b.id, server}] {
				return false
			}
		}
	}
	for _, s := range t.liveTablets() {
		if ch := t.channels[s.Server]; ch != nil && ch.acked < d.changed {
			return false
		}
	}
	return true
}

// finishDeletion removes the znodes below an assignment in one transaction (p).
func (t *term) finishDeletion(ctx context.Context, d *deletion) {
	path := d.part.assignment
	var ops []host.ZKOp
	for i, b := range d.part.buckets {
		if b.stored {
			ops = append(ops, host.DeleteOp(b.path, -1))
		}
		ops = append(ops, host.DeleteOp(protocol.BucketPath(path, i), -1))
	}
	ops = append(ops, host.DeleteOp(path+"/buckets", -1), host.DeleteOp(path, -1))
	err := t.commit(ctx, "delete "+path, ops, func(ctx context.Context, z zk) (landing, error) {
		_, err := z.exists(ctx, path)
		if errors.Is(err, host.ErrNoNode) {
			return landed, nil
		}
		return absent, err
	})
	if err != nil && !errors.Is(err, host.ErrNoNode) {
		d.posted = false
		if !t.over {
			t.log.Info("finish deletion", zap.String("path", path), zap.Error(err))
		}
		return
	}
	t.gone = slices.DeleteFunc(t.gone, func(o *deletion) bool { return o == d })
}
