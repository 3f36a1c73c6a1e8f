package inproc

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// Scenarios are the faults under which planted bugs show: each aims at what a
// rule protects.

// again repeats a scenario's step until the run is over.
func again(step func(ctx context.Context, l *lab)) func(ctx context.Context, l *lab) {
	return func(ctx context.Context, l *lab) {
		for !l.over {
			if l.c.Sleep(ctx, l.between(50*time.Millisecond, time.Second)) != nil {
				return
			}
			if !l.over {
				step(ctx, l)
			}
		}
	}
}

// beside lets scenarios run side by side.
func beside(all ...func(ctx context.Context, l *lab)) func(ctx context.Context, l *lab) {
	return func(ctx context.Context, l *lab) {
		for _, f := range all {
			l.running++
			l.c.Go(ctx, "scenario", func(ctx context.Context) {
				f(ctx, l)
				l.done()
			})
		}
	}
}

// leader is the leader of a random bucket and its followers; "" if it has none.
func (l *lab) leader(ctx context.Context) (cluster.NodeID, []cluster.NodeID) {
	leader, followers, err := l.cl.Bucket(ctx, "orders", l.f.IntN(l.buckets))
	if err != nil {
		return "", nil
	}
	return leader, followers
}

func (l *lab) rest(ctx context.Context, from, to time.Duration) {
	_ = l.c.Sleep(ctx, l.between(from, to))
}

// revive starts what is down.
func (l *lab) revive(ctx context.Context, ids ...cluster.NodeID) {
	for _, id := range ids {
		if !l.cl.Up(id) {
			_ = l.cl.StartNode(ctx, id)
		}
	}
}

// restartLeaders kills leaders and starts them again: restores follow.
func restartLeaders(ctx context.Context, l *lab) {
	leader, _ := l.leader(ctx)
	if leader == "" || l.cl.Kill(ctx, leader) != nil {
		return
	}
	l.rest(ctx, 100*time.Millisecond, 2*time.Second)
	l.revive(ctx, leader)
	l.rest(ctx, time.Second, 4*time.Second)
}

// moveTwice kills a leader, its successor a moment later, and starts both.
func moveTwice(ctx context.Context, l *lab) {
	first, _ := l.leader(ctx)
	if first == "" || l.cl.Kill(ctx, first) != nil {
		return
	}
	l.rest(ctx, l.session, l.session+time.Second)
	second, _ := l.leader(ctx)
	if second != "" {
		_ = l.cl.Kill(ctx, second)
	}
	l.rest(ctx, 0, time.Second)
	l.revive(ctx, first)
	l.rest(ctx, 0, 2*time.Second)
	if second != "" {
		l.revive(ctx, second)
	}
	l.rest(ctx, time.Second, 3*time.Second)
}

// blackHole cuts a leader from ZooKeeper until another leads, clients and
// followers still reaching it.
func blackHole(ctx context.Context, l *lab) {
	leader, _ := l.leader(ctx)
	if leader == "" {
		return
	}
	_, _ = l.cl.HoldZooKeeper(ctx, leader, l.session+l.between(time.Second, 4*time.Second))
	l.rest(ctx, l.session, l.session+4*time.Second)
}

// isolate cuts a leader from ZooKeeper and every other server, so that it knows
// nothing, and clients still reach it.
func isolate(ctx context.Context, l *lab) {
	leader, _ := l.leader(ctx)
	if leader == "" {
		return
	}
	lease := l.session + l.between(time.Second, 4*time.Second)
	_, _ = l.cl.HoldZooKeeper(ctx, leader, lease)
	l.cut(leader, l.others(leader), lease)
	l.rest(ctx, lease, lease+2*time.Second)
}

func (l *lab) cut(id cluster.NodeID, others []cluster.NodeID, lease time.Duration) {
	one := []cluster.NodeID{id}
	l.w.Network().Apply(host.Rule{Match: host.Match{From: one, To: others, Both: true}, Drop: 1}, lease)
	l.w.Network().Apply(host.Rule{Match: host.Match{From: others, To: one, Both: true}, Drop: 1}, lease)
}

