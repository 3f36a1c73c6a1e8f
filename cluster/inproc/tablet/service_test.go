package tablet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/inproc/tablet"
	"github.com/fencepost-dev/fencepost/history"
)

func (b *bench) produce(server int, writer int64, seq int, acks protocol.Acks, values ...string) *protocol.WriteReply {
	m := &protocol.ProduceLog{Bucket: journal, Writer: writer, Seq: seq, Acks: acks, TimeoutMillis: 500}
	for _, v := range values {
		m.Records = append(m.Records, []byte(v))
	}
	answer, err := b.call(server, m)
	require.NoError(b.t, err)
	return answer.(*protocol.WriteReply)
}

func (b *bench) fetch(server int, offset int64, limit, wait int) protocol.FetchedBucket {
	answer, err := b.call(server, &protocol.FetchLog{
		Client: "control", Follower: -1, MaxWaitMillis: wait, MinRecords: 1,
		Buckets: []protocol.FetchBucket{{Bucket: journal, Offset: offset, MaxRecords: limit}},
	})
	require.NoError(b.t, err)
	return answer.(*protocol.FetchLogReply).Buckets[0]
}

func TestLogTables(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(journal, 1, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(journal)
		for i := range 5 {
			reply := b.produce(1, -1, 0, protocol.AcksAll, fmt.Sprint(2*i), fmt.Sprint(2*i+1))
			require.Equal(t, protocol.CodeNone, reply.Code)
			require.Equal(t, int64(2*i), reply.Base)
		}
		got := b.fetch(1, 3, 4, 0)
		require.Equal(t, protocol.CodeNone, got.Code)
		require.Equal(t, int64(10), got.HW)
		require.Len(t, got.Records, 4)
		require.Equal(t, "3", string(got.Records[0].Value))
		require.Empty(t, b.fetch(1, 10, 4, 0).Records)
		require.Equal(t, protocol.CodeOffsetOutOfRange, b.fetch(1, 11, 4, 0).Code)
		require.Equal(t, protocol.CodeNotLeaderOrFollower, b.fetch(0, 0, 4, 0).Code)
		for _, latest := range []bool{false, true} {
			answer, err := b.call(1, &protocol.ListOffsets{Bucket: journal, Latest: latest})
			require.NoError(t, err)
			reply := answer.(*protocol.ListOffsetsReply)
			require.Equal(t, protocol.CodeNone, reply.Code)
			require.Equal(t, map[bool]int64{true: 10}[latest], reply.Offset)
		}
	})
}

// TestTailsAreLongPolled has a consumer wait at the end for what comes.
func TestTailsAreLongPolled(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(journal, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(journal)
		began := b.w.Now()
		require.Empty(t, b.fetch(0, 0, 10, 400).Records)
		require.GreaterOrEqual(t, b.w.Now()-began, 400*time.Millisecond)
		var got protocol.FetchedBucket
		done := time.Duration(0)
		b.c.Go(b.ctx, "consumer", func(context.Context) { got, done = b.fetch(0, 0, 10, 5000), b.w.Now() })
		b.sleep(100 * time.Millisecond)
		require.Zero(t, done)
		b.produce(0, -1, 0, protocol.AcksAll, "x")
		produced := b.w.Now()
		b.until("consumed", func() bool { return done != 0 })
		require.Less(t, done-produced, 20*time.Millisecond)
		require.Equal(t, "x", string(got.Records[0].Value))
	})
}

func TestAcks(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(journal, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(journal)
		b.cut("tablet-0", protocol.APIFetchLog)
		require.Equal(t, protocol.CodeNone, b.produce(0, -1, 0, protocol.AcksLeader, "a").Code)
		require.Equal(t, protocol.CodeNone, b.produce(0, -1, 0, protocol.AcksNone, "b").Code)
		require.Equal(t, protocol.CodeRequestTimedOut, b.produce(0, -1, 0, protocol.AcksAll, "c").Code)
		require.Equal(t, int64(3), b.replica(0, journal).LogEnd)
	})
}

func TestIdempotentWriters(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(journal, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(journal)
		require.Equal(t, protocol.CodeOutOfOrderSequence, b.produce(0, 5, 1, protocol.AcksAll, "x").Code)
		for seq := range 3 {
			require.Equal(t, int64(2*seq), b.produce(0, 5, seq, protocol.AcksAll, "a", "b").Base)
		}
		again := b.produce(0, 5, 1, protocol.AcksAll, "a", "b")
		require.Equal(t, protocol.CodeNone, again.Code)
		require.Equal(t, int64(2), again.Base, "the original offset")
		require.Equal(t, protocol.CodeOutOfOrderSequence, b.produce(0, 5, 4, protocol.AcksAll, "x").Code)
		b.kill(0)
		b.elect(journal, 1, []int{1, 2}, 1, 2)
		b.admitted(journal)
		require.Equal(t, int64(4), b.produce(1, 5, 2, protocol.AcksAll, "a", "b").Base, "it travels in the log")
		require.Equal(t, int64(6), b.produce(1, 5, 3, protocol.AcksAll, "a", "b").Base)
	})
}

