package hosttest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

func sessionCutCases() []testCase {
	return []testCase{
		{"a dial into a black hole ends with its context", zkDialHole},
		{"a reply that was cut leaves the outcome open", zkCutReply},
		{"a request that was cut leaves the outcome open", zkCutRequest},
		{"a call whose time is over goes on", zkCallTimeout},
	}
}

// zkShortHole holds for 80 % of the session time-out: the client notices after
// two thirds of it and is back in time.
func zkShortHole(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	own, _, err := z.Create(ctx, z.root+"/own", nil, host.Ephemeral)
	require.NoError(b.t, err)
	id, began := z.ID(), b.c.Now()
	undo := b.w.ZooKeeper(controlID).Hold(time.Minute)
	var inFlight error
	ended := b.c.NewCond()
	b.c.Go(ctx, "in flight", func(ctx context.Context) {
		_, inFlight = z.Set(ctx, z.root, []byte("lost"), -1)
		ended.Broadcast()
	})
	b.reach(ctx, z, host.Disconnected, sessionTimeout)
	noticed := b.c.Now() - began
	require.Greater(b.t, noticed, sessionTimeout/3)
	require.LessOrEqual(b.t, noticed, sessionTimeout*8/10)
	for inFlight == nil {
		require.NoError(b.t, ended.Wait(ctx))
	}
	require.ErrorIs(b.t, inFlight, host.ErrConnectionLoss)
	require.False(b.t, cluster.IsDefinite(inFlight))
	_, _, err = z.Get(ctx, own)
	require.ErrorIs(b.t, err, host.ErrNotSent, "a call made while disconnected is not kept for later")
	_, err = z.Set(ctx, own, nil, -1)
	require.ErrorIs(b.t, err, host.ErrNotSent)
	require.True(b.t, cluster.IsDefinite(err))
	if rest := began + sessionTimeout*8/10 - b.c.Now(); rest > 0 {
		b.sleep(ctx, rest)
	}
	undo()
	b.reach(ctx, z, host.Connected, sessionTimeout)
	require.Equal(b.t, id, z.ID())
	stat, err := z.Exists(ctx, own)
	require.NoError(b.t, err)
	require.Equal(b.t, id, stat.EphemeralOwner)
	data, _, err := z.Get(ctx, z.root)
	require.NoError(b.t, err)
	require.Equal(b.t, "first", string(data), "what was written into the hole never arrived")
	require.Equal(b.t, []string{history.SessionConnected, history.SessionSuspended, history.SessionConnected}, b.sessionStates(id))
}

// zkLongHole holds for longer than the session time-out. The client is told of
// the end by the server's answer to its reconnect and by nothing else.
func zkLongHole(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	own, _, err := z.Create(ctx, z.root+"/own", nil, host.Ephemeral)
	require.NoError(b.t, err)
	_, _, w, err := z.GetW(ctx, own)
	require.NoError(b.t, err)
	_, missing, err := z.ExistsW(ctx, z.root+"/none")
	require.ErrorIs(b.t, err, host.ErrNoNode)
	control := b.w.ZooKeeper(controlID)
	require.Equal(b.t, z.ID(), control.Current())
	undo := control.Hold(time.Minute)
	b.elsewhere(ctx, func(ctx context.Context, s host.Session) {
		_, gone, err := s.ExistsW(ctx, own)
		if err == nil {
			_, err = gone.Wait(ctx)
		}
		if err != nil {
			b.say("elsewhere-1 failed: " + err.Error())
		}
	})
	require.Equal(b.t, host.Disconnected, z.State(), "cut off, it cannot know")
	require.False(b.t, w.Fired())
	_, err = z.Set(ctx, z.root, nil, -1)
	require.ErrorIs(b.t, err, host.ErrNotSent)
	undo()
	b.reach(ctx, z, host.Expired, 2*sessionTimeout)
	require.Equal(b.t, host.NotWatching, b.waits(ctx, w).Type)
	require.Equal(b.t, host.NotWatching, b.waits(ctx, missing).Type)
	b.dead(ctx, z, host.ErrExpired)
	require.Zero(b.t, control.Current())
	require.Equal(b.t,
		[]string{history.SessionConnected, history.SessionSuspended, history.SessionExpired}, b.sessionStates(z.ID()))

	next := b.dial(ctx)
	require.NotEqual(b.t, z.ID(), next.ID())
	_, err = next.Exists(ctx, own)
	require.ErrorIs(b.t, err, host.ErrNoNode)
	b.dead(ctx, z, host.ErrExpired)
}

