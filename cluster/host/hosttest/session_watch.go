package hosttest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

func sessionWatchCases() []testCase {
	return []testCase{
		{"watches fire once, for what they watch", zkWatchesFire},
		{"a missing node is watched by ExistsW alone", zkWatchesOnNothing},
		{"a watch is seen before newer data", zkWatchBeforeData},
		{"an event from before does not fire a watch", zkWatchIsNew},
		{"a wait for a watch ends with its context", zkWatchContext},
		{"watches survive a cut", zkWatchesSurvive},
		{"a watch is seen before newer data, over forty cuts", zkWatchOverCuts},
	}
}

func zkWatchesFire(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	a, gone := z.make(ctx, "/a"), z.make(ctx, "/gone")
	_, _, data, err := z.GetW(ctx, a)
	require.NoError(b.t, err)
	_, exists, err := z.ExistsW(ctx, a)
	require.NoError(b.t, err)
	_, _, children, err := z.ChildrenW(ctx, z.root)
	require.NoError(b.t, err)
	_, _, deleted, err := z.GetW(ctx, gone)
	require.NoError(b.t, err)
	_, created, err := z.ExistsW(ctx, z.root+"/new")
	require.ErrorIs(b.t, err, host.ErrNoNode)
	for _, w := range []host.Watch{data, exists, children, deleted, created} {
		require.False(b.t, w.Fired())
	}

	_, err = z.Set(ctx, a, []byte("second"), -1)
	require.NoError(b.t, err)
	require.Equal(b.t, host.WatchEvent{Type: host.NodeDataChanged, Path: a}, b.waits(ctx, data))
	require.Equal(b.t, host.WatchEvent{Type: host.NodeDataChanged, Path: a}, b.waits(ctx, exists))
	require.False(b.t, children.Fired(), "the data of a child is not the list of children")
	_, err = z.Delete(ctx, gone, -1)
	require.NoError(b.t, err)
	require.Equal(b.t, host.WatchEvent{Type: host.NodeDeleted, Path: gone}, b.waits(ctx, deleted))
	require.Equal(b.t, host.WatchEvent{Type: host.NodeChildrenChanged, Path: z.root}, b.waits(ctx, children))
	z.make(ctx, "/new")
	require.Equal(b.t, host.WatchEvent{Type: host.NodeCreated, Path: z.root + "/new"}, b.waits(ctx, created))
	require.True(b.t, created.Fired())
	require.Equal(b.t, host.WatchEvent{Type: host.NodeCreated, Path: z.root + "/new"}, b.waits(ctx, created), "it stays fired")
}

func zkWatchesOnNothing(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	_, _, w, err := z.GetW(ctx, z.root+"/a")
	require.ErrorIs(b.t, err, host.ErrNoNode)
	require.Nil(b.t, w)
	_, _, w, err = z.ChildrenW(ctx, z.root+"/a")
	require.ErrorIs(b.t, err, host.ErrNoNode)
	require.Nil(b.t, w)
	_, w, err = z.ExistsW(ctx, z.root+"/a")
	require.ErrorIs(b.t, err, host.ErrNoNode)
	require.NotNil(b.t, w)
	z.make(ctx, "/a")
	require.Equal(b.t, host.NodeCreated, b.waits(ctx, w).Type)
}

// zkWatchBeforeData: whoever reads data newer than his watch has seen it fire.
func zkWatchBeforeData(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	a := z.make(ctx, "/a")
	rounds := 100
	b.start(ctx, "writer", func(ctx context.Context, h host.Host) {
		s, err := h.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
		for i := 0; err == nil && i < 20*rounds; i++ {
			if _, err = s.Set(ctx, a, []byte{byte(i)}, -1); err == nil {
				err = h.Sleep(ctx, time.Millisecond)
			}
		}
	})
	for range rounds {
		_, old, w, err := z.GetW(ctx, a)
		require.NoError(b.t, err)
		for {
			_, stat, err := z.Get(ctx, a)
			require.NoError(b.t, err)
			if stat.Version != old.Version {
				break
			}
			require.NoError(b.t, b.c.Sleep(ctx, time.Millisecond))
		}
		require.True(b.t, w.Fired(), "newer data was read before the watch fired")
	}
}

// zkWatchOverCuts: a client that is back must renew its watches before it asks
// anything, else it reads data newer than an event that is still to come, or
// that never comes.
func zkWatchOverCuts(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	a := z.make(ctx, "/a")
	b.start(ctx, "writer", func(ctx context.Context, h host.Host) {
		s, err := h.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
		for err == nil {
			if _, err = s.Set(ctx, a, nil, -1); err == nil {
				err = h.Sleep(ctx, 2*time.Millisecond)
			}
		}
	})
	for range 40 {
		_, old, w, err := z.GetW(ctx, a)
		for unanswered(err) {
			b.sleep(ctx, time.Millisecond)
			_, old, w, err = z.GetW(ctx, a)
		}
		require.NoError(b.t, err)
		b.flap(ctx, z)
		_, stat, err := z.Get(ctx, a)
		for unanswered(err) || err == nil && stat.Version == old.Version { // nobody wrote meanwhile
			b.sleep(ctx, time.Millisecond)
			_, stat, err = z.Get(ctx, a)
		}
		require.NoError(b.t, err)
		require.True(b.t, w.Fired(), "newer data was read before the watch fired")
	}
	require.NoError(b.t, b.nodes["writer"].Kill(ctx))
}

