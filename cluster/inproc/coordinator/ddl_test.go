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

func TestTables(t *testing.T) {
	run(t, setup{seed: 1, coordinators: 2, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		spec := tableSpec("orders", 3, 3)
		ids := l.create(ctx, in, spec)
		assert.Equal(t, protocol.CodeTableExists, l.ddl(ctx, in, &protocol.CreateTable{Spec: spec}))
		assert.Equal(t, protocol.CodeInvalidTable, l.ddl(ctx, in, &protocol.CreateTable{Spec: tableSpec("a/b", 1, 1)}))
		assert.Equal(t, protocol.CodeInvalidReplication, l.ddl(ctx, in, &protocol.CreateTable{Spec: tableSpec("wide", 1, 4)}))
		leaders := map[int]int{}
		for _, id := range ids {
			leaders[l.awaitLed(ctx, in, id).Leader]++
		}
		assert.Len(t, leaders, 3, "leaders spread")
		data, _, err := l.s.Get(ctx, protocol.TablePath("orders"))
		require.NoError(t, err)
		node, err := protocol.DecodeTable(data)
		require.NoError(t, err)
		assert.Equal(t, 3, node.BucketCount)

		// One tablet is down when the table is dropped.
		require.NoError(t, l.tablets[2].node.Kill(ctx))
		assert.Equal(t, protocol.CodeNone, l.ddl(ctx, in, &protocol.DropTable{Name: "orders"}))
		assert.Equal(t, protocol.CodeTableMissing, l.ddl(ctx, in, &protocol.DropTable{Name: "orders"}))
		_, err = l.s.Exists(ctx, protocol.TablePath("orders"))
		require.ErrorIs(t, err, host.ErrNoNode)
		l.until(ctx, 10*time.Second, "the live ones to remove their replicas", func() bool {
			return l.tablets[0].stops[ids[0]] > 0 && l.tablets[1].stops[ids[2]] > 0 && l.tablets[0].deleted[ids[1]]
		})
		l.sleep(ctx, 5*time.Second)
		assignments, _, err := l.s.Children(ctx, protocol.TableAssignmentsPath)
		require.NoError(t, err)
		assert.Len(t, assignments, 1, "one replica is left somewhere")

		// The successor takes the deletion up, and finishes it when the tablet is back.
		require.NoError(t, l.node(in).Kill(ctx))
		second := l.awaitOffice(ctx, in)
		require.NoError(t, l.tablets[2].node.Start(ctx))
		l.until(ctx, 20*time.Second, "the deletion to be finished", func() bool {
			assignments, _, err = l.s.Children(ctx, protocol.TableAssignmentsPath)
			return err == nil && len(assignments) == 0
		})
		assert.Positive(t, l.tablets[2].stops[ids[0]])
		again := l.create(ctx, second, spec)
		assert.NotEqual(t, ids[0], again[0], "a table of the same name has other buckets")
		l.awaitLed(ctx, second, again[0])
	})
}