// dead checks that every call of a session fails for good with one error.
func (b *bench) dead(ctx context.Context, z zk, want error) {
	b.t.Helper()
	state := z.State()
	_, _, err := z.Get(ctx, z.root)
	require.ErrorIs(b.t, err, want)
	_, _, err = z.Create(ctx, z.root+"/zombie", nil, host.Persistent)
	require.ErrorIs(b.t, err, want)
	_, _, w, err := z.ChildrenW(ctx, z.root)
	require.ErrorIs(b.t, err, want)
	require.Nil(b.t, w)
	r, err := z.Multi(ctx, host.SetOp(z.root, nil, -1))
	require.ErrorIs(b.t, err, want)
	require.Equal(b.t, -1, r.Failed)
	require.ErrorIs(b.t, z.Sync(ctx, z.root), want)
	require.True(b.t, cluster.IsDefinite(err))
	require.NoError(b.t, z.Close(ctx), "a session that is over can be closed")
	short, cancel := b.c.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = z.Changed(short, state)
	require.ErrorIs(b.t, err, context.DeadlineExceeded, "the last state is the last")
}

func zkDialHole(ctx context.Context, b *bench) {
	control := b.w.ZooKeeper(controlID)
	undo := control.Hold(time.Minute)
	short, cancel := b.c.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := b.c.Dial(short, host.SessionOptions{Timeout: sessionTimeout})
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	require.Zero(b.t, control.Current())
	undo()
	s := b.dial(ctx)
	require.Equal(b.t, s.ID(), control.Current())
}

func zkCutReply(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	control := b.w.ZooKeeper(controlID)
	for i, cut := range []struct {
		op    string
		write func() error
	}{
		{"create", func() error { _, _, err := z.Create(ctx, z.root+"/a", nil, host.Persistent); return err }},
		{"", func() error { _, err := z.Set(ctx, z.root+"/a", []byte("x"), 0); return err }},
		{"multi", func() error {
			_, err := z.Multi(ctx, host.Check(z.root+"/a", 1), host.SetOp(z.root+"/a", []byte("y"), 1))
			return err
		}},
		{"delete", func() error { _, err := z.Delete(ctx, z.root+"/a", 2); return err }},
	} {
		control.CutAfter(cut.op, time.Minute)
		_, err := z.Exists(ctx, z.root)
		require.NoError(b.t, err, "a read is not meant")
		err = cut.write()
		require.ErrorIs(b.t, err, host.ErrConnectionLoss, "write %d", i)
		require.False(b.t, cluster.IsDefinite(err))
		b.reach(ctx, z, host.Connected, sessionTimeout)
		txns := b.txns()
		last := txns[len(txns)-1]
		require.Empty(b.t, last.Error, "the gate saw that it was committed")
		require.Positive(b.t, last.Zxid)
		stat, err := z.Exists(ctx, z.root+"/a")
		if cut.op == "delete" {
			require.ErrorIs(b.t, err, host.ErrNoNode)
			continue
		}
		require.NoError(b.t, err)
		require.Equal(b.t, int32(i), stat.Version)
		require.Equal(b.t, last.Zxid, stat.Mzxid)
	}
}

