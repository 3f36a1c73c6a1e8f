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

func TestOneOfThreeLeads(t *testing.T) {
	l := run(t, setup{seed: 1, coordinators: 3, tablets: 3}, func(ctx context.Context, l *lab) {
		first := l.office(ctx)
		for _, n := range l.coords {
			if n.ID() != first {
				assert.Equal(t, protocol.CodeNotCoordinatorLeader, l.ddl(ctx, n.ID(), &protocol.CreateTable{Spec: tableSpec("t", 1, 1)}))
				reply, err := call1[*protocol.AdjustIsrReply](ctx, l, n.ID(), &protocol.AdjustIsr{})
				require.NoError(t, err)
				assert.Equal(t, protocol.CodeNotCoordinatorLeader, reply.Code)
			}
		}
		data, _, err := l.s.Get(ctx, protocol.ActivePath)
		require.NoError(t, err)
		active, err := protocol.DecodeCoordinatorNode(data)
		require.NoError(t, err)
		assert.Equal(t, first, active.Node())

		require.NoError(t, l.node(first).Kill(ctx))
		second := l.awaitOffice(ctx, first)
		require.NoError(t, l.node(second).Stop(ctx))
		third := l.awaitOffice(ctx, second)
		assert.NotEqual(t, first, third)
		require.NoError(t, l.node(first).Start(ctx))
		require.NoError(t, l.node(second).Start(ctx))
		l.sleep(ctx, 5*time.Second)
		assert.Equal(t, third, l.office(ctx), "who comes back waits for its turn")
		l.until(ctx, 5*time.Second, "tablets to hear the third", func() bool { return l.tablets[0].epoch == 2 })
	})
	var opened []history.Term
	for _, e := range l.events {
		if term, ok := e.Event.(history.Term); ok && term.State == history.TermElected {
			opened = append(opened, term)
		}
	}
	require.Len(t, opened, 3)
	for i, term := range opened {
		assert.EqualValues(t, i, term.Epoch)
		assert.Positive(t, term.Session)
		if i > 0 {
			assert.Greater(t, term.Zxid, opened[i-1].Zxid)
		}
	}
	assert.Contains(t, l.terms(), opened[1].Coordinator+" resigned 1", "a graceful stop gives the office back")
}

// TestGracefulStopIsQuick: the successor does not wait for a session to expire.
func TestGracefulStopIsQuick(t *testing.T) {
	run(t, setup{seed: 2, coordinators: 2, tablets: 1}, func(ctx context.Context, l *lab) {
		first := l.office(ctx)
		at := l.c.Now()
		require.NoError(t, l.node(first).Stop(ctx))
		l.awaitOffice(ctx, first)
		assert.Less(t, l.c.Now()-at, sessionTimeout/2)
	})
}

// TestOldLeaderIsFenced cuts the leading coordinator from ZooKeeper, lets another
// take over, and heals: seed question 2 of the project.
func TestOldLeaderIsFenced(t *testing.T) {
	for _, fences := range []bool{true, false} {
		var first cluster.NodeID
		l := run(t, setup{seed: 3, coordinators: 3, tablets: 3}, func(ctx context.Context, l *lab) {
			for _, f := range l.tablets {
				f.fences = fences
			}
			first = l.office(ctx)
			ids := l.create(ctx, first, tableSpec("t", 2, 3))
			l.awaitLed(ctx, first, ids[0])
			release := l.w.ZooKeeper(first).Hold(time.Minute)
			second := l.awaitOffice(ctx, first)
			if fences {
				l.until(ctx, 5*time.Second, "a tablet's refusal to end the old term", func() bool {
					m, err := call1[*protocol.GetMetadataReply](ctx, l, first, &protocol.GetMetadata{})
					return err == nil && m.Code == protocol.CodeNotCoordinatorLeader
				})
			} else {
				l.sleep(ctx, 3*time.Second)
				m, err := call1[*protocol.GetMetadataReply](ctx, l, first, &protocol.GetMetadata{})
				require.NoError(t, err)
				assert.Equal(t, protocol.CodeNone, m.Code, "it cannot know: nobody told it")
				assert.Equal(t, protocol.CodeNotCoordinatorLeader, l.ddl(ctx, first, &protocol.DropTable{Name: "t"}),
					"but it takes no request that it could not write")
			}
			release()
			l.sleep(ctx, 3*time.Second)
			assert.Equal(t, second, l.office(ctx))
			require.Equal(t, protocol.CodeNone, l.ddl(ctx, second, &protocol.DropTable{Name: "t"}))
		})
		l.assertFenced()
		if fences {
			assert.Contains(t, l.terms(), string(first)+" fenced 0")
		}
	}
}

// assertFenced holds ZooKeeper's own order: no session of a term wrote after the
// transaction that opened a later one.
func (l *lab) assertFenced() {
	l.Helper()
	var opened []history.Term
	for _, e := range l.events {
		if term, ok := e.Event.(history.Term); ok && term.State == history.TermElected {
			opened = append(opened, term)
		}
	}
	for i, term := range opened[:len(opened)-1] {
		if term.Session != opened[i+1].Session {
			assert.Empty(l, l.writesAfter(cluster.NodeID(term.Coordinator), term.Session, opened[i+1].Zxid))
		}
	}
}

