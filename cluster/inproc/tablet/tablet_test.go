package tablet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

func TestPutReplicatesAndLookupReads(t *testing.T) {
	events := run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		for i := range 20 {
			b.mustPut(0, "k", fmt.Sprint(i))
			b.mustGet(0, "k", fmt.Sprint(i))
		}
		b.mustGet(0, "absent", "")
		b.sleep(time.Second)
		for i := range 3 {
			r := b.replica(i, accounts)
			require.Equal(t, int64(39), r.HW, "server %d: one insert, then two records an update", i)
			require.Equal(t, b.replica(0, accounts).Digest, r.Digest)
		}
	})
	require.Empty(t, violations(events))
	require.Equal(t, []string{history.RoleActivating, history.RoleAdmitted}, roles(events, 0, accounts))
	require.Equal(t, []string{history.RoleFollowing}, roles(events, 1, accounts))
}

func TestFollowersRefuse(t *testing.T) {
	events := run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		_, code := b.get(1, "k")
		require.Equal(t, protocol.CodeNotLeaderOrFollower, code)
		require.Equal(t, protocol.CodeNotLeaderOrFollower, b.put(2, "k", "v").Code)
	})
	require.Equal(t, 2, count(events, func(r history.Refused) bool { return r.Code == 12 && r.ServerEpoch == 0 }))
}

// TestFailoverTruncates has the old leader come back with a tail that nobody
// acknowledged; it is cut off by leader epochs and replaced by the new leader's.
func TestFailoverTruncates(t *testing.T) {
	events := run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustPut(0, "k", "1")
		cut := b.cut("tablet-0", protocol.APIFetchLog)
		require.Equal(t, protocol.CodeRequestTimedOut, b.putAs(0, -1, 0, "k", "lost", 300).Code)
		require.Equal(t, int64(3), b.replica(0, accounts).LogEnd)
		b.kill(0)
		cut()
		b.elect(accounts, 1, []int{1, 2}, 1, 2)
		b.admitted(accounts)
		b.mustGet(1, "k", "1")
		b.mustPut(1, "k", "2")
		b.start(0)
		b.notify(0, accounts)
		b.until("joined", func() bool { return len(b.lai[accounts].ISR) == 3 })
		b.sleep(time.Second)
		require.Equal(t, b.replica(1, accounts).Digest, b.replica(0, accounts).Digest)
		b.mustGet(1, "k", "2")
	})
	require.Empty(t, violations(events))
	require.Equal(t, 1, count(events, func(e history.Truncate) bool { return e.Server == 0 && e.From == 3 && e.To == 1 }))
}

func TestAllPowerLost(t *testing.T) {
	events := run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		for i := range 50 {
			b.mustPut(0, fmt.Sprint("k", i), "v")
		}
		for i := range 3 {
			b.powerLoss(i)
		}
		for i := range 3 {
			b.start(i)
		}
		b.elect(accounts, 2, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		for i := range 50 {
			b.mustGet(2, fmt.Sprint("k", i), "v")
		}
	})
	require.Empty(t, violations(events))
}

func TestIsrShrinksAndTheFollowerComesBack(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.kill(2)
		require.Equal(t, protocol.CodeNone, b.putAs(0, -1, 0, "k", "v", 10_000).Code, "waits for the shrink, then goes on")
		require.Equal(t, []int{0, 1}, b.lai[accounts].ISR)
		b.start(2)
		b.notify(2, accounts)
		b.until("back in the isr", func() bool { return len(b.lai[accounts].ISR) == 3 })
		b.mustPut(0, "k", "w")
	})
}

func TestTooFewReplicasRefuseBeforeTheAppend(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustPut(0, "k", "v")
		b.kill(1)
		b.kill(2)
		b.until("alone", func() bool { return len(b.lai[accounts].ISR) == 1 })
		b.sleep(100 * time.Millisecond)
		end := b.replica(0, accounts).LogEnd
		require.Equal(t, protocol.CodeNotEnoughReplicas, b.put(0, "k", "w").Code)
		require.Equal(t, end, b.replica(0, accounts).LogEnd)
		b.mustGet(0, "k", "v") // no other server can lead, so reads go on
	})
}