// expireSessions ends sessions of leaders that live on.
func expireSessions(ctx context.Context, l *lab) {
	if leader, _ := l.leader(ctx); leader != "" {
		_ = l.cl.ExpireSession(ctx, leader)
	}
	l.rest(ctx, 100*time.Millisecond, 3*time.Second)
}

// oldCoordinator cuts the coordinator from ZooKeeper until another leads, has
// leaders move meanwhile, and heals it.
func oldCoordinator(ctx context.Context, l *lab) {
	id, err := l.cl.Coordinator(ctx)
	if err != nil || id == "" {
		return
	}
	_, _ = l.cl.HoldZooKeeper(ctx, id, l.session+l.between(500*time.Millisecond, 3*time.Second))
	l.c.Go(ctx, "ddl", func(ctx context.Context) { l.orderFrom(ctx, id) })
	l.rest(ctx, 0, l.session)
	tablet := l.someTablet()
	_ = l.cl.Kill(ctx, tablet)
	l.rest(ctx, l.session, 2*l.session)
	l.revive(ctx, tablet)
	l.rest(ctx, time.Second, 3*time.Second)
}

// orderFrom has a client that never heard of another coordinator create tables
// through one, for a while.
func (l *lab) orderFrom(ctx context.Context, coordinator cluster.NodeID) {
	conn, err := l.cl.DialCoordinator(ctx, "stale-client", coordinator)
	if err != nil {
		return
	}
	for range 4 {
		l.rest(ctx, 0, l.session)
		l.tables++
		spec := cluster.TableSpec{Name: fmt.Sprintf("t%d", l.tables), Kind: cluster.KVTable, Buckets: 1, Replication: 1, MinISR: 1}
		_ = l.within(ctx, 4*l.session, func(ctx context.Context) error {
			_, err := conn.(cluster.Admin).CreateTable(ctx, spec)
			return err
		})
	}
}

// losePower cuts the power of two tablets at once, a leader among them.
func losePower(ctx context.Context, l *lab) {
	leader, followers := l.leader(ctx)
	if leader == "" || len(followers) == 0 {
		return
	}
	victims := []cluster.NodeID{leader, followers[l.f.IntN(len(followers))]}
	for _, v := range victims {
		_ = l.cl.PowerLoss(ctx, v)
	}
	l.rest(ctx, 0, time.Second)
	l.revive(ctx, victims...)
	l.rest(ctx, time.Second, 4*time.Second)
}

// starve takes the followers away one after the other, and then the leader's
// power, so that what it acknowledged alone is lost.
func starve(ctx context.Context, l *lab) {
	leader, followers := l.leader(ctx)
	if leader == "" || len(followers) == 0 {
		return
	}
	for _, f := range followers {
		_ = l.cl.Kill(ctx, f)
	}
	l.rest(ctx, l.session, 2*l.session)
	_ = l.cl.PowerLoss(ctx, leader)
	l.revive(ctx, followers...)
	l.rest(ctx, l.session, 2*l.session)
	l.revive(ctx, leader)
	l.rest(ctx, 2*time.Second, 4*time.Second)
}

// rule keeps a rule of the network in force for the whole run.
func rule(r host.Rule) func(ctx context.Context, l *lab) {
	return func(_ context.Context, l *lab) { l.w.Network().Apply(r, l.length) }
}

// now and then applies a rule for a while.
func nowAndThen(r host.Rule) func(ctx context.Context, l *lab) {
	return again(func(ctx context.Context, l *lab) {
		lease := l.between(200*time.Millisecond, 3*time.Second)
		l.w.Network().Apply(r, lease)
		l.rest(ctx, lease, 2*lease)
	})
}

