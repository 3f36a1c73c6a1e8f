package coordinator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

func policyWith(f func(p *protocol.CoordinatorPolicy)) *protocol.CoordinatorPolicy {
	p := protocol.Sound().Coordinator
	f(&p)
	return &p
}

// namedAt lists the leader epochs at which a tablet was told a leader.
func (f *fakeTablet) namedAt(id cluster.BucketID) map[int]bool {
	named := map[int]bool{}
	for _, b := range f.told {
		if b.Bucket == id && b.Leader != protocol.NoLeader {
			named[b.LeaderEpoch] = true
		}
	}
	return named
}

// leadWith has a new table whose leader answers by the script, and returns its
// one bucket and leader.
func (l *lab) leadWith(ctx context.Context, in cluster.NodeID, script func(f *fakeTablet, b protocol.BucketState) protocol.BucketResult) (cluster.BucketID, protocol.LeaderAndIsr) {
	l.Helper()
	for _, f := range l.tablets {
		f.onNotify = func(b protocol.BucketState) protocol.BucketResult {
			if b.LAI.Leader == f.server {
				return script(f, b)
			}
			return f.success(b)
		}
	}
	id := l.create(ctx, in, tableSpec("t", 1, 3))[0]
	var lai protocol.LeaderAndIsr
	l.until(ctx, 5*time.Second, "an election", func() bool {
		var ok bool
		lai, ok = l.held(ctx, id)
		return ok
	})
	return id, lai
}

// TestPendingLeaderIsWithheld is seed question 1 of the project: nobody is told
// of a leader that has not admitted its role, however long that takes, and all
// are told soon after.
func TestPendingLeaderIsWithheld(t *testing.T) {
	for _, withhold := range []bool{true, false} {
		p := policyWith(func(p *protocol.CoordinatorPolicy) { p.WithholdPending = withhold })
		run(t, setup{seed: 1, coordinators: 1, tablets: 3, policy: p}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			ready, lose := false, false
			id, lai := l.leadWith(ctx, in, func(f *fakeTablet, b protocol.BucketState) protocol.BucketResult {
				if !ready {
					return f.inProgress(b)
				}
				return f.success(b)
			})
			for _, wait := range []time.Duration{time.Second, 5 * time.Second} {
				l.sleep(ctx, wait)
				if lose {
					continue
				}
				for _, f := range l.tablets {
					told, ok := f.metadata[id]
					assert.True(t, ok)
					assert.Equal(t, lai.LeaderEpoch, told.LeaderEpoch)
					if withhold {
						assert.Equal(t, protocol.NoLeader, told.Leader)
					} else {
						assert.Equal(t, lai.Leader, told.Leader, "bug: advertise-before-admit")
					}
				}
				m := l.metadataOf(ctx, in, id)
				assert.Equal(t, withhold, m.Leader == protocol.NoLeader, "its own answer, too")
				// From now on every other answer is lost.
				lose = true
				l.w.Network().Apply(host.Rule{Drop: 0.5, Match: host.Match{
					From: []cluster.NodeID{l.tablets[lai.Leader].node.ID()}, APIs: []string{protocol.APINotifyLeaderAndIsr}, Replies: true,
				}}, time.Hour)
			}
			ready = true
			l.until(ctx, 15*time.Second, "all tablets to be told", func() bool {
				for _, f := range l.tablets {
					if f.metadata[id].Leader != lai.Leader {
						return false
					}
				}
				return true
			})
		})
	}
}

// TestPendingTime is the convergence predicate: not longer than two resends after
// the leader serves, though the first notification was lost.
func TestPendingTime(t *testing.T) {
	run(t, setup{seed: 2, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		undo := l.w.Network().Apply(host.Rule{Drop: 1, Match: host.Match{APIs: []string{protocol.APINotifyLeaderAndIsr}, Both: true}}, time.Hour)
		id, _ := l.leadWith(ctx, in, (*fakeTablet).success)
		l.sleep(ctx, 10*time.Second)
		assert.Equal(t, protocol.NoLeader, l.metadataOf(ctx, in, id).Leader)
		undo()
		at := l.c.Now()
		l.awaitLed(ctx, in, id)
		d := DefaultTiming()
		assert.Less(t, l.c.Now()-at, 2*(d.NotifyWait+d.ResendMax))
	})
}