// TestActivationBlocksAndRefuses has one bucket in restore and one behind it.
func TestActivationBlocksAndRefuses(t *testing.T) {
	second := accounts[:len(accounts)-1] + "1"
	events := run(t, options{}, func(b *bench) {
		b.knobs[0].PerBucket.Set(2 * time.Second)
		b.lai[second] = protocol.LeaderAndIsr{Leader: 0, ISR: []int{0, 1, 2}}
		b.elect(accounts, 0, []int{0, 1, 2}, 1, 2)
		began := b.w.Now()
		reply := b.notify(0, accounts, second)
		require.Less(t, b.w.Now()-began, time.Second, "the control queue does not wait")
		require.Equal(t, protocol.NotifyInProgress, reply.Buckets[0].Status)
		require.Equal(t, protocol.NotifyInProgress, reply.Buckets[1].Status)

		answer, err := b.call(0, &protocol.Lookup{Bucket: second, Keys: []string{"k"}})
		require.NoError(t, err)
		require.Equal(t, protocol.CodeNotLeaderOrFollower, answer.(*protocol.LookupReply).Code, "waits in the queue")
		asked := b.w.Now()
		_, code := b.getWithin(0, "k", 300)
		require.Equal(t, protocol.CodeRequestTimedOut, code)
		require.GreaterOrEqual(t, b.w.Now()-asked, 300*time.Millisecond, "the bucket in restore blocks")
		_, code = b.getWithin(0, "k", 5000)
		require.Equal(t, protocol.CodeNone, code, "until it is done")
		require.GreaterOrEqual(t, b.w.Now()-began, 2*time.Second)

		m := b.order(0, accounts, second)
		m.MaxWaitMillis = 10_000
		answer, err = b.send(0, m)
		require.NoError(t, err)
		for i, r := range answer.(*protocol.NotifyLeaderAndIsrReply).Buckets {
			require.Equal(t, protocol.NotifySuccess, r.Status, "bucket %d: held back until it serves", i)
			require.Equal(t, b.lives[0], r.Incarnation)
		}
		require.GreaterOrEqual(t, b.w.Now()-began, 4*time.Second, "one after the other")
	})
	require.Equal(t, 4, count(events, func(r history.Recovery) bool { return r.What == "kv" }))
	require.Equal(t, 1, count(events, func(r history.Refused) bool { return true }))
}

func TestLogRecoveryComesBeforeTheRegistration(t *testing.T) {
	events := run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustPut(0, "k", "v")
		b.kill(0)
		b.knobs[0].Log.Set(7 * time.Second)
		began := b.w.Now()
		b.start(0)
		require.GreaterOrEqual(t, b.w.Now()-began, 7*time.Second)
	})
	require.Equal(t, 1, count(events, func(r history.Recovery) bool {
		return r.What == "log" && r.State == history.StateEnd && r.Bytes > 0
	}))
}

func TestExpiryRegistersANewIncarnationAndServesOn(t *testing.T) {
	run(t, options{zookeeper: true}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustPut(0, "k", "v")
		former := b.lives[0]
		require.NoError(t, b.w.ZooKeeper("tablet-0").Expire(b.ctx, host.ByTakeover))
		b.until("registered again", func() bool { return b.lives[0] != former })
		require.Greater(t, b.lives[0], former)
		b.mustGet(0, "k", "v")
		reply := b.notify(0, accounts)
		require.Equal(t, protocol.CodeFencedLeaderEpoch, reply.Buckets[0].Code, "a leader epoch belongs to one incarnation")
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustGet(0, "k", "v")
	})
}

func TestOrdersForAnotherLifeAreRefused(t *testing.T) {
	run(t, options{}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 1, 2)
		m := b.order(0, accounts)
		m.Buckets[0].Incarnation = 99
		answer, err := b.send(0, m)
		require.NoError(t, err)
		require.Equal(t, protocol.CodeNotAttempted, answer.(*protocol.NotifyLeaderAndIsrReply).Buckets[0].Code)
		require.Equal(t, -1, b.replica(0, accounts).LeaderEpoch)
	})
}

func TestGracefulStopGivesTheRegistrationBack(t *testing.T) {
	run(t, options{zookeeper: true}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		b.mustPut(0, "k", "v")
		require.NoError(t, b.nodes[0].Stop(b.ctx))
		began := b.w.Now()
		b.start(0)
		require.Less(t, b.w.Now()-began, time.Second, "no former life is waited for")
		require.Equal(t, int64(1), b.replica(0, accounts).LogEnd)
	})
}

// TestARestartWaitsForTheFormerLife has a killed tablet start again while its
// session lives on at the server.
func TestARestartWaitsForTheFormerLife(t *testing.T) {
	run(t, options{zookeeper: true}, func(b *bench) {
		former := b.lives[0]
		b.kill(0)
		began := b.w.Now()
		b.start(0)
		require.Greater(t, b.w.Now()-began, 2*time.Second)
		require.Greater(t, b.lives[0], former)
	})
}

// TestALostAnswerToTheRegistration has the connection cut after the creation was
// committed: the node is recognised as the server's own.
func TestALostAnswerToTheRegistration(t *testing.T) {
	run(t, options{zookeeper: true}, func(b *bench) {
		require.NoError(t, b.nodes[0].Stop(b.ctx))
		undo := b.w.ZooKeeper("tablet-0").CutAfter("create", time.Hour)
		began := b.w.Now()
		b.start(0)
		undo()
		require.Less(t, b.w.Now()-began, 3*time.Second, "it does not wait for itself to vanish")
	})
}

// TestSuspendedSessionServesOn cuts the leader from ZooKeeper alone: it goes on
// to serve, and is the same incarnation after the heal.
func TestSuspendedSessionServesOn(t *testing.T) {
	run(t, options{zookeeper: true}, func(b *bench) {
		b.elect(accounts, 0, []int{0, 1, 2}, 0, 1, 2)
		b.admitted(accounts)
		former := b.lives[0]
		undo := b.w.ZooKeeper("tablet-0").Hold(time.Hour)
		for i := range 10 {
			b.mustPut(0, "k", fmt.Sprint(i))
			b.mustGet(0, "k", fmt.Sprint(i))
			b.sleep(150 * time.Millisecond)
		}
		undo()
		b.sleep(3 * time.Second)
		require.Equal(t, former, b.lives[0])
	})
}
