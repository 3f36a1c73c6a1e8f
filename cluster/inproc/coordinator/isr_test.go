package coordinator

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// propose sends a leader's proposal built on lai, changed by f.
func (l *lab) propose(ctx context.Context, in cluster.NodeID, id cluster.BucketID, lai protocol.LeaderAndIsr, isr []int, f func(p *protocol.IsrProposal)) protocol.IsrResult {
	l.Helper()
	p := protocol.IsrProposal{
		Bucket: id, LeaderEpoch: lai.LeaderEpoch, BucketEpoch: lai.BucketEpoch, CoordinatorEpoch: lai.CoordinatorEpoch, NewISR: isr,
	}
	if f != nil {
		f(&p)
	}
	m := &protocol.AdjustIsr{Server: lai.Leader, Incarnation: l.tablets[lai.Leader].incarnation, Buckets: []protocol.IsrProposal{p}}
	reply, err := call1[*protocol.AdjustIsrReply](ctx, l, in, m)
	require.NoError(l, err)
	require.Equal(l, protocol.CodeNone, reply.Code)
	require.Len(l, reply.Buckets, 1)
	return reply.Buckets[0]
}

func without(isr []int, server int) []int {
	return slices.DeleteFunc(slices.Clone(isr), func(s int) bool { return s == server })
}

func TestAdjustISR(t *testing.T) {
	run(t, setup{seed: 1, coordinators: 2, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		id := l.create(ctx, in, tableSpec("t", 1, 3))[0]
		lai := l.awaitLed(ctx, in, id)
		follower := without(lai.ISR, lai.Leader)[0]

		r := l.propose(ctx, in, id, lai, without(lai.ISR, follower), nil)
		assert.Equal(t, protocol.CodeNone, r.Code)
		held, _ := l.held(ctx, id)
		assert.Equal(t, held, r.LAI, "the answer is what ZooKeeper holds")
		assert.Equal(t, lai.BucketEpoch+1, held.BucketEpoch)
		assert.Equal(t, lai.LeaderEpoch, held.LeaderEpoch)

		r = l.propose(ctx, in, id, lai, lai.ISR, nil)
		assert.Equal(t, protocol.CodeInvalidUpdateVersion, r.Code, "built on what is past")
		assert.Equal(t, held, r.LAI, "it learns what its lost answer would have said")

		r = l.propose(ctx, in, id, held, held.ISR, nil)
		assert.Equal(t, protocol.CodeNone, r.Code, "a proposal is given up by proposing the committed ISR")
		assert.Equal(t, held.BucketEpoch+1, r.LAI.BucketEpoch)

		r = l.propose(ctx, in, "t#99/0", held, held.ISR, nil)
		assert.Equal(t, protocol.CodeUnknownTableOrBucket, r.Code)

		// The outcome of the transaction is unknown for a while.
		now, _ := l.held(ctx, id)
		l.w.ZooKeeper(in).CutAfter("multi", time.Minute)
		r = l.propose(ctx, in, id, now, lai.ISR, nil)
		assert.Equal(t, protocol.CodeNone, r.Code)
		assert.Equal(t, now.BucketEpoch+1, r.LAI.BucketEpoch)

		// A new coordinator accepts a proposal built on the LAI of its predecessor.
		now, _ = l.held(ctx, id)
		require.NoError(t, l.node(in).Kill(ctx))
		second := l.awaitOffice(ctx, in)
		r = l.propose(ctx, second, id, now, now.ISR, nil)
		assert.Equal(t, protocol.CodeNone, r.Code)
		assert.EqualValues(t, 1, r.LAI.CoordinatorEpoch)
		r = l.propose(ctx, second, id, r.LAI, now.ISR, func(p *protocol.IsrProposal) { p.CoordinatorEpoch = 0 })
		assert.Equal(t, protocol.CodeInvalidCoordinator, r.Code)
	})
}

// TestNoCompareAndSet is the planted bug: a proposal that was checked before an
// election is written after it, and the leader epoch goes back.
func TestNoCompareAndSet(t *testing.T) {
	for _, compare := range []bool{true, false} {
		p := policyWith(func(p *protocol.CoordinatorPolicy) { p.CompareAndSetLAI = compare })
		run(t, setup{seed: 2, coordinators: 1, tablets: 3, policy: p}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			id := l.create(ctx, in, tableSpec("t", 1, 3))[0]
			lai := l.awaitLed(ctx, in, id)
			l.w.ZooKeeper(in).Delay(300*time.Millisecond, time.Minute) // the election takes its time
			l.c.Go(ctx, "move", func(ctx context.Context) {
				_, _ = call1[*protocol.CodeReply](ctx, l, in, &protocol.MoveLeader{Bucket: id, To: -1})
			})
			l.sleep(ctx, 100*time.Millisecond)
			r := l.propose(ctx, in, id, lai, lai.ISR[:1], func(p *protocol.IsrProposal) { p.NewISR = []int{lai.Leader} })
			held, _ := l.held(ctx, id)
			if compare {
				assert.Equal(t, protocol.CodeFencedLeaderEpoch, r.Code)
				assert.Equal(t, lai.LeaderEpoch+1, held.LeaderEpoch)
			} else {
				assert.Equal(t, protocol.CodeNone, r.Code)
				assert.Equal(t, lai.LeaderEpoch, held.LeaderEpoch)
			}
		})
	}
}