func TestPartitions(t *testing.T) {
	run(t, setup{seed: 2, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		spec := tableSpec("logs", 2, 2)
		spec.Kind, spec.Partitioned = cluster.LogTable, true
		l.until(ctx, 5*time.Second, "tablets", func() bool {
			return l.ddl(ctx, in, &protocol.CreateTable{Spec: spec}) == protocol.CodeNone
		})
		add := func(name string) protocol.Code {
			return l.ddl(ctx, in, &protocol.CreatePartition{Table: "logs", Partition: name})
		}
		assert.Equal(t, protocol.CodeNone, add("monday"))
		assert.Equal(t, protocol.CodePartitionExists, add("monday"))
		assert.Equal(t, protocol.CodeNone, add("tuesday"))
		assert.Equal(t, protocol.CodeInvalidTable, add("a]b"))
		assert.Equal(t, protocol.CodeTableMissing, l.ddl(ctx, in, &protocol.CreatePartition{Table: "none", Partition: "p"}))
		require.Equal(t, protocol.CodeNone, l.ddl(ctx, in, &protocol.CreateTable{Spec: tableSpec("plain", 1, 1)}))
		assert.Equal(t, protocol.CodeInvalidTable, l.ddl(ctx, in, &protocol.CreatePartition{Table: "plain", Partition: "p"}))
		assert.Equal(t, protocol.CodePartitionMissing, l.ddl(ctx, in, &protocol.DropPartition{Table: "plain", Partition: ""}))

		monday := cluster.NewBucket("logs", 0, "monday", 0, 1)
		l.awaitLed(ctx, in, monday)
		l.awaitLed(ctx, in, cluster.NewBucket("logs", 0, "tuesday", 1, 0))
		assert.Equal(t, protocol.CodeNone, l.ddl(ctx, in, &protocol.DropPartition{Table: "logs", Partition: "monday"}))
		assert.Equal(t, protocol.CodePartitionMissing, l.ddl(ctx, in, &protocol.DropPartition{Table: "logs", Partition: "monday"}))
		assert.Nil(t, l.metadataOf(ctx, in, monday))
		assert.Equal(t, protocol.CodeNone, l.ddl(ctx, in, &protocol.DropTable{Name: "logs"}))
		l.until(ctx, 10*time.Second, "the deletions to be finished", func() bool {
			left, _, err := l.s.Children(ctx, protocol.PartitionAssignmentsPath)
			return err == nil && len(left) == 0
		})
	})
}

// TestDDLOfUnknownOutcome cuts the connection around a DDL's transaction: the
// answer comes once ZooKeeper is known to hold it, and it is done once.
func TestDDLOfUnknownOutcome(t *testing.T) {
	for seed := range uint64(4) {
		run(t, setup{seed: seed, coordinators: 2, tablets: 3}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			l.create(ctx, in, tableSpec("first", 1, 1))
			cut := func() {
				if seed%2 == 0 {
					l.w.ZooKeeper(in).CutAfter("multi", time.Minute)
				} else {
					l.w.ZooKeeper(in).CutBefore("multi", time.Minute)
				}
			}
			part := tableSpec("second", 2, 3)
			part.Partitioned = true
			for _, m := range []host.Message{
				&protocol.CreateTable{Spec: part},
				&protocol.CreatePartition{Table: "second", Partition: "p"},
				&protocol.CreatePartition{Table: "second", Partition: "q"},
				&protocol.DropPartition{Table: "second", Partition: "p"},
				&protocol.DropTable{Name: "first"},
			} {
				l.sleep(ctx, time.Second) // the elections after the one before
				cut()
				require.Equal(t, protocol.CodeNone, l.ddl(ctx, in, m), "%s", m.API())
			}
			data, _, err := l.s.Get(ctx, protocol.TableCounterPath)
			require.NoError(t, err)
			count, err := protocol.DecodeCounter(data)
			require.NoError(t, err)
			assert.EqualValues(t, 2, count, "done once")
			parts, _, err := l.s.Children(ctx, protocol.TablePartitionsPath("second"))
			require.NoError(t, err)
			assert.Equal(t, []string{"q"}, parts)
			l.awaitLed(ctx, in, cluster.NewBucket("second", 1, "q", 1, 1))
		})
	}
}

// TestLAIOfUnknownOutcome cuts the connection around elections.
func TestLAIOfUnknownOutcome(t *testing.T) {
	for seed := range uint64(10) {
		run(t, setup{seed: seed, coordinators: 1, tablets: 3}, func(ctx context.Context, l *lab) {
			in := l.office(ctx)
			ids := l.create(ctx, in, tableSpec("t", 4, 3))
			for _, id := range ids {
				l.awaitLed(ctx, in, id)
			}
			if seed%2 == 0 {
				l.w.ZooKeeper(in).CutAfter("multi", time.Minute)
			} else {
				l.w.ZooKeeper(in).CutBefore("multi", time.Minute)
			}
			require.NoError(t, l.tablets[1].node.Kill(ctx))
			l.sleep(ctx, 5*time.Second)
			for _, id := range ids {
				now := l.awaitLed(ctx, in, id)
				assert.NotContains(t, now.ISR, 1)
				assert.Equal(t, 1, now.BucketEpoch, "written once")
			}
		})
	}
}