// TestLostAnswerAndItsBugs loses the first answers of the leader.
func TestLostAnswerAndItsBugs(t *testing.T) {
	for _, c := range []struct {
		name    string
		p       *protocol.CoordinatorPolicy
		named   bool // while the leader is not ready, and its answers are lost
		inTheLo bool // named in the end
	}{
		{"sound", policyWith(func(*protocol.CoordinatorPolicy) {}), false, true},
		{"cleared-on-rpc-failure", policyWith(func(p *protocol.CoordinatorPolicy) { p.KeepPendingOnRPCFailure = false }), true, true},
		{"ack-lost-pending-forever", policyWith(func(p *protocol.CoordinatorPolicy) { p.ResendNotify = false }), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, setup{seed: 3, coordinators: 1, tablets: 3, policy: c.p, timing: Timing{NotifyTimeout: 2 * time.Second}},
				func(ctx context.Context, l *lab) {
					in := l.office(ctx)
					ready := false
					undo := l.w.Network().Apply(host.Rule{Drop: 1, Match: host.Match{APIs: []string{protocol.APINotifyLeaderAndIsr}, Replies: true}}, time.Hour)
					id, lai := l.leadWith(ctx, in, func(f *fakeTablet, b protocol.BucketState) protocol.BucketResult {
						if !ready {
							return f.inProgress(b)
						}
						return f.success(b)
					})
					l.sleep(ctx, 8*time.Second)
					assert.Equal(t, c.named, l.metadataOf(ctx, in, id).Leader == lai.Leader)
					undo()
					ready = true
					l.sleep(ctx, 8*time.Second)
					assert.Equal(t, c.inTheLo, l.metadataOf(ctx, in, id).Leader == lai.Leader)
				})
		})
	}
}

// TestStaleSuccess has a leader that admitted leader epoch 0 elected again at a
// higher one, which it does not admit; the answers to the old one are repeated.
func TestStaleSuccess(t *testing.T) {
	for _, match := range []bool{true, false} {
		p := policyWith(func(p *protocol.CoordinatorPolicy) { p.MatchAckKey = match })
		run(t, setup{seed: 4, coordinators: 1, tablets: 3, policy: p}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			id, first := l.leadWith(ctx, in, (*fakeTablet).success)
			l.awaitLed(ctx, in, id)
			for _, f := range l.tablets {
				f.onNotify = func(b protocol.BucketState) protocol.BucketResult {
					r := f.success(b)
					if b.LAI.Leader == f.server && b.LAI.LeaderEpoch > first.LeaderEpoch {
						r.LeaderEpoch = first.LeaderEpoch // late
					}
					return r
				}
			}
			require.Equal(t, protocol.CodeNone, l.ddl(ctx, in, &protocol.MoveLeader{Bucket: id, To: -1}))
			moved, _ := l.held(ctx, id)
			assert.NotEqual(t, first.Leader, moved.Leader)
			assert.Equal(t, first.LeaderEpoch+1, moved.LeaderEpoch)
			l.sleep(ctx, 3*time.Second)
			assert.Equal(t, match, l.metadataOf(ctx, in, id).Leader == protocol.NoLeader, "bug: stale-ack-clears-newer")
		})
	}
}

// TestFailedActivationElectsAnother: a leader that cannot activate is replaced;
// one without a substitute is tried again.
func TestFailedActivationElectsAnother(t *testing.T) {
	run(t, setup{seed: 5, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		broken := map[int]bool{0: true, 1: true}
		fail := func(f *fakeTablet, b protocol.BucketState) protocol.BucketResult {
			if broken[f.server] {
				r := f.inProgress(b)
				r.Status, r.Code = protocol.NotifyFailed, protocol.CodeStorage
				return r
			}
			return f.success(b)
		}
		id, _ := l.leadWith(ctx, in, fail)
		lai := l.awaitLed(ctx, in, id)
		assert.Equal(t, 2, lai.Leader)
		require.NoError(t, l.tablets[2].node.Kill(ctx))
		l.until(ctx, 10*time.Second, "another leader", func() bool {
			now, _ := l.held(ctx, id)
			return now.Leader != 2
		})
		l.sleep(ctx, 10*time.Second)
		stuck, _ := l.held(ctx, id)
		assert.Less(t, stuck.LeaderEpoch, 40, "back-off between failures")
		broken[0], broken[1] = false, false
		l.awaitLed(ctx, in, id)
	})
}