func zkCutRequest(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	control := b.w.ZooKeeper(controlID)
	lapsed := control.CutBefore("", time.Minute)
	lapsed()
	control.CutBefore("set", 5*time.Millisecond)
	b.rest(ctx)
	_, err := z.Set(ctx, z.root, []byte("0"), -1)
	require.NoError(b.t, err, "a lease that is over does nothing")
	control.CutBefore("", time.Minute)
	_, err = z.Set(ctx, z.root, []byte("1"), -1)
	require.ErrorIs(b.t, err, host.ErrConnectionLoss)
	require.False(b.t, cluster.IsDefinite(err), "the node cannot know")
	b.reach(ctx, z, host.Connected, sessionTimeout)
	data, _, err := z.Get(ctx, z.root)
	require.NoError(b.t, err)
	require.Equal(b.t, "0", string(data))
	txns := b.txns()
	require.Equal(b.t, "not sent", txns[len(txns)-1].Error)
	_, err = z.Set(ctx, z.root, []byte("2"), -1)
	require.NoError(b.t, err, "it cuts once")
}

func zkCallTimeout(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	undo := b.w.ZooKeeper(controlID).Delay(100*time.Millisecond, time.Minute)
	short, cancel := b.c.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := z.Set(short, z.root, []byte("late"), -1)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	require.False(b.t, cluster.IsDefinite(err))
	data, _, err := z.Get(ctx, z.root)
	require.NoError(b.t, err)
	require.Equal(b.t, "late", string(data), "nobody took it back")
	undo()
	require.Equal(b.t, host.Connected, z.State())
}

func sessionEndCases() []testCase {
	return []testCase{
		{"a close removes what the session owned", zkClose},
		{"expiry by take-over", func(ctx context.Context, b *bench) { zkExpire(ctx, b, host.ByTakeover) }},
		{"expiry by injection", func(ctx context.Context, b *bench) { zkExpire(ctx, b, host.ByInjection) }},
		{"expiry of a node that is cut off", zkExpireCut},
		{"expiry of nothing is refused", zkExpireNothing},
	}
}

func zkClose(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	own, _, err := z.Create(ctx, z.root+"/own", nil, host.Ephemeral)
	require.NoError(b.t, err)
	_, _, w, err := z.GetW(ctx, own)
	require.NoError(b.t, err)
	other := b.dial(ctx)
	_, gone, err := other.ExistsW(ctx, own)
	require.NoError(b.t, err)
	require.NoError(b.t, z.Close(ctx))
	require.Equal(b.t, host.NodeDeleted, b.waits(ctx, gone).Type)
	b.reach(ctx, z, host.Closed, time.Second)
	require.Contains(b.t, []host.WatchType{host.NodeDeleted, host.NotWatching}, b.waits(ctx, w).Type)
	b.dead(ctx, z, host.ErrClosed)
	require.Equal(b.t, host.Connected, other.State(), "the node's other session is untouched")
}

func zkExpire(ctx context.Context, b *bench, how host.ExpireMode) {
	observer := b.zookeeper(ctx)
	id := cluster.NodeID("victim")
	control := b.w.ZooKeeper(id)
	const rounds = 20
	b.start(ctx, id, func(ctx context.Context, h host.Host) {
		for i := range rounds {
			s, err := h.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
			if err == nil {
				_, _, err = s.Create(ctx, fmt.Sprintf("%s/own-%d", observer.root, i), nil, host.Ephemeral)
			}
			for state := host.Connected; err == nil && state != host.Expired; {
				state, err = s.Changed(ctx, state)
			}
			if err == nil {
				_, _, err = s.Create(ctx, observer.root+"/zombie", nil, host.Persistent)
			}
			b.say(fmt.Sprintf("%d %v", i, err == host.ErrExpired)) //nolint:errorlint // the very sentinel
		}
	})
	for i := range rounds {
		own := fmt.Sprintf("%s/own-%d", observer.root, i)
		b.until(ctx, own, func() bool { _, err := observer.Exists(ctx, own); return err == nil })
		require.NotZero(b.t, control.Current())
		require.NoError(b.t, control.Expire(ctx, how), "round %d", i)
		require.NoError(b.t, observer.Sync(ctx, own))
		_, err := observer.Exists(ctx, own)
		require.ErrorIs(b.t, err, host.ErrNoNode, "round %d: it is over when Expire returns", i)
		want := fmt.Sprintf("%d true", i)
		b.until(ctx, want, func() bool { said := b.heard(); return len(said) == i+1 && said[i] == want })
	}
	_, err := observer.Exists(ctx, observer.root+"/zombie")
	require.ErrorIs(b.t, err, host.ErrNoNode)
}

