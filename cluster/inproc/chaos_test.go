package inproc

import (
	"context"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// chaos hits the cluster with faults of every kind at random until the run is over.
func chaos(ctx context.Context, l *lab) {
	for !l.over {
		if l.c.Sleep(ctx, l.between(100*time.Millisecond, 3*time.Second)) != nil || l.over {
			return
		}
		faults := []func(context.Context){
			l.killTablet, l.killTablet, l.killLeader, l.powerLoss, l.killCoordinator, l.expire, l.holdZooKeeper, l.holdZooKeeper,
			l.pauseNode, l.partition, l.oneWay, l.lossy, l.slowLinks, l.cutZooKeeper,
		}
		fault := faults[l.f.IntN(len(faults))]
		l.running++
		l.c.Go(ctx, "fault", func(ctx context.Context) {
			fault(ctx)
			l.done()
		})
	}
}

func (l *lab) between(from, to time.Duration) time.Duration {
	return from + time.Duration(l.f.Int64N(int64(to-from)))
}

func (l *lab) someTablet() cluster.NodeID { return l.cl.tablets()[l.f.IntN(l.tablets)].ID }

func (l *lab) someNode() cluster.NodeID { return l.cl.infos[l.f.IntN(len(l.cl.infos))].ID }

// restart kills a node, waits, and starts it.
func (l *lab) restart(ctx context.Context, id cluster.NodeID, kill func(context.Context, cluster.NodeID) error) {
	if !l.cl.Up(id) {
		return
	}
	if kill(ctx, id) != nil {
		return
	}
	_ = l.c.Sleep(ctx, l.between(0, 6*time.Second))
	if !l.cl.Up(id) {
		_ = l.cl.StartNode(ctx, id)
	}
}

func (l *lab) killTablet(ctx context.Context) { l.restart(ctx, l.someTablet(), l.cl.Kill) }

func (l *lab) killLeader(ctx context.Context) {
	leader, _, err := l.cl.Bucket(ctx, "orders", l.f.IntN(l.buckets))
	if err == nil && leader != "" {
		l.restart(ctx, leader, l.cl.Kill)
	}
}

func (l *lab) powerLoss(ctx context.Context) {
	if l.f.IntN(3) > 0 {
		l.restart(ctx, l.someTablet(), l.cl.PowerLoss)
		return
	}
	for _, n := range l.cl.tablets() {
		if l.cl.Up(n.ID) {
			_ = l.cl.PowerLoss(ctx, n.ID)
		}
	}
	for _, n := range l.cl.tablets() {
		_ = l.c.Sleep(ctx, l.between(0, time.Second))
		if !l.cl.Up(n.ID) {
			_ = l.cl.StartNode(ctx, n.ID)
		}
	}
}

func (l *lab) killCoordinator(ctx context.Context) {
	id, err := l.cl.Coordinator(ctx)
	if err != nil || id == "" || l.f.IntN(3) == 0 {
		id = l.cl.coordinators()[l.f.IntN(l.coordinators)].ID
	}
	l.restart(ctx, id, l.cl.Kill)
}

func (l *lab) expire(ctx context.Context) { _ = l.cl.ExpireSession(ctx, l.someNode()) }

func (l *lab) holdZooKeeper(ctx context.Context) {
	id := l.someNode()
	if l.f.IntN(3) == 0 {
		if c, err := l.cl.Coordinator(ctx); err == nil && c != "" {
			id = c
		}
	}
	_, _ = l.cl.HoldZooKeeper(ctx, id, l.between(100*time.Millisecond, 8*time.Second))
}

func (l *lab) pauseNode(ctx context.Context) {
	id, lease := l.someNode(), l.between(100*time.Millisecond, 7*time.Second)
	if l.cl.Up(id) {
		_ = l.cl.Pause(ctx, id, lease)
	}
}

func (l *lab) partition(context.Context) {
	id, lease := l.someNode(), l.between(200*time.Millisecond, 6*time.Second)
	others := l.others(id)
	l.w.Network().Apply(host.Rule{Match: host.Match{From: []cluster.NodeID{id}, To: others, Both: true}, Drop: 1}, lease)
	l.w.Network().Apply(host.Rule{Match: host.Match{From: others, To: []cluster.NodeID{id}, Both: true}, Drop: 1}, lease)
}

func (l *lab) oneWay(context.Context) {
	id, lease := l.someNode(), l.between(200*time.Millisecond, 6*time.Second)
	others := l.others(id)
	others = others[l.f.IntN(len(others)):]
	m := host.Match{From: []cluster.NodeID{id}, To: others, Both: true}
	if l.f.IntN(2) == 0 {
		m.From, m.To = m.To, m.From
	}
	l.w.Network().Apply(host.Rule{Match: m, Drop: 1}, lease)
}

func (l *lab) others(id cluster.NodeID) []cluster.NodeID {
	var all []cluster.NodeID
	for _, n := range l.cl.infos {
		if n.ID != id {
			all = append(all, n.ID)
		}
	}
	return all
}

// internal are the requests between servers; they may be duplicated too. One of
// a client may not: the client takes a refusal for the end of that attempt.
func internal() []string {
	return []string{
		protocol.APINotifyLeaderAndIsr, protocol.APIUpdateMetadata, protocol.APIStopReplica, protocol.APIAdjustIsr,
		protocol.APIFetchLog,
	}
}

func (l *lab) lossy(context.Context) {
	m := host.Match{Both: true, APIs: append(internal(), protocol.APIPutKv, protocol.APILookup, protocol.APIGetMetadata)}
	m.Replies = l.f.IntN(2) == 0
	if m.Replies {
		m.Both = false
	}
	if l.f.IntN(2) == 0 {
		m.APIs = []string{m.APIs[l.f.IntN(len(m.APIs))]}
	}
	l.w.Network().Apply(host.Rule{Match: m, Drop: l.f.Float64() * l.f.Float64()}, l.between(200*time.Millisecond, 5*time.Second))
}

func (l *lab) slowLinks(context.Context) {
	r := host.Rule{Match: host.Match{Both: true}, Delay: l.between(0, 20*time.Millisecond), Jitter: l.between(0, 100*time.Millisecond)}
	if l.f.IntN(2) == 0 {
		apis := internal()
		r.Match.APIs = []string{apis[l.f.IntN(len(apis))]}
		r.Jitter = l.between(0, 6*time.Second)
		r.Reorder, r.Duplicate = l.f.Float64(), l.f.Float64()*0.2
	}
	l.w.Network().Apply(r, l.between(500*time.Millisecond, 8*time.Second))
}

func (l *lab) cutZooKeeper(context.Context) {
	z := l.w.ZooKeeper(l.someNode())
	switch l.f.IntN(4) {
	case 0:
		z.CutBefore("", 5*time.Second)
	case 1:
		z.CutAfter("", 5*time.Second)
	case 2:
		z.DelayWatches(l.between(0, 3*time.Second), 6*time.Second)
	case 3:
		z.Delay(l.between(0, 500*time.Millisecond), 6*time.Second)
	}
}
