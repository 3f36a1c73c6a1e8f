package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// zkBench runs one task of one node against the simulated ZooKeeper.
type zkBench struct {
	*testing.T
	w      *World
	c      host.Control
	zk     host.SessionControl
	events []history.Event
}

func zkCase(t *testing.T, f func(ctx context.Context, b *zkBench)) *zkBench {
	t.Helper()
	b := &zkBench{T: t}
	b.w = NewWorld(Config{Seed: 3, Observe: func(_ cluster.NodeID, _ time.Duration, e history.Event) {
		b.events = append(b.events, e)
	}})
	t.Cleanup(b.w.Close)
	err := b.w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		b.c, b.zk = c, b.w.ZooKeeper(c.ID())
		f(ctx, b)
		return nil
	})
	require.NoError(t, err)
	return b
}

func (b *zkBench) dial(ctx context.Context, timeout time.Duration) host.Session {
	b.Helper()
	s, err := b.c.Dial(ctx, host.SessionOptions{Timeout: timeout})
	require.NoError(b, err)
	return s
}

func (b *zkBench) other(ctx context.Context) host.Session {
	b.Helper()
	s, err := b.c.Endpoint("client-1").Dial(ctx, host.SessionOptions{Timeout: 10 * time.Second})
	require.NoError(b, err)
	return s
}

func (b *zkBench) create(ctx context.Context, s host.Session, path string, mode host.CreateMode) string {
	b.Helper()
	name, _, err := s.Create(ctx, path, []byte("x"), mode)
	require.NoError(b, err)
	return name
}

func (b *zkBench) until(ctx context.Context, s host.Session, want host.SessionState) time.Duration {
	b.Helper()
	from := b.c.Now()
	for s.State() != want {
		_, err := s.Changed(ctx, s.State())
		require.NoError(b, err)
	}
	return b.c.Now() - from
}

func (b *zkBench) states() []string {
	var all []string
	for _, e := range b.events {
		if s, ok := e.(history.Session); ok && s.Node == "control" {
			all = append(all, s.State)
		}
	}
	return all
}

func (b *zkBench) txns() []history.Txn {
	var all []history.Txn
	for _, e := range b.events {
		if x, ok := e.(history.Txn); ok {
			all = append(all, x)
		}
	}
	return all
}

func TestZKRequests(t *testing.T) {
	b := zkCase(t, func(ctx context.Context, b *zkBench) {
		s := b.dial(ctx, 4*time.Second)
		b.create(ctx, s, "/a", host.Persistent)
		require.Equal(b, "/a/n0000000000", b.create(ctx, s, "/a/n", host.EphemeralSequential))
		data, stat, err := s.Get(ctx, "/a")
		require.NoError(b, err)
		require.Equal(b, "x", string(data))
		require.EqualValues(b, 1, stat.NumChildren)
		stat, err = s.Set(ctx, "/a", []byte("yy"), 0)
		require.NoError(b, err)
		require.EqualValues(b, 1, stat.Version)
		_, err = s.Set(ctx, "/a", nil, 0)
		require.ErrorIs(b, err, host.ErrBadVersion)
		_, err = s.Delete(ctx, "/a", -1)
		require.ErrorIs(b, err, host.ErrNotEmpty)
		_, err = s.Exists(ctx, "/zz")
		require.ErrorIs(b, err, host.ErrNoNode)
		_, _, err = s.Create(ctx, "zz", nil, host.Persistent)
		require.ErrorIs(b, err, host.ErrBadArguments)
		names, _, err := s.Children(ctx, "/a")
		require.NoError(b, err)
		require.Equal(b, []string{"n0000000000"}, names)
		require.NoError(b, s.Sync(ctx, "/"))

		res, err := s.Multi(ctx, host.Check("/a", 1), host.CreateOp("/a/q", nil, host.PersistentSequential), host.SetOp("/a", []byte("z"), 1))
		require.NoError(b, err)
		require.Equal(b, -1, res.Failed)
		require.Equal(b, "/a/q0000000001", res.Names[1])
		require.Equal(b, res.Zxid, res.Stats[2].Mzxid)
		res, err = s.Multi(ctx, host.SetOp("/a", nil, -1), host.Check("/a", 1), host.DeleteOp("/a/q0000000001", -1))
		require.ErrorIs(b, err, host.ErrBadVersion)
		require.Equal(b, 1, res.Failed)
		require.NotZero(b, res.Zxid)
		require.NoError(b, s.Close(ctx))
		require.Equal(b, host.Closed, s.State())
		_, _, err = s.Get(ctx, "/a")
		require.ErrorIs(b, err, host.ErrClosed)
		require.NoError(b, s.Close(ctx))
	})
	require.Equal(t, []string{"connected", "closed"}, b.states())
	var got []string
	for _, x := range b.txns() {
		got = append(got, fmt.Sprintf("%s %v guard=%q err=%q eph=%v", x.Op, x.Paths, x.Guard, x.Error, x.Ephemeral))
	}
	require.Equal(t, []string{
		`create [/a] guard="" err="" eph=false`,
		`create [/a/n0000000000] guard="" err="" eph=true`,
		`set [/a] guard="" err="" eph=false`,
		`set [/a] guard="" err="bad version" eph=false`,
		`delete [/a] guard="" err="node has children" eph=false`,
		`multi [/a/q0000000001 /a] guard="/a" err="" eph=false`,
		`multi [/a /a/q0000000001] guard="/a" err="bad version" eph=false`,
		`closeSession [/a/n0000000000] guard="" err="" eph=true`,
	}, got)
}