// TestFailoverConfirmsBeforeItSpeaks: a new coordinator says nothing of a bucket
// until its leader has confirmed, and never "no leader" at a leader epoch whose
// leader was named.
func TestFailoverConfirmsBeforeItSpeaks(t *testing.T) {
	for _, silent := range []bool{true, false} {
		p := policyWith(func(p *protocol.CoordinatorPolicy) { p.SilentUntilConfirmed = silent })
		run(t, setup{seed: 6, coordinators: 2, tablets: 3, policy: p}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			confirm := true
			id, lai := l.leadWith(ctx, in, func(f *fakeTablet, b protocol.BucketState) protocol.BucketResult {
				if !confirm {
					return f.inProgress(b)
				}
				return f.success(b)
			})
			l.awaitLed(ctx, in, id)
			confirm = false
			require.NoError(t, l.node(in).Kill(ctx))
			second := l.awaitOffice(ctx, in)
			l.sleep(ctx, 3*time.Second)
			now, _ := l.held(ctx, id)
			assert.Equal(t, lai, now, "the LAI stands as it was")
			for _, f := range l.tablets {
				assert.Positive(t, f.fromEpoch[1], "told again, at the same leader epoch")
				told := f.metadata[id]
				assert.Equal(t, silent, told.Leader == lai.Leader, "bug: failover-withholds-serving-leaders")
			}
			m := l.metadataOf(ctx, second, id)
			assert.Equal(t, silent, m == nil)
			confirm = true
			l.awaitLed(ctx, second, id)
		})
	}
}

// TestFailoverDuringActivation: the set of pending activations is lost with a
// coordinator, and its successor does not name the leader all the same.
func TestFailoverDuringActivation(t *testing.T) {
	run(t, setup{seed: 7, coordinators: 2, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		ready := false
		id, lai := l.leadWith(ctx, in, func(f *fakeTablet, b protocol.BucketState) protocol.BucketResult {
			if !ready {
				return f.inProgress(b)
			}
			return f.success(b)
		})
		require.NoError(t, l.node(in).Kill(ctx))
		second := l.awaitOffice(ctx, in)
		l.sleep(ctx, 5*time.Second)
		for _, f := range l.tablets {
			assert.Empty(t, f.namedAt(id))
		}
		ready = true
		assert.Equal(t, lai, l.awaitLed(ctx, second, id))
	})
}

// TestRestartedLeaderIsElectedAgain kills a leader and lets it come back, with
// the coordinator looking or not. It never leads on at the old leader epoch.
func TestRestartedLeaderIsElectedAgain(t *testing.T) {
	for _, blind := range []bool{false, true} {
		run(t, setup{seed: 8, coordinators: 1, tablets: 1}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			id := l.create(ctx, in, tableSpec("t", 1, 1))[0]
			before := l.awaitLed(ctx, in, id)
			was := l.tablets[0].incarnation
			undo := host.Undo(func() {})
			if blind {
				// The watch tells of the first change only, and late.
				undo = l.w.ZooKeeper(in).DelayWatches(sessionTimeout+2*time.Second, time.Minute)
			}
			require.NoError(t, l.w.ZooKeeper(l.tablets[0].node.ID()).Expire(ctx, host.ByTakeover))
			l.until(ctx, 10*time.Second, "a new registration", func() bool { return l.tablets[0].incarnation != was })
			undo()
			l.until(ctx, 20*time.Second, "an election", func() bool {
				now, _ := l.held(ctx, id)
				return now.Leader == 0 && now.LeaderEpoch > before.LeaderEpoch
			})
			after := l.awaitLed(ctx, in, id)
			if blind {
				assert.Equal(t, before.LeaderEpoch+1, after.LeaderEpoch, "the czxid alone told it")
			}
		})
	}
}

