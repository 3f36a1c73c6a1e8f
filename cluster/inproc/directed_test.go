package inproc

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/client"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// Directed scenarios take the steps, in order, that random faults do not find:
// section 6 of the protocol says how rarely they would.

// only keeps the load out of the way: a directed scenario has one bucket and
// issues its operations itself.
func only(f func(ctx context.Context, l *lab)) func(*experiment) {
	return func(e *experiment) {
		e.faults, e.session, e.length = f, 2*time.Second, 20*time.Second
		e.buckets, e.clients, e.pause = 1, 1, 500*time.Millisecond
	}
}

// actor is a client of a directed scenario, with a process of its own.
type actor struct {
	l    *lab
	conn *client.Client
	name cluster.NodeID
	p    history.Process
}

// actor connects a client that knows only the tablets given. It waits for an
// answer as long as the operation lasts.
func (l *lab) actor(tablets ...cluster.NodeID) *actor {
	a := &actor{l: l, name: cluster.NodeID(fmt.Sprintf("client-%d", l.process)), p: history.Process(l.process)}
	l.process++
	var infos []cluster.NodeInfo
	for _, n := range l.cl.tablets() {
		if len(tablets) == 0 || slices.Contains(tablets, n.ID) {
			infos = append(infos, n)
		}
	}
	a.conn = client.New(l.c.Endpoint(a.name), client.Config{
		Policy: l.policy.Client, Tablets: infos, Process: int(a.p), Times: client.Times{Attempt: 3 * time.Second},
	})
	return a
}

// write puts a new value; false means that it was not acknowledged.
func (a *actor) write(ctx context.Context, key string) bool {
	acked := a.l.acked
	a.l.operation(ctx, a.conn, a.p, key, true)
	return a.l.acked > acked
}

func (a *actor) read(ctx context.Context, key string) { a.l.operation(ctx, a.conn, a.p, key, false) }

// roles are the leader of the bucket and its in-sync followers, once there are as
// many as asked for.
func (l *lab) roles(ctx context.Context, followers int) (cluster.NodeID, []cluster.NodeID) {
	for !l.over {
		leader, others, err := l.cl.Bucket(ctx, "orders", 0)
		if err == nil && leader != "" && l.cl.Up(leader) && len(others) >= followers {
			return leader, others
		}
		_ = l.c.Sleep(ctx, 20*time.Millisecond)
	}
	return "", nil
}

// newLeader waits for a leader that is not one of the old ones.
func (l *lab) newLeader(ctx context.Context, old ...cluster.NodeID) cluster.NodeID {
	for !l.over {
		leader, _, err := l.cl.Bucket(ctx, "orders", 0)
		if err == nil && leader != "" && !slices.Contains(old, leader) {
			return leader
		}
		_ = l.c.Sleep(ctx, 10*time.Millisecond)
	}
	return ""
}

// inSync waits until ZooKeeper has a server in the ISR, or not.
func (l *lab) inSync(ctx context.Context, id cluster.NodeID, want bool) {
	for !l.over {
		_, others, err := l.cl.Bucket(ctx, "orders", 0)
		if err == nil && slices.Contains(others, id) == want {
			return
		}
		_ = l.c.Sleep(ctx, 10*time.Millisecond)
	}
}

func (l *lab) apply(m host.Match, r host.Rule) host.Undo {
	r.Match = m
	return l.w.Network().Apply(r, l.length)
}

func (l *lab) coordinatorIDs() []cluster.NodeID {
	var ids []cluster.NodeID
	for _, n := range l.cl.coordinators() {
		ids = append(ids, n.ID)
	}
	return ids
}

func nodes(ids ...cluster.NodeID) []cluster.NodeID { return ids }

// staleEcho: the followers' fetches are seconds on the wire when their leader is
// replaced. A client reads at the old leader after the new one has acknowledged a
// write; the fetches arrive, and prove nothing.
func staleEcho(ctx context.Context, l *lab) { l.staleEchoOf(ctx, 2) }

func (l *lab) staleEchoOf(ctx context.Context, inSync int) {
	old, followers := l.roles(ctx, inSync)
	if old == "" {
		return
	}
	const key = "directed"
	near := l.actor(old)
	near.write(ctx, key)
	near.read(ctx, key) // it knows the leader now
	wire := l.apply(host.Match{From: followers, To: nodes(old), APIs: []string{protocol.APIFetchLog}}, host.Rule{Delay: 5 * time.Second})
	_ = l.c.Sleep(ctx, time.Second) // every fetch that is under way now was sent before the election
	_, _ = l.cl.HoldZooKeeper(ctx, old, 10*time.Second)
	cut := l.apply(host.Match{From: nodes(old), To: l.coordinatorIDs(), Both: true}, host.Rule{Drop: 1})
	if l.newLeader(ctx, old) == "" {
		return
	}
	_ = l.c.Sleep(ctx, 300*time.Millisecond)
	l.actor(followers...).write(ctx, key)
	// The stale client asks nobody but the old leader.
	blind := l.apply(host.Match{From: nodes(near.name), To: followers}, host.Rule{Refuse: true})
	near.read(ctx, key)
	wire()
	cut()
	blind()
}