func TestZKBlackHole(t *testing.T) {
	b := zkCase(t, func(ctx context.Context, b *zkBench) {
		s, other := b.dial(ctx, 4*time.Second), b.other(ctx)
		b.create(ctx, s, "/e", host.Ephemeral)
		gone, watch, err := other.ExistsW(ctx, "/e")
		require.NoError(b, err)
		require.Equal(b, s.ID(), gone.EphemeralOwner)
		require.NoError(b, b.c.Sleep(ctx, 10*time.Second))
		require.Equal(b, host.Connected, s.State(), "pings keep it")

		// For a part of the time-out: the client notices after 2/3 of it, and comes
		// back with its session.
		undo := b.zk.Hold(0)
		took := b.until(ctx, s, host.Disconnected)
		require.Greater(b, took, 1300*time.Millisecond)
		require.LessOrEqual(b, took, 2667*time.Millisecond)
		_, _, err = s.Get(ctx, "/e")
		require.ErrorIs(b, err, host.ErrNotSent)
		undo()
		require.Less(b, b.until(ctx, s, host.Connected), 10*time.Millisecond)
		require.False(b, watch.Fired())

		// For longer: nobody tells the client before it is let through again.
		from := b.c.Now()
		undo = b.zk.Hold(0)
		_, err = watch.Wait(ctx)
		require.NoError(b, err)
		require.Greater(b, b.c.Now()-from, 2600*time.Millisecond)
		require.LessOrEqual(b, b.c.Now()-from, 4600*time.Millisecond)
		require.NoError(b, b.c.Sleep(ctx, time.Minute))
		require.Equal(b, host.Disconnected, s.State())
		undo()
		require.Less(b, b.until(ctx, s, host.Expired), 10*time.Millisecond)
		_, _, err = s.Get(ctx, "/e")
		require.ErrorIs(b, err, host.ErrExpired)
		require.True(b, cluster.IsDefinite(err))
	})
	require.Equal(t, []string{"connected", "suspended", "connected", "suspended", "expired"}, b.states())
}

func TestZKWatchesSurviveReconnects(t *testing.T) {
	zkCase(t, func(ctx context.Context, b *zkBench) {
		s, other := b.dial(ctx, 4*time.Second), b.other(ctx)
		for _, p := range []string{"/changed", "/deleted", "/again", "/same", "/kids"} {
			b.create(ctx, other, p, host.Persistent)
		}
		watches := map[string]host.Watch{}
		var err error
		for _, p := range []string{"/changed", "/deleted", "/again", "/same"} {
			_, _, watches[p], err = s.GetW(ctx, p)
			require.NoError(b, err)
		}
		for _, p := range []string{"/made", "/gone"} {
			_, watches[p], err = s.ExistsW(ctx, p)
			require.ErrorIs(b, err, host.ErrNoNode)
		}
		_, _, watches["/kids"], err = s.ChildrenW(ctx, "/kids")
		require.NoError(b, err)
		_, _, none, err := s.GetW(ctx, "/missing")
		require.ErrorIs(b, err, host.ErrNoNode)
		require.Nil(b, none)

		undo := b.zk.Hold(0)
		_, err = other.Set(ctx, "/changed", nil, -1)
		require.NoError(b, err)
		for _, p := range []string{"/deleted", "/again"} {
			_, err = other.Delete(ctx, p, -1)
			require.NoError(b, err)
		}
		b.create(ctx, other, "/again", host.Persistent)
		b.create(ctx, other, "/made", host.Persistent)
		b.create(ctx, other, "/gone", host.Persistent)
		_, err = other.Delete(ctx, "/gone", -1)
		require.NoError(b, err)
		b.create(ctx, other, "/kids/k", host.Persistent)
		_, err = other.Delete(ctx, "/kids/k", -1)
		require.NoError(b, err)
		undo()
		b.until(ctx, s, host.Disconnected)
		b.until(ctx, s, host.Connected)
		_, _, err = s.Get(ctx, "/")
		require.NoError(b, err, "the events come before this reply")
		got := map[string]host.WatchType{}
		for p, w := range watches {
			if w.Fired() {
				e, err := w.Wait(ctx)
				require.NoError(b, err)
				got[p] = e.Type
			}
		}
		require.Equal(b, map[string]host.WatchType{
			"/changed": host.NodeDataChanged, "/deleted": host.NodeDeleted, "/again": host.NodeDataChanged,
			"/made": host.NodeCreated, "/kids": host.NodeChildrenChanged,
		}, got)
		require.NoError(b, b.zk.Expire(ctx, host.ByTakeover))
		b.until(ctx, s, host.Expired)
		for _, p := range []string{"/same", "/gone"} {
			e, err := watches[p].Wait(ctx)
			require.NoError(b, err)
			require.Equal(b, host.NotWatching, e.Type)
		}
	})
}