// zkExpireCut takes over the session of a node in a black hole, which learns of
// it when it is healed.
func zkExpireCut(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	control := b.w.ZooKeeper(controlID)
	undo := control.Hold(time.Minute)
	require.NoError(b.t, control.Expire(ctx, host.ByTakeover))
	b.rest(ctx)
	require.Equal(b.t, host.Connected, z.State(), "nothing has told it")
	undo()
	b.reach(ctx, z, host.Expired, sessionTimeout)
}

func zkExpireNothing(ctx context.Context, b *bench) {
	control := b.w.ZooKeeper("nobody")
	require.Zero(b.t, control.Current())
	require.Error(b.t, control.Expire(ctx, host.ByTakeover))
	require.Error(b.t, control.Expire(ctx, host.ByInjection))
	z := b.zookeeper(ctx)
	require.NoError(b.t, z.Close(ctx))
	require.Error(b.t, b.w.ZooKeeper(controlID).Expire(ctx, host.ByTakeover))
}

func zkKilled(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	own := z.root + "/own"
	main := func(ctx context.Context, h host.Host) {
		s, err := h.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
		if err != nil {
			return
		}
		if _, _, err := s.Create(ctx, own, nil, host.Ephemeral); err != nil {
			b.say(fmt.Sprintf("%d %v", h.Incarnation(), err))
		}
		if _, err := s.Changed(ctx, host.Connected); err == nil {
			b.say("a state after death")
		}
	}
	n := b.start(ctx, "victim", main)
	b.until(ctx, own, func() bool { _, err := z.Exists(ctx, own); return err == nil })
	control := b.w.ZooKeeper("victim")
	require.NotZero(b.t, control.Current())
	_, gone, err := z.ExistsW(ctx, own)
	require.NoError(b.t, err)
	began := b.c.Now()
	require.NoError(b.t, n.Kill(ctx))
	require.Zero(b.t, control.Current())
	require.NoError(b.t, n.Start(ctx))
	b.until(ctx, "the next incarnation meets the old one's node", func() bool { return len(b.heard()) == 1 })
	require.Equal(b.t, "2 "+host.ErrNodeExists.Error(), b.heard()[0])
	require.Equal(b.t, host.NodeDeleted, b.waits(ctx, gone).Type)
	lived := b.c.Now() - began
	require.Greater(b.t, lived, sessionTimeout/2, "a dead process closes nothing")
	require.Less(b.t, lived, sessionTimeout+2*time.Second)
	require.NoError(b.t, n.Kill(ctx))
	require.Len(b.t, b.heard(), 1)
}

func zkPaused(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	own := z.root + "/own"
	n := b.start(ctx, "victim", func(ctx context.Context, h host.Host) {
		s, err := h.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
		if err == nil {
			_, _, err = s.Create(ctx, own, nil, host.Ephemeral)
		}
		for state := host.Connected; err == nil && state != host.Expired; {
			state, err = s.Changed(ctx, state)
			b.say(state.String())
		}
	})
	b.until(ctx, own, func() bool { _, err := z.Exists(ctx, own); return err == nil })
	_, gone, err := z.ExistsW(ctx, own)
	require.NoError(b.t, err)
	require.NoError(b.t, n.Pause(ctx, time.Minute))
	require.Equal(b.t, host.NodeDeleted, b.waits(ctx, gone).Type, "nothing keeps the session of a paused node alive")
	require.Empty(b.t, b.heard())
	require.NoError(b.t, n.Resume(ctx))
	b.until(ctx, "expired", func() bool { said := b.heard(); return len(said) > 0 && said[len(said)-1] == "expired" })
}