func TestControlledShutdown(t *testing.T) {
	run(t, setup{seed: 3, coordinators: 2, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		ids := append(l.create(ctx, in, tableSpec("wide", 6, 3)), l.create(ctx, in, tableSpec("alone", 3, 1))...)
		for _, id := range ids {
			l.awaitLed(ctx, in, id)
		}
		leaving := l.tablets[1]
		reply, err := call1[*protocol.ControlledShutdownReply](ctx, l, in, &protocol.ControlledShutdown{Server: 1, Incarnation: leaving.incarnation - 1})
		require.NoError(t, err)
		assert.Equal(t, protocol.CodeNotAttempted, reply.Code, "a former life")
		reply, err = call1[*protocol.ControlledShutdownReply](ctx, l, in, &protocol.ControlledShutdown{Server: 1, Incarnation: leaving.incarnation})
		require.NoError(t, err)
		require.Len(t, reply.Remaining, 1, "nobody else can lead what it alone has")
		for _, id := range ids {
			now := l.awaitLed(ctx, in, id)
			if id == reply.Remaining[0] {
				assert.Equal(t, 1, now.Leader)
				continue
			}
			assert.NotEqual(t, 1, now.Leader)
			assert.NotContains(t, now.ISR, 1)
			r := l.propose(ctx, in, id, now, append(slices.Clone(now.ISR), 1), nil)
			assert.NotEqual(t, protocol.CodeNone, r.Code, "it does not come back")
		}
		standby := l.coords[0].ID()
		if standby == in {
			standby = l.coords[1].ID()
		}
		reply, err = call1[*protocol.ControlledShutdownReply](ctx, l, standby, &protocol.ControlledShutdown{Server: 1})
		require.NoError(t, err)
		assert.Equal(t, protocol.CodeNotCoordinatorLeader, reply.Code)

		// Restarted, it is as good as any other.
		require.NoError(t, leaving.node.Kill(ctx))
		require.NoError(t, leaving.node.Start(ctx))
		was := leaving.incarnation
		l.until(ctx, 10*time.Second, "its registration", func() bool { return leaving.incarnation != was })
		now := l.awaitLed(ctx, in, ids[0])
		l.until(ctx, 10*time.Second, "it to be accepted again", func() bool {
			now, _ = l.held(ctx, ids[0])
			return l.propose(ctx, in, ids[0], now, []int{0, 1, 2}, nil).Code == protocol.CodeNone
		})
	})
}

func TestMoveLeader(t *testing.T) {
	run(t, setup{seed: 4, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		id := l.create(ctx, in, tableSpec("t", 1, 3))[0]
		lai := l.awaitLed(ctx, in, id)
		to := without(lai.ISR, lai.Leader)[1]
		assert.Equal(t, protocol.CodeNone, l.ddl(ctx, in, &protocol.MoveLeader{Bucket: id, To: to}))
		moved := l.awaitLed(ctx, in, id)
		assert.Equal(t, to, moved.Leader)
		assert.Equal(t, lai.ISR, moved.ISR)
		assert.Equal(t, protocol.CodeIneligibleReplica, l.ddl(ctx, in, &protocol.MoveLeader{Bucket: id, To: to}), "it leads already")
		assert.Equal(t, protocol.CodeUnknownTableOrBucket, l.ddl(ctx, in, &protocol.MoveLeader{Bucket: "x#1/0", To: -1}))
		single := l.create(ctx, in, tableSpec("single", 1, 1))[0]
		l.awaitLed(ctx, in, single)
		assert.Equal(t, protocol.CodeIneligibleReplica, l.ddl(ctx, in, &protocol.MoveLeader{Bucket: single, To: -1}))
	})
}