// TestExpiredLeaderComesBackAsNewLife expires the leader's session at the server.
func TestExpiredLeaderComesBackAsNewLife(t *testing.T) {
	l := run(t, setup{seed: 4, coordinators: 2, tablets: 1}, func(ctx context.Context, l *lab) {
		first := l.office(ctx)
		require.NoError(t, l.w.ZooKeeper(first).Expire(ctx, host.ByTakeover))
		second := l.awaitOffice(ctx, first)
		require.NoError(t, l.w.ZooKeeper(second).Expire(ctx, host.ByTakeover))
		assert.Equal(t, first, l.awaitOffice(ctx, second))
	})
	l.assertFenced()
}

// TestUnknownBumpIsNeverClaimed cuts the answer to the transaction that takes the
// epoch: it was taken, and nobody may use it.
func TestUnknownBumpIsNeverClaimed(t *testing.T) {
	l := run(t, setup{seed: 5, coordinators: 2, tablets: 1}, func(ctx context.Context, l *lab) {
		first := l.office(ctx)
		second := coordinatorID(0)
		if second == first {
			second = coordinatorID(1)
		}
		l.w.ZooKeeper(second).CutAfter("set", time.Minute)
		require.NoError(t, l.node(first).Kill(ctx))
		l.awaitOffice(ctx, first)
	})
	assert.Equal(t, []string{"elected 0", "serving 0", "elected 2", "serving 2"}, trimNames(l.terms()))
}

func trimNames(terms []string) []string {
	out := make([]string, 0, len(terms))
	for _, t := range terms {
		out = append(out, t[len("coordinator-0 "):])
	}
	return out
}

// TestLostJoinIsFoundAgain cuts the answer to the creation of the election child:
// the process must not stand twice, which would bar it from its own office.
func TestLostJoinIsFoundAgain(t *testing.T) {
	run(t, setup{seed: 6, coordinators: 1, tablets: 1}, func(ctx context.Context, l *lab) {
		late := l.w.NewNode(coordinatorID(1), New(Config{Policy: protocol.Sound().Coordinator, SessionTimeout: sessionTimeout}))
		l.coords = append(l.coords, late)
		l.w.ZooKeeper(late.ID()).CutAfter("create", time.Minute)
		require.NoError(t, late.Start(ctx))
		l.sleep(ctx, 3*time.Second)
		children, _, err := l.s.Children(ctx, protocol.ElectionPath)
		require.NoError(t, err)
		assert.Len(t, children, 2)
		require.NoError(t, l.node(coordinatorID(0)).Kill(ctx))
		assert.Equal(t, late.ID(), l.awaitOffice(ctx, coordinatorID(0)))
	})
}

// TestTermOpeningCutAnywhere cuts the connection around every kind of request
// while a term opens, before it and after it: in the end one is in office, and
// whatever was written is guarded.
func TestTermOpeningCutAnywhere(t *testing.T) {
	for seed := range uint64(12) {
		for _, op := range []string{"create", "set", "multi", "get", "sync", "exists", "getChildren", ""} {
			l := run(t, setup{seed: seed, coordinators: 2, tablets: 2}, func(ctx context.Context, l *lab) {
				first := l.office(ctx)
				ids := l.create(ctx, first, tableSpec("t", 1, 2))
				l.awaitLed(ctx, first, ids[0])
				second := l.coords[0].ID()
				if second == first {
					second = l.coords[1].ID()
				}
				require.NoError(t, l.node(first).Kill(ctx))
				l.sleep(ctx, sessionTimeout-500*time.Millisecond)
				if seed%2 == 0 {
					l.w.ZooKeeper(second).CutBefore(op, time.Minute)
				} else {
					l.w.ZooKeeper(second).CutAfter(op, time.Minute)
				}
				require.Equal(t, second, l.awaitOffice(ctx, first))
				l.awaitLed(ctx, second, ids[0])
			})
			l.assertFenced()
		}
	}
}

func TestEpochAlwaysZero(t *testing.T) {
	p := protocol.Sound().Coordinator
	p.BumpEpoch = false
	l := run(t, setup{seed: 7, coordinators: 2, tablets: 1, policy: &p}, func(ctx context.Context, l *lab) {
		first := l.office(ctx)
		require.NoError(t, l.node(first).Kill(ctx))
		l.awaitOffice(ctx, first)
	})
	assert.Equal(t, []string{"elected 0", "serving 0", "elected 0", "serving 0"}, trimNames(l.terms()))
	var zxids []int64
	for _, e := range l.events {
		if term, ok := e.Event.(history.Term); ok && term.State == history.TermElected {
			zxids = append(zxids, term.Zxid)
		}
	}
	assert.Less(t, zxids[0], zxids[1], "terms are told apart by the transaction that opened them")
}