func TestWriterIDsAreUnique(t *testing.T) {
	run(t, setup{seed: 3, coordinators: 2, tablets: 1}, func(ctx context.Context, l *lab) {
		seen := map[int64]bool{}
		take := func(in cluster.NodeID, n int) {
			for range n {
				reply, err := call1[*protocol.InitWriterReply](ctx, l, in, &protocol.InitWriter{})
				require.NoError(t, err)
				require.Equal(t, protocol.CodeNone, reply.Code)
				require.False(t, seen[reply.Writer])
				seen[reply.Writer] = true
			}
		}
		in := l.office(ctx)
		take(in, writersAtOnce+5)
		l.w.ZooKeeper(in).CutAfter("multi", time.Minute)
		take(in, writersAtOnce)
		require.NoError(t, l.node(in).Kill(ctx))
		take(l.awaitOffice(ctx, in), 5)
	})
}

func TestPartitionsByTheClock(t *testing.T) {
	run(t, setup{seed: 4, coordinators: 2, tablets: 2, timing: Timing{PartitionTick: time.Second}}, func(ctx context.Context, l *lab) {
		in := l.office(ctx)
		spec := tableSpec("logs", 1, 2)
		spec.Partitioned, spec.AutoPartitions = true, 3
		l.until(ctx, 5*time.Second, "tablets", func() bool {
			return l.ddl(ctx, in, &protocol.CreateTable{Spec: spec}) == protocol.CodeNone
		})
		parts := func() []string {
			names, _, err := l.s.Children(ctx, protocol.TablePartitionsPath("logs"))
			require.NoError(t, err)
			return names
		}
		l.sleep(ctx, 2500*time.Millisecond)
		assert.Contains(t, parts(), "auto-4")
		require.NoError(t, l.node(in).Kill(ctx))
		l.awaitOffice(ctx, in)
		l.sleep(ctx, 4500*time.Millisecond)
		assert.Len(t, parts(), 3)
		assert.NotContains(t, parts(), "auto-4")
	})
}

// TestOldCreatorWakes is the scenario of the background creator: an old leader is
// cut off inside a tick, another takes over, and the cut is healed. Guarded, its
// transaction comes to nothing; unguarded, it is taken.
func TestOldCreatorWakes(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		p := policyWith(func(p *protocol.CoordinatorPolicy) { p.GuardWrites = guarded })
		var first cluster.NodeID
		var healed time.Duration
		l := run(t, setup{seed: 5, coordinators: 2, tablets: 2, policy: p, timing: Timing{PartitionTick: 500 * time.Millisecond}},
			func(ctx context.Context, l *lab) {
				first = l.office(ctx)
				spec := tableSpec("logs", 1, 2)
				spec.Partitioned, spec.AutoPartitions = true, 2
				l.until(ctx, 5*time.Second, "tablets", func() bool {
					return l.ddl(ctx, first, &protocol.CreateTable{Spec: spec}) == protocol.CodeNone
				})
				l.sleep(ctx, 2*time.Second)
				release := l.w.ZooKeeper(first).Hold(time.Minute)
				l.awaitOffice(ctx, first)
				l.sleep(ctx, 2*time.Second)
				healed = l.c.Now()
				release()
				l.sleep(ctx, 3*time.Second)
			})
		var zombie int
		for _, e := range l.events {
			txn, ok := e.Event.(history.Txn)
			if ok && e.at > healed && txn.Node == string(first) && txn.Error == "" && !txn.Ephemeral && txn.Op == "multi" {
				zombie++
			}
		}
		if guarded {
			assert.Zero(t, zombie)
			l.assertFenced()
		} else {
			assert.Positive(t, zombie, "bug: unguarded-zk-writes")
		}
	}
}