// replies matches the answers to requests.
func replies(apis ...string) host.Match { return host.Match{APIs: apis, Replies: true} }

func lost(share float64, m host.Match) host.Rule { return host.Rule{Match: m, Drop: share} }

func slow(m host.Match, upTo time.Duration) host.Rule {
	return host.Rule{Match: m, Jitter: upTo, Reorder: 0.5}
}

// planted is a bug in its scenario: the experiment, the checkers of which one must
// find it, and the bugs that stay planted in the control.
type planted struct {
	bug    string
	within int // seeds, of which one finds it; 0: random runs do not reach it
	with   []string
	by     []string
	setup  func(e *experiment)
}

func scenarios() []planted {
	near := func(f func(ctx context.Context, l *lab)) func(*experiment) {
		return func(e *experiment) { e.faults, e.session, e.length = f, 2*time.Second, 40*time.Second }
	}
	far := func(f func(ctx context.Context, l *lab)) func(*experiment) {
		return func(e *experiment) {
			near(f)(e)
			e.latency, e.jitter = 5*time.Millisecond, 45*time.Millisecond
			e.clients, e.pause = 12, 30*time.Millisecond
		}
	}
	storm := func(f func(ctx context.Context, l *lab)) func(*experiment) {
		return func(e *experiment) {
			near(f)(e)
			e.recovery, e.buckets, e.length, e.clients = 3*time.Second, 12, 15*time.Second, 4
		}
	}
	many := func(setup func(*experiment)) func(*experiment) {
		return func(e *experiment) {
			setup(e)
			e.buckets = 12
		}
	}
	steady := func(setup func(*experiment)) func(*experiment) {
		return func(e *experiment) {
			setup(e)
			e.gap = time.Second
		}
	}
	short := func(setup func(*experiment)) func(*experiment) {
		return func(e *experiment) {
			setup(e)
			e.timeout = 300 * time.Millisecond
		}
	}
	tight := []string{"client-no-backoff"}
	notify, update, fetch := protocol.APINotifyLeaderAndIsr, protocol.APIUpdateMetadata, protocol.APIFetchLog
	put := protocol.APIPutKv
	restarts, moves, holes := again(restartLeaders), again(moveTwice), again(blackHole)
	linearizable := []string{"linearizable", "invariants"}
	return []planted{
		{"advertise-before-admit", 1, tight, []string{"storms"}, storm(restarts)},
		{"repeat-acks-early", 1, tight, []string{"storms"}, storm(restarts)},
		{"cleared-on-rpc-failure", 1, tight, []string{"storms"}, storm(beside(restarts,
			nowAndThen(host.Rule{Match: host.Match{APIs: []string{notify}}, Refuse: true})))},
		{"stale-ack-clears-newer", 1, tight, []string{"storms"}, storm(beside(again(expireSessions),
			rule(slow(replies(notify), 4*time.Second))))},
		{"client-old-metadata", 0, tight, []string{"storms"}, near(beside(restarts, again(func(ctx context.Context, l *lab) {
			l.cut(l.someTablet(), []cluster.NodeID{"coordinator-0", "coordinator-1", "coordinator-2"}, 5*time.Second)
			l.rest(ctx, 5*time.Second, 6*time.Second)
		})))},
		{"client-new-sequence", 1, nil, linearizable, near(rule(lost(0.3, replies(put))))},
		{"epoch-always-zero", 1, nil, []string{"fencing"}, near(again(oldCoordinator))},
		{"unfenced-rpc", 1, nil, []string{"fencing"}, near(again(oldCoordinator))},
		{"unguarded-zk-writes", 1, nil, []string{"fencing"}, near(again(oldCoordinator))},
		{"ack-lost-pending-forever", 8, nil, []string{"converged"}, many(near(beside(restarts, rule(lost(0.95, replies(notify))))))},
		{"failover-withholds-serving-leaders", 1, []string{"client-old-metadata"}, []string{"availability"}, steady(near(beside(again(func(ctx context.Context, l *lab) {
			id, err := l.cl.Coordinator(ctx)
			if err != nil || id == "" || l.cl.Kill(ctx, id) != nil {
				return
			}
			l.rest(ctx, time.Second, 3*time.Second)
			l.revive(ctx, id)
			l.rest(ctx, time.Second, 4*time.Second)
		}), rule(slow(replies(notify), 5*time.Second)))))},
		{"late-none-beats-leader", 8, nil, []string{"converged", "invariants"}, many(near(beside(restarts,
			rule(slow(host.Match{APIs: []string{update}}, 3*time.Second)))))},
		{"bounce-unseen", 1, nil, []string{"converged"}, near(again(func(ctx context.Context, l *lab) {
			id, err := l.cl.Coordinator(ctx)
			if err != nil || id == "" {
				return
			}
			tablet := l.someTablet()
			_ = l.cl.Shutdown(ctx, tablet)
			_, _ = l.cl.HoldZooKeeper(ctx, id, l.between(100*time.Millisecond, time.Second))
			l.revive(ctx, tablet)
			l.rest(ctx, time.Second, 3*time.Second)
		}))},
		{"restarted-leader-kept", 1, nil, []string{"converged"}, near(again(bounceLeader))},
		{"standby-serves", 1, nil, []string{"fencing"}, near(again(askOldCoordinator))},
		{"s1-epoch-in-memory", 0, nil, linearizable, far(beside(moves, rule(slow(host.Match{APIs: []string{notify}}, 5*time.Second))))},
		{"s1-restarted-leader-leads-on", 0, []string{"restarted-leader-kept"}, linearizable, far(beside(again(losePower), restarts))},
		{"s2-unsynced-counts", 3, nil, linearizable, near(again(losePower))},
		{"s3-revert-refused-isr", 1, nil, linearizable, only(joinUnknown)},
		{"s4-follower-hw-is-its-end", 3, nil, linearizable, far(moves)},
		{"s4-min-isr-ignored", 0, nil, linearizable, near(again(starve))},
		{"s4-ends-of-former-epochs", 6, nil, linearizable, func(e *experiment) {
			only(trustedEnds)(e)
			e.timeout = 8 * time.Second
		}},
		{"s5-join-at-hw", 3, nil, linearizable, only(joinTooEarly)},
		{"s6-read-before-epoch-start", 3, nil, linearizable, far(beside(again(isolate), rule(slow(host.Match{APIs: []string{fetch}, Both: true}, 4*time.Second))))},
		{"s7-unconfirmed-reads", 1, nil, linearizable, far(again(isolate))},
		{"s7-arrival-confirms", 1, nil, linearizable, only(staleEcho)},
		{"s7-committed-isr-confirms", 1, nil, linearizable, func(e *experiment) {
			only(twoHalves)(e)
			e.minISR = 1
		}},
		{"s7-bare-counter", 1, nil, linearizable, func(e *experiment) {
			only(echoOfAFormerLife)(e)
			e.minISR = 1
		}},
		{"s8-truncate-to-hw", 3, nil, linearizable, far(beside(moves, rule(slow(host.Match{APIs: []string{notify}}, 3*time.Second))))},
		{"s8-unmatched-reply", 0, nil, linearizable, far(beside(moves, rule(slow(replies(fetch), 4*time.Second))))},
		{"s9-no-compare-and-set", 1, nil, linearizable, near(again(lostISRWrite))},
		{"s10-duplicate-at-once", 3, nil, linearizable, far(beside(again(isolate), restarts, rule(lost(0.4, replies(put)))))},
		{"s10-dedupe-survives-truncation", 1, nil, linearizable, func(e *experiment) {
			only(forgottenBatch)(e)
			e.timeout = 15 * time.Second
		}},
		{"not-leader-after-append", 3, nil, linearizable, short(far(beside(again(expireSessions), holes)))},
	}
}