func TestZKExpire(t *testing.T) {
	for how, name := range map[host.ExpireMode]string{host.ByTakeover: "takeover", host.ByInjection: "injection"} {
		t.Run(name, func(t *testing.T) {
			b := zkCase(t, func(ctx context.Context, b *zkBench) {
				require.Error(b, b.zk.Expire(ctx, how), "there is no session")
				s, other := b.dial(ctx, 4*time.Second), b.other(ctx)
				require.Equal(b, s.ID(), b.zk.Current())
				b.create(ctx, s, "/e", host.Ephemeral)
				require.NoError(b, b.zk.Expire(ctx, how))
				_, err := other.Exists(ctx, "/e")
				require.ErrorIs(b, err, host.ErrNoNode)
				require.Less(b, b.until(ctx, s, host.Expired), 20*time.Millisecond)
				require.Zero(b, b.zk.Current())
			})
			require.Equal(t, []string{"connected", "suspended", "expired"}, b.states())
		})
	}
}

func TestZKTakeoverOfACutSession(t *testing.T) {
	zkCase(t, func(ctx context.Context, b *zkBench) {
		s := b.dial(ctx, 4*time.Second)
		undo := b.zk.Hold(0)
		require.NoError(b, b.zk.Expire(ctx, host.ByTakeover))
		b.until(ctx, s, host.Disconnected)
		require.NoError(b, b.c.Sleep(ctx, 10*time.Second))
		require.Equal(b, host.Disconnected, s.State(), "it learns on healing")
		undo()
		b.until(ctx, s, host.Expired)
	})
}

func TestZKCuts(t *testing.T) {
	b := zkCase(t, func(ctx context.Context, b *zkBench) {
		s := b.dial(ctx, 4*time.Second)
		b.zk.CutAfter("", 0)
		_, _, err := s.Get(ctx, "/")
		require.NoError(b, err, "a read is not cut")
		_, _, err = s.Create(ctx, "/after", nil, host.Persistent)
		require.ErrorIs(b, err, host.ErrConnectionLoss)
		require.False(b, cluster.IsDefinite(err))
		b.until(ctx, s, host.Connected)
		_, err = s.Exists(ctx, "/after")
		require.NoError(b, err)
		b.zk.CutBefore("create", 0)
		_, _, err = s.Create(ctx, "/before", nil, host.Persistent)
		require.ErrorIs(b, err, host.ErrConnectionLoss)
		b.until(ctx, s, host.Connected)
		_, err = s.Exists(ctx, "/before")
		require.ErrorIs(b, err, host.ErrNoNode)
		b.create(ctx, s, "/before", host.Persistent)
		b.zk.CutBefore("set", time.Second)
		require.NoError(b, b.c.Sleep(ctx, 2*time.Second))
		_, err = s.Set(ctx, "/before", nil, -1)
		require.NoError(b, err, "the lease is over")
	})
	txns := b.txns()
	require.Len(t, txns, 4)
	require.Equal(t, "not sent", txns[1].Error)
	require.Zero(t, txns[1].Zxid, "what never arrived is no transaction")
}

func TestZKDelays(t *testing.T) {
	zkCase(t, func(ctx context.Context, b *zkBench) {
		s, other := b.dial(ctx, 4*time.Second), b.other(ctx)
		undo := b.zk.Delay(100*time.Millisecond, 0)
		from := b.c.Now()
		b.create(ctx, s, "/a", host.Persistent)
		require.InDelta(b, 201, (b.c.Now() - from).Milliseconds(), 2)
		undo()
		_, _, w, err := s.GetW(ctx, "/a")
		require.NoError(b, err)
		b.zk.DelayWatches(time.Second, 10*time.Second)
		from = b.c.Now()
		_, err = other.Set(ctx, "/a", []byte("n"), -1)
		require.NoError(b, err)
		data, _, err := s.Get(ctx, "/a")
		require.NoError(b, err)
		require.Equal(b, "n", string(data))
		require.True(b, w.Fired(), "the reply waits behind the event")
		require.InDelta(b, 1001, (b.c.Now() - from).Milliseconds(), 2)
	})
}