// echoOfAFormerLife is staleEcho at a leader that has led for a moment only, while
// its followers remember the tokens of a leader before it.
func echoOfAFormerLife(ctx context.Context, l *lab) {
	before, _ := l.roles(ctx, 2)
	if before == "" {
		return
	}
	reader := l.actor()
	for range 60 { // rounds of its tokens
		reader.read(ctx, "warm")
	}
	_ = l.cl.Kill(ctx, before)
	if l.newLeader(ctx, before) == "" {
		return
	}
	_ = l.c.Sleep(ctx, 500*time.Millisecond)
	l.staleEchoOf(ctx, 1)
	l.revive(ctx, before)
}

// joinUnknown: a follower joins the ISR in ZooKeeper, and the leader never hears
// that its proposal was accepted. It must count the follower all the same.
func joinUnknown(ctx context.Context, l *lab) {
	leader, followers := l.roles(ctx, 2)
	if leader == "" {
		return
	}
	const key = "directed"
	stays, joins := followers[0], followers[1]
	c := l.actor()
	c.write(ctx, key)
	fetches := host.Match{From: nodes(joins), To: nodes(leader), APIs: []string{protocol.APIFetchLog}, Both: true}
	away := l.apply(fetches, host.Rule{Drop: 1})
	l.inSync(ctx, joins, false)
	deaf := l.apply(host.Match{From: l.coordinatorIDs(), To: nodes(leader), Both: true}, host.Rule{Drop: 1})
	away()
	l.inSync(ctx, joins, true)
	again := l.apply(fetches, host.Rule{Drop: 1})
	_ = l.c.Sleep(ctx, 1500*time.Millisecond) // the proposal times out
	c.write(ctx, key)
	_ = l.cl.Kill(ctx, leader)
	_ = l.cl.Kill(ctx, stays)
	if l.newLeader(ctx, leader, stays) == "" {
		return
	}
	again()
	deaf()
	_ = l.c.Sleep(ctx, 500*time.Millisecond)
	l.actor(joins).read(ctx, key)
	l.revive(ctx, leader, stays)
}

// twoHalves: a follower joins the ISR in ZooKeeper and its leader does not hear of
// it; then the leader and the follower that it counts are cut off together, while
// the one that joined leads and acknowledges.
func twoHalves(ctx context.Context, l *lab) {
	leader, followers := l.roles(ctx, 2)
	if leader == "" {
		return
	}
	const key = "directed"
	stays, joining := followers[0], followers[1:]
	near := l.actor(leader)
	near.write(ctx, key)
	away := l.apply(host.Match{From: joining, To: nodes(leader), APIs: []string{protocol.APIFetchLog}, Both: true}, host.Rule{Drop: 1})
	for _, j := range joining {
		l.inSync(ctx, j, false)
	}
	deaf := l.apply(host.Match{From: l.coordinatorIDs(), To: nodes(leader), Both: true}, host.Rule{Drop: 1})
	away()
	for _, j := range joining {
		l.inSync(ctx, j, true)
	}
	_ = l.c.Sleep(ctx, 1500*time.Millisecond)
	here, there := nodes(leader, stays), append(l.coordinatorIDs(), joining...)
	split := []host.Undo{
		l.apply(host.Match{From: here, To: there, Both: true}, host.Rule{Drop: 1}),
		l.apply(host.Match{From: there, To: here, Both: true}, host.Rule{Drop: 1}),
	}
	_, _ = l.cl.HoldZooKeeper(ctx, leader, 8*time.Second)
	_, _ = l.cl.HoldZooKeeper(ctx, stays, 8*time.Second)
	if l.newLeader(ctx, leader, stays) == "" {
		return
	}
	_ = l.c.Sleep(ctx, 300*time.Millisecond)
	l.actor(joining...).write(ctx, key)
	blind := l.apply(host.Match{From: nodes(near.name), To: append(joining, stays)}, host.Rule{Refuse: true})
	near.read(ctx, key)
	blind()
	deaf()
	for _, undo := range split {
		undo()
	}
}

// forgottenBatch: a follower holds a batch that nobody else has, drops it under
// the next leader, and leads itself when the client tries again.
func forgottenBatch(ctx context.Context, l *lab) {
	leader, followers := l.roles(ctx, 2)
	if leader == "" {
		return
	}
	const key = "directed"
	holds, lacks := followers[1], followers[0]
	c := l.actor()
	c.write(ctx, key)
	late := l.apply(host.Match{From: nodes(lacks), To: nodes(leader), APIs: []string{protocol.APIFetchLog}, Both: true}, host.Rule{Drop: 1})
	far := l.apply(host.Match{From: nodes(c.name), To: nodes(lacks)}, host.Rule{Refuse: true})
	_ = l.c.Sleep(ctx, 600*time.Millisecond)
	l.running++
	l.c.Go(ctx, "writer", func(ctx context.Context) {
		c.write(ctx, key)
		l.done()
	})
	_ = l.c.Sleep(ctx, 100*time.Millisecond)
	_ = l.cl.Kill(ctx, leader)
	_ = l.cl.Kill(ctx, holds)
	late()
	if l.newLeader(ctx, leader, holds) == "" {
		return
	}
	l.revive(ctx, holds)
	l.inSync(ctx, holds, true)
	_ = l.cl.Kill(ctx, lacks)
	if l.newLeader(ctx, lacks) == "" {
		return
	}
	l.revive(ctx, leader, lacks)
	_ = l.c.Sleep(ctx, 6*time.Second)
	far()
	l.actor().read(ctx, key)
}
