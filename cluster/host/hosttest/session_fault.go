package hosttest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

func sessionFaultCases() []testCase {
	return []testCase{
		{"a delay is felt both ways", zkDelay},
		{"watch events can be late, and stay in order", zkLateWatches},
		{"a hold ends by its lease", zkHoldLease},
		{"taps see what passes", zkTaps},
	}
}

func zkDelay(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	control := b.w.ZooKeeper(controlID)
	undo := control.Delay(50*time.Millisecond, time.Minute)
	control.Delay(10*time.Millisecond, time.Minute)
	began := b.c.Now()
	_, _, err := z.Get(ctx, z.root)
	require.NoError(b.t, err)
	require.GreaterOrEqual(b.t, b.c.Now()-began, 100*time.Millisecond, "the longest counts")
	undo()
	began = b.c.Now()
	_, _, err = z.Get(ctx, z.root)
	require.NoError(b.t, err)
	require.Less(b.t, b.c.Now()-began, 100*time.Millisecond)
}

func zkLateWatches(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	_, _, w, err := z.GetW(ctx, z.root)
	require.NoError(b.t, err)
	b.w.ZooKeeper(controlID).DelayWatches(100*time.Millisecond, time.Minute)
	began := b.c.Now()
	_, err = z.Set(ctx, z.root, nil, -1)
	require.NoError(b.t, err)
	require.True(b.t, w.Fired(), "the answer stands behind the event")
	require.GreaterOrEqual(b.t, b.c.Now()-began, 100*time.Millisecond)
	began = b.c.Now()
	_, err = z.Set(ctx, z.root, nil, -1)
	require.NoError(b.t, err)
	require.Less(b.t, b.c.Now()-began, 100*time.Millisecond, "without an event nothing is late")
}

func zkHoldLease(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	began := b.c.Now()
	b.flap(ctx, z)
	require.Less(b.t, b.c.Now()-began, sessionTimeout/2)
}

func zkTaps(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	var mu sync.Mutex
	var seen []host.ZKPassing
	undo := b.w.ZooKeeper(controlID).Tap(func(p host.ZKPassing) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p)
	})
	name, zxid, err := z.Create(ctx, z.root+"/n-", nil, host.PersistentSequential)
	require.NoError(b.t, err)
	_, _, err = z.Get(ctx, z.root+"/none")
	require.ErrorIs(b.t, err, host.ErrNoNode)
	multi, err := z.Multi(ctx, host.Check(z.root, 0), host.SetOp(name, nil, -1))
	require.NoError(b.t, err)
	undo()
	_, err = z.Set(ctx, name, nil, -1)
	require.NoError(b.t, err)

	mu.Lock()
	defer mu.Unlock()
	require.Len(b.t, seen, 6)
	read := seen[3].Zxid // of a read: the newest that the server knew
	require.Equal(b.t, []host.ZKPassing{
		{Node: controlID, Op: "create", Paths: []string{z.root + "/n-"}},
		{Node: controlID, Op: "create", Paths: []string{name}, Reply: true, Zxid: zxid},
		{Node: controlID, Op: "get", Paths: []string{z.root + "/none"}},
		{Node: controlID, Op: "get", Paths: []string{z.root + "/none"}, Reply: true, Zxid: read, Err: -101},
		{Node: controlID, Op: "multi", Paths: []string{name}},
		{Node: controlID, Op: "multi", Paths: []string{name}, Reply: true, Zxid: multi.Zxid},
	}, seen)
}