func TestWriterIDsComeFromTheCoordinator(t *testing.T) {
	run(t, options{}, func(b *bench) {
		answer, err := b.call(0, &protocol.InitWriter{})
		require.NoError(t, err)
		require.Equal(t, protocol.CodeNotCoordinatorLeader, answer.(*protocol.InitWriterReply).Code, "none is known yet")
		b.elect(journal, 0, []int{0}, 0)
		answer, err = b.call(0, &protocol.InitWriter{})
		require.NoError(t, err)
		require.Equal(t, int64(7), answer.(*protocol.InitWriterReply).Writer)
	})
}

func TestWrongTableKinds(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(journal, 0, []int{0, 1, 2}, 0, 1, 2)
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(journal)
		b.admitted(accounts)
		for _, m := range []host.Message{
			&protocol.PutKv{Bucket: journal, Writer: -1, Acks: protocol.AcksAll, Rows: []protocol.Row{{Key: "k"}}},
			&protocol.ProduceLog{Bucket: accounts, Writer: -1, Acks: protocol.AcksAll, Records: [][]byte{{1}}},
		} {
			answer, err := b.call(0, m)
			require.NoError(t, err)
			require.Equal(t, protocol.CodeInvalidTable, answer.(*protocol.WriteReply).Code)
		}
		answer, err := b.call(0, &protocol.Lookup{Bucket: journal, Keys: []string{"k"}})
		require.NoError(t, err)
		require.Equal(t, protocol.CodeInvalidTable, answer.(*protocol.LookupReply).Code)
	})
}

// TestDroppedReplicasStayDropped has a notification arrive after the deletion
// that overtook it, before and after a restart.
func TestDroppedReplicasStayDropped(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustPut(0, "k", "v")
		late := b.order(0, accounts)
		_, err := b.send(0, &protocol.StopReplica{CoordinatorEpoch: 1, Buckets: []protocol.StopBucket{{Bucket: accounts, LeaderEpoch: 0, Delete: true}}})
		require.NoError(t, err)
		require.Equal(t, protocol.CodeUnknownTableOrBucket, b.put(0, "k", "v").Code)
		for range 2 {
			late.Buckets[0].Incarnation = 0
			answer, err := b.send(0, late)
			require.NoError(t, err)
			require.Equal(t, protocol.CodeUnknownTableOrBucket, answer.(*protocol.NotifyLeaderAndIsrReply).Buckets[0].Code)
			b.kill(0)
			b.start(0)
		}
		require.Equal(t, -1, b.replica(0, accounts).LeaderEpoch)
	})
}

func TestStoppedReplicasKeepTheirLog(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustPut(0, "k", "v")
		_, err := b.send(0, &protocol.StopReplica{CoordinatorEpoch: 1, Buckets: []protocol.StopBucket{{Bucket: accounts, LeaderEpoch: 0}}})
		require.NoError(t, err)
		require.Equal(t, protocol.CodeNotLeaderOrFollower, b.put(0, "k", "v").Code)
		require.Equal(t, int64(1), b.replica(0, accounts).LogEnd)
		require.Equal(t, protocol.CodeFencedLeaderEpoch, b.notify(0, accounts).Buckets[0].Code, "given up is given up, at this epoch")
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustGet(0, "k", "v")
	})
}

// TestFailingDisk has the leader's disk refuse for a while: nothing is
// acknowledged meanwhile, nothing is lost, and it goes on by itself.
func TestFailingDisk(t *testing.T) {
	for seed := range uint64(10) {
		run(t, options{seed: seed}, func(b *bench) {
			b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
			b.admitted(accounts)
			b.mustPut(0, "k", "0")
			heal := b.w.Disk("tablet-0").Fail(1, seed%2 == 0, time.Hour)
			require.Equal(t, protocol.CodeRequestTimedOut, b.putAs(0, -1, 0, "k", "1", 300).Code)
			reply := b.notifyNext(0)
			require.Equal(t, protocol.CodeStorage, reply.Buckets[0].Code, "a leader epoch that is not on disk is not acted on")
			heal()
			b.sleep(time.Second)
			b.mustGet(0, "k", "1")
			b.mustPut(0, "k", "2")
			b.powerLoss(0)
			b.start(0)
			b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
			b.admitted(accounts)
			b.mustGet(0, "k", "2")
		})
	}
}

// notifyNext sends an order of the next leader epoch that the books do not know.
func (b *bench) notifyNext(server int) *protocol.NotifyLeaderAndIsrReply {
	m := b.order(server, accounts)
	m.Buckets[0].LAI.LeaderEpoch++
	m.Buckets[0].LAI.BucketEpoch++
	answer, err := b.send(server, m)
	require.NoError(b.t, err)
	return answer.(*protocol.NotifyLeaderAndIsrReply)
}