// unanswered tells a read that met a connection which had broken once more. The
// client may break one itself while it comes back; such a read has shown nothing,
// and the case ends by its deadline if none is ever answered.
func unanswered(err error) bool {
	return errors.Is(err, host.ErrNotSent) || errors.Is(err, host.ErrConnectionLoss)
}

func zkWatchIsNew(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	a := z.make(ctx, "/a")
	_, _, first, err := z.GetW(ctx, a)
	require.NoError(b.t, err)
	var second host.Watch
	done := false
	b.c.Go(ctx, "again", func(ctx context.Context) {
		_, _, second, _ = z.GetW(ctx, a) // behind the write, before its event has come
		done = true
	})
	_, err = z.Set(ctx, a, nil, -1)
	require.NoError(b.t, err)
	b.waits(ctx, first)
	b.until(ctx, "second watch is set", func() bool { return done })
	_, stat, third, err := z.GetW(ctx, a)
	require.NoError(b.t, err)
	require.Equal(b.t, int32(1), stat.Version)
	b.rest(ctx)
	require.False(b.t, third.Fired(), "the event of a change that had been seen already")
	require.NotNil(b.t, second)
	_, err = z.Set(ctx, a, nil, -1)
	require.NoError(b.t, err)
	b.waits(ctx, third)
	b.waits(ctx, second)
}

func zkWatchContext(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	_, _, w, err := z.GetW(ctx, z.root)
	require.NoError(b.t, err)
	short, cancel := b.c.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = w.Wait(short)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	_, err = z.Set(ctx, z.root, nil, -1)
	require.NoError(b.t, err)
	b.waits(ctx, w)
}

// zkWatchesSurvive: what happened while the client was cut off is told when it
// is back, as one event that names the difference, not the story.
func zkWatchesSurvive(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	const changed, deleted, again, never, created, same = "/changed", "/deleted", "/again", "/never", "/created", "/same"
	data := map[string]host.Watch{}
	for _, name := range []string{changed, deleted, again, same} {
		path := z.make(ctx, name)
		var err error
		_, _, data[name], err = z.GetW(ctx, path)
		require.NoError(b.t, err)
	}
	for _, name := range []string{never, created} {
		var err error
		_, data[name], err = z.ExistsW(ctx, z.root+name)
		require.ErrorIs(b.t, err, host.ErrNoNode)
	}
	parent := z.make(ctx, "/parent")
	_, _, children, err := z.ChildrenW(ctx, parent)
	require.NoError(b.t, err)

	undo := b.w.ZooKeeper(controlID).Hold(time.Minute)
	b.reach(ctx, z, host.Disconnected, sessionTimeout)
	b.elsewhere(ctx, func(ctx context.Context, s host.Session) {
		check := func(err error) {
			if err != nil {
				b.say("elsewhere-1 failed: " + err.Error())
			}
		}
		_, err := s.Set(ctx, z.root+changed, nil, -1)
		check(err)
		_, err = s.Delete(ctx, z.root+deleted, -1)
		check(err)
		_, err = s.Delete(ctx, z.root+again, -1)
		check(err)
		for _, name := range []string{again, never, created, "/parent/child"} {
			_, _, err = s.Create(ctx, z.root+name, nil, host.Persistent)
			check(err)
		}
		for _, name := range []string{never, "/parent/child"} {
			_, err = s.Delete(ctx, z.root+name, -1)
			check(err)
		}
	})
	undo()
	b.reach(ctx, z, host.Connected, sessionTimeout)
	require.Equal(b.t, host.NodeDataChanged, b.waits(ctx, data[changed]).Type)
	require.Equal(b.t, host.NodeDeleted, b.waits(ctx, data[deleted]).Type)
	require.Equal(b.t, host.NodeDataChanged, b.waits(ctx, data[again]).Type, "deleted and created again")
	require.Equal(b.t, host.NodeCreated, b.waits(ctx, data[created]).Type)
	require.Equal(b.t, host.NodeChildrenChanged, b.waits(ctx, children).Type, "a child came and went")
	require.NoError(b.t, z.Sync(ctx, z.root))
	require.False(b.t, data[never].Fired(), "created and deleted again")
	require.False(b.t, data[same].Fired())
	_, err = z.Set(ctx, z.root+same, nil, -1)
	require.NoError(b.t, err)
	b.waits(ctx, data[same])
}