// TestBounceDuringFailover: the leader restarts while nobody is in office. Its
// registration is younger than the LAI, so it is elected again at once.
func TestBounceDuringFailover(t *testing.T) {
	run(t, setup{seed: 9, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		id := l.create(ctx, in, tableSpec("t", 1, 3))[0]
		before := l.awaitLed(ctx, in, id)
		require.NoError(t, l.node(in).Kill(ctx))
		leader := l.tablets[before.Leader]
		was := leader.incarnation
		require.NoError(t, l.w.ZooKeeper(leader.node.ID()).Expire(ctx, host.ByTakeover))
		l.until(ctx, 10*time.Second, "a new registration", func() bool { return leader.incarnation != was })
		require.NoError(t, l.node(in).Start(ctx))
		l.until(ctx, 20*time.Second, "an election", func() bool {
			now, _ := l.held(ctx, id)
			return now.LeaderEpoch > before.LeaderEpoch
		})
		l.awaitLed(ctx, in, id)
	})
}

// TestBugsOfRestart: what is dropped is really broken.
func TestBugsOfRestart(t *testing.T) {
	t.Run("restarted-leader-kept", func(t *testing.T) {
		p := policyWith(func(p *protocol.CoordinatorPolicy) { p.ReelectRestarted = false })
		run(t, setup{seed: 10, coordinators: 1, tablets: 1, policy: p}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			id := l.create(ctx, in, tableSpec("t", 1, 1))[0]
			before := l.awaitLed(ctx, in, id)
			l.tablets[0].onNotify = func(b protocol.BucketState) protocol.BucketResult {
				r := l.tablets[0].success(b)
				if b.LAI.LeaderEpoch == before.LeaderEpoch {
					r.Status, r.Code = protocol.NotifyFailed, protocol.CodeFencedLeaderEpoch // rule S1
				}
				return r
			}
			l.w.ZooKeeper(in).DelayWatches(2*time.Second, 3*time.Second)
			require.NoError(t, l.w.ZooKeeper(l.tablets[0].node.ID()).Expire(ctx, host.ByTakeover))
			l.sleep(ctx, 15*time.Second)
			after, _ := l.held(ctx, id)
			assert.Equal(t, before, after, "nobody serves, for ever")
		})
	})
	t.Run("bounce-unseen", func(t *testing.T) {
		p := policyWith(func(p *protocol.CoordinatorPolicy) { p.SeeBounce = false })
		run(t, setup{seed: 11, coordinators: 1, tablets: 1, policy: p}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			id := l.create(ctx, in, tableSpec("t", 1, 1))[0]
			before := l.awaitLed(ctx, in, id)
			was := l.tablets[0].incarnation
			l.w.ZooKeeper(in).DelayWatches(4*time.Second, time.Minute)
			require.NoError(t, l.w.ZooKeeper(l.tablets[0].node.ID()).Expire(ctx, host.ByTakeover))
			l.sleep(ctx, 15*time.Second)
			require.NotEqual(t, was, l.tablets[0].incarnation)
			after, _ := l.held(ctx, id)
			assert.Equal(t, before, after)
		})
	})
}

// TestNotifyEvents: every try and its result is reported.
func TestNotifyEvents(t *testing.T) {
	l := run(t, setup{seed: 12, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		n := 0
		id, _ := l.leadWith(ctx, in, func(f *fakeTablet, b protocol.BucketState) protocol.BucketResult {
			if n++; n < 3 {
				return f.inProgress(b)
			}
			return f.success(b)
		})
		l.awaitLed(ctx, in, id)
	})
	results := map[string]int{}
	lais := 0
	for _, e := range l.events {
		switch e := e.Event.(type) {
		case history.Notify:
			results[e.Result]++
		case history.LAI:
			lais++
			assert.Positive(t, e.Zxid)
			assert.Len(t, e.Replicas, 3)
		}
	}
	assert.Equal(t, map[string]int{"sent": 5, "in progress": 2, "ok": 3}, results)
	assert.Equal(t, 1, lais)
}
