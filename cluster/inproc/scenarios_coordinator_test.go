package inproc

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// lostISRWrite is Apache Fluss issue 3780: a follower leaves the ISR, the write of
// that is cut before it reaches ZooKeeper, and then coordinator and leader go. Who
// reads the old ISR elects one that misses what was acknowledged.
func lostISRWrite(ctx context.Context, l *lab) {
	leader, followers := l.leader(ctx)
	id, err := l.cl.Coordinator(ctx)
	if leader == "" || len(followers) < 2 || err != nil || id == "" {
		return
	}
	l.w.ZooKeeper(id).CutBefore("multi", 6*time.Second)
	l.cut(followers[0], l.others(followers[0]), 4*time.Second) // its session lives
	l.rest(ctx, 3200*time.Millisecond, 3800*time.Millisecond)
	down := []cluster.NodeID{id, leader, followers[1]}
	for _, n := range down {
		_ = l.cl.Kill(ctx, n)
	}
	l.rest(ctx, 5*time.Second, 6*time.Second)
	l.revive(ctx, down...)
	l.rest(ctx, 2*time.Second, 3*time.Second)
}

// bounceLeader restarts a leader, registration included, while the coordinator
// sees nothing.
func bounceLeader(ctx context.Context, l *lab) {
	id, err := l.cl.Coordinator(ctx)
	leader, _ := l.leader(ctx)
	if err != nil || id == "" || leader == "" {
		return
	}
	_, _ = l.cl.HoldZooKeeper(ctx, id, l.between(500*time.Millisecond, time.Second))
	_ = l.cl.ExpireSession(ctx, leader)
	_ = l.cl.Kill(ctx, leader)
	l.revive(ctx, leader)
	l.rest(ctx, time.Second, 3*time.Second)
}

// askOldCoordinator has a client keep the address of a coordinator that is no
// longer in office.
func askOldCoordinator(ctx context.Context, l *lab) {
	id, err := l.cl.Coordinator(ctx)
	if err != nil || id == "" || l.cl.ExpireSession(ctx, id) != nil {
		return
	}
	l.rest(ctx, time.Second, 2*time.Second)
	for i := range 3 {
		attempt, cancel := l.c.WithTimeout(ctx, time.Second)
		_, _ = l.c.Call(attempt, id, &protocol.CreateTable{Spec: cluster.TableSpec{
			Name: fmt.Sprintf("stale-%d-%d", l.c.Now().Milliseconds(), i), Kind: cluster.KVTable, Buckets: 1, Replication: 1, MinISR: 1,
		}})
		cancel()
		l.rest(ctx, 100*time.Millisecond, 500*time.Millisecond)
	}
}