// TestTornWrites has followers lose power in the middle of writes, many times.
func TestTornWrites(t *testing.T) {
	for seed := range uint64(20) {
		events := run(t, options{seed: seed}, func(b *bench) {
			b.w.Disk("tablet-2").Torn(true)
			b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
			b.admitted(accounts)
			for i := range 5 {
				for j := range 5 {
					b.c.Go(b.ctx, "put", func(context.Context) { b.put(0, fmt.Sprint("k", j), fmt.Sprint(i)) })
				}
				b.sleep(time.Duration(200+100*seed) * time.Microsecond)
				b.powerLoss(2)
				b.start(2)
				b.notify(2, accounts)
			}
			b.sleep(3 * time.Second)
			require.Equal(t, b.replica(0, accounts).Digest, b.replica(2, accounts).Digest)
		})
		require.Empty(t, violations(events))
	}
}

// TestHighWatermarkEventsAreFew holds the rate of events down under load, but not
// the last word.
func TestHighWatermarkEventsAreFew(t *testing.T) {
	var hw int64
	events := run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		for i := range 500 {
			b.mustPut(0, "k", fmt.Sprint(i))
		}
		b.sleep(time.Second)
		hw = b.replica(0, accounts).HW
	})
	moves := count(events, func(e history.HW) bool { return e.Server == 0 })
	require.Less(t, moves, 100)
	require.Greater(t, moves, 5)
	last := map[int]int64{}
	for _, s := range events {
		if e, ok := s.e.(history.HW); ok {
			require.Equal(t, last[e.Server], e.From, "no gap between reports")
			last[e.Server] = e.To
		}
	}
	require.Equal(t, map[int]int64{0: hw, 1: hw, 2: hw}, last)
}

func TestPolicyEpochsAreObserved(t *testing.T) {
	events := run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.notify(0, accounts)
		_, err := b.send(0, &protocol.UpdateMetadata{
			Term: protocol.TermRef{Coordinator: "coordinator-1", Zxid: 9}, CoordinatorEpoch: 2,
			Buckets: []protocol.BucketMetadata{{Bucket: accounts, Leader: 0}},
		})
		require.NoError(t, err)
		answer, err := b.send(0, &protocol.UpdateMetadata{CoordinatorEpoch: 1})
		require.NoError(t, err)
		require.Equal(t, protocol.CodeInvalidCoordinator, answer.(*protocol.CodeReply).Code)
	})
	require.Equal(t, 2, count(events, func(e history.Obeyed) bool { return e.Server == 0 }), "a repeat changes nothing")
	require.Equal(t, 1, count(events, func(e history.Obeyed) bool { return e.TermZxid == 9 && e.API == protocol.APIUpdateMetadata }))
	require.Equal(t, 1, count(events, func(e history.Advertised) bool { return e.By == 0 && e.Leader == 0 }))
}

// TestSlowLinks has links so slow that every answer outlasts the first time-outs.
func TestSlowLinks(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1}, 0, 1)
		b.admitted(accounts)
		b.w.Network().Apply(host.Rule{Match: host.Match{From: []cluster.NodeID{"tablet-0"}, Both: true}, Delay: 3 * time.Second}, time.Hour)
		b.c.Go(b.ctx, "order", func(context.Context) { b.notify(2, accounts) })
		b.until("2 has joined", func() bool { return slices.Contains(b.lai[accounts].ISR, 2) })
		require.Equal(t, protocol.CodeNone, b.putAs(0, -1, 0, "k", "v", 60_000).Code)
	})
}

// TestSnapshotsShortenRestores has a leader restart, with and without a snapshot
// of its table.
func TestSnapshotsShortenRestores(t *testing.T) {
	for _, every := range []time.Duration{100 * time.Millisecond, time.Hour} {
		run(t, options{timing: tablet.Timing{Snapshot: every}}, func(b *bench) {
			b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
			b.admitted(accounts)
			for i := range 1200 {
				b.mustPut(0, fmt.Sprint("k", i%50), fmt.Sprint(i))
			}
			b.sleep(time.Second)
			b.kill(0)
			b.start(0)
			b.knobs[0].PerRecord.Set(time.Millisecond)
			began := b.w.Now()
			b.elect(accounts, 0, []int{0, 1, 2}, 1, 2, 0)
			b.admitted(accounts)
			took := b.w.Now() - began
			if every < time.Hour {
				require.Less(t, took, 1400*time.Millisecond)
			} else {
				require.Greater(t, took, 2300*time.Millisecond)
			}
			for i := 1150; i < 1200; i++ {
				b.mustGet(0, fmt.Sprint("k", i%50), fmt.Sprint(i))
			}
		})
	}
}