func TestZKTaps(t *testing.T) {
	zkCase(t, func(ctx context.Context, b *zkBench) {
		s := b.dial(ctx, 4*time.Second)
		var seen []string
		undo := b.zk.Tap(func(p host.ZKPassing) {
			seen = append(seen, fmt.Sprint(p.Op, p.Paths, p.Reply, p.Zxid > 0, p.Err))
		})
		b.create(ctx, s, "/a-", host.PersistentSequential)
		_, err := s.Multi(ctx, host.Check("/", 5), host.DeleteOp("/b", 0))
		require.ErrorIs(b, err, host.ErrBadVersion)
		undo()
		_, _, err = s.Get(ctx, "/")
		require.NoError(b, err)
		require.Equal(b, []string{
			"create[/a-] false false 0", "create[/a-0000000000] true true 0",
			"multi[/b] false false 0", "multi[/b] true true -103",
		}, seen)
	})
}

func TestZKServerDown(t *testing.T) {
	zkCase(t, func(ctx context.Context, b *zkBench) {
		s := b.dial(ctx, 4*time.Second)
		b.create(ctx, s, "/e", host.Ephemeral)
		b.w.StopZooKeeper(time.Minute)
		b.until(ctx, s, host.Disconnected)
		_, err := b.c.Dial(timeout(ctx, b, 10*time.Second), host.SessionOptions{})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.Greater(b, b.until(ctx, s, host.Connected), 40*time.Second)
		stat, err := s.Exists(ctx, "/e")
		require.NoError(b, err)
		require.Equal(b, s.ID(), stat.EphemeralOwner, "sessions do not age while the server is down")
	})
}

func timeout(ctx context.Context, b *zkBench, d time.Duration) context.Context {
	ctx, cancel := b.c.WithTimeout(ctx, d)
	_ = cancel
	return ctx
}

func TestZKKilledAndPausedNodes(t *testing.T) {
	zkCase(t, func(ctx context.Context, b *zkBench) {
		watcher := b.other(ctx)
		n := b.w.NewNode("tablet-0", func(ctx context.Context, h host.Host) {
			s, err := h.Dial(ctx, host.SessionOptions{Timeout: 4 * time.Second})
			require.NoError(b, err)
			_, _, err = s.Create(ctx, fmt.Sprintf("/t%d", h.Incarnation()), nil, host.Ephemeral)
			require.NoError(b, err)
			for err == nil {
				_, _, err = s.Get(ctx, "/")
				if !errors.Is(h.Sleep(ctx, 50*time.Millisecond), nil) {
					return
				}
			}
		})
		require.NoError(b, n.Start(ctx))
		require.NoError(b, b.c.Sleep(ctx, time.Second))
		_, w, err := watcher.ExistsW(ctx, "/t1")
		require.NoError(b, err)
		require.NoError(b, n.Kill(ctx))
		from := b.c.Now()
		_, err = w.Wait(ctx)
		require.NoError(b, err)
		require.Greater(b, b.c.Now()-from, 3900*time.Millisecond, "the session outlives its process")
		require.LessOrEqual(b, b.c.Now()-from, 4600*time.Millisecond)

		require.NoError(b, n.Start(ctx))
		require.NoError(b, b.c.Sleep(ctx, time.Second))
		_, w, err = watcher.ExistsW(ctx, "/t2")
		require.NoError(b, err)
		require.NoError(b, n.Pause(ctx, time.Minute))
		_, err = w.Wait(ctx)
		require.NoError(b, err, "a paused node sends no pings")
		require.NoError(b, n.Resume(ctx))
		require.NoError(b, n.Kill(ctx))
	})
}

func TestZKRunsTheSameTwice(t *testing.T) {
	run := func() uint64 {
		b := zkCase(t, func(ctx context.Context, b *zkBench) {
			s := b.dial(ctx, 4*time.Second)
			for i := range 50 {
				b.create(ctx, s, "/n-", host.PersistentSequential)
				if i%10 == 0 {
					b.zk.Hold(time.Second)
					b.until(ctx, s, host.Disconnected)
					b.until(ctx, s, host.Connected)
				}
			}
		})
		return b.w.TraceHash()
	}
	first, second := run(), run()
	require.Equal(t, first, second)
}