// TestStandbyServes is the planted bug: two coordinators execute requests, and
// the one in office finds out.
func TestStandbyServes(t *testing.T) {
	p := policyWith(func(p *protocol.CoordinatorPolicy) { p.StandbyRefuses = false })
	run(t, setup{seed: 5, coordinators: 2, tablets: 3, policy: p}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		standby := l.coords[0].ID()
		if standby == in {
			standby = l.coords[1].ID()
		}
		id := l.create(ctx, in, tableSpec("first", 1, 3))[0]
		lai := l.awaitLed(ctx, in, id)
		assert.Equal(t, protocol.CodeNone, l.ddl(ctx, standby, &protocol.CreateTable{Spec: tableSpec("second", 1, 3)}))
		l.awaitLed(ctx, in, cluster.NewBucket("second", 1, "", -1, 0))
		r := l.propose(ctx, standby, id, lai, []int{lai.Leader}, nil)
		assert.Equal(t, protocol.CodeNone, r.Code)
		// The one in office learns of that by a lost compare-and-set.
		require.Equal(t, protocol.CodeIneligibleReplica, l.ddl(ctx, in, &protocol.MoveLeader{Bucket: id, To: without(lai.ISR, lai.Leader)[0]}))
		now, _ := l.held(ctx, id)
		assert.Equal(t, []int{lai.Leader}, now.ISR)
		assert.Equal(t, protocol.CodeNone, l.ddl(ctx, standby, &protocol.DropTable{Name: "first"}))
		l.until(ctx, 5*time.Second, "the one in office to notice", func() bool { return l.metadataOf(ctx, in, id) == nil })
	})
}

// TestDisconnectedFollowerLeavesTheISR: the death of a follower costs one LAI,
// and its return is told to it.
func TestDeadFollowerLeavesTheISR(t *testing.T) {
	run(t, setup{seed: 6, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		id := l.create(ctx, in, tableSpec("t", 1, 3))[0]
		lai := l.awaitLed(ctx, in, id)
		dead := without(lai.ISR, lai.Leader)[0]
		require.NoError(t, l.tablets[dead].node.Kill(ctx))
		l.until(ctx, 10*time.Second, "a smaller ISR", func() bool {
			now, _ := l.held(ctx, id)
			return slices.Equal(now.ISR, without(lai.ISR, dead))
		})
		now, _ := l.held(ctx, id)
		assert.Equal(t, lai.LeaderEpoch, now.LeaderEpoch)
		l.until(ctx, 5*time.Second, "the leader to be told", func() bool {
			return l.tablets[lai.Leader].roles[id].BucketEpoch == now.BucketEpoch
		})
		assert.Equal(t, lai.Leader, l.metadataOf(ctx, in, id).Leader, "clients notice nothing")
		// All die: the ISR stays as it is, and whoever of it returns first leads.
		for _, s := range now.ISR {
			require.NoError(t, l.tablets[s].node.Kill(ctx))
		}
		l.until(ctx, 10*time.Second, "no leader", func() bool {
			none, _ := l.held(ctx, id)
			return none.Leader == protocol.NoLeader
		})
		none, _ := l.held(ctx, id)
		require.NoError(t, l.tablets[dead].node.Start(ctx))
		l.sleep(ctx, 5*time.Second)
		still, _ := l.held(ctx, id)
		assert.Equal(t, none, still, "who is not in the ISR never leads")
		assert.Contains(t, l.tablets[dead].roles, id)
		back := none.ISR[0]
		require.NoError(t, l.tablets[back].node.Start(ctx))
		l.until(ctx, 10*time.Second, "the returned one to lead", func() bool {
			again, _ := l.held(ctx, id)
			return again.Leader == back && again.LeaderEpoch == none.LeaderEpoch+1
		})
	})
}

// TestControlRequestsAreResent loses half of all control requests and answers.
func TestControlRequestsAreResent(t *testing.T) {
	for seed := range uint64(5) {
		run(t, setup{seed: seed, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			lossy := host.Match{Both: true, APIs: []string{protocol.APINotifyLeaderAndIsr, protocol.APIUpdateMetadata, protocol.APIStopReplica}}
			l.w.Network().Apply(host.Rule{Match: lossy, Drop: 0.5, Duplicate: 0.2, Reorder: 0.3, Jitter: 200 * time.Millisecond}, time.Hour)
			ids := l.create(ctx, in, tableSpec("t", 3, 3))
			l.until(ctx, 60*time.Second, "all to be told of all", func() bool {
				for _, f := range l.tablets {
					for _, id := range ids {
						lai, _ := l.held(ctx, id)
						if f.roles[id].LeaderEpoch != lai.LeaderEpoch || f.metadata[id].Leader != lai.Leader {
							return false
						}
					}
				}
				return true
			})
			require.Equal(t, protocol.CodeNone, l.ddl(ctx, in, &protocol.DropTable{Name: "t"}))
			l.until(ctx, 60*time.Second, "all to be stopped", func() bool {
				left, _, err := l.s.Children(ctx, protocol.TableAssignmentsPath)
				return err == nil && len(left) == 0
			})
			for _, f := range l.tablets {
				for _, id := range ids {
					assert.Positive(t, f.stops[id])
				}
			}
		})
	}
}
