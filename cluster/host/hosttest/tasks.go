package hosttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

func taskCases() []testCase {
	return []testCase{
		{"a sleep takes its time", sleepTakesItsTime},
		{"a context ends sleeps and its children", contextEndsChildren},
		{"a deadline under a nearer one keeps the nearer", nearerDeadlineWins},
		{"contexts of others are refused", foreignContextsRefused},
		{"a broadcast wakes all who wait", broadcastWakesAll},
		{"a mutex excludes, a queue hands over", mutexAndQueue},
		{"block leaves the kernel and comes back", blockComesBack},
		{"await gets what completes it, once", awaitCompletes},
		{"streams depend on seed, name and incarnation", streamsByName},
	}
}

func sleepTakesItsTime(ctx context.Context, b *bench) {
	before := b.c.Now()
	b.sleep(ctx, 30*time.Millisecond)
	took := b.c.Now() - before
	require.GreaterOrEqual(b.t, took, 30*time.Millisecond)
	require.Less(b.t, took, 5*time.Second)
	require.NoError(b.t, b.c.Sleep(ctx, 0))
	require.NoError(b.t, b.c.Sleep(ctx, -time.Second))
}

func contextEndsChildren(ctx context.Context, b *bench) {
	outer, cancel := b.c.WithCancel(ctx)
	inner, release := b.c.WithTimeout(outer, time.Hour)
	defer release()
	var got error
	ended := b.c.NewCond()
	b.c.Go(inner, "sleeper", func(ctx context.Context) {
		got = b.c.Sleep(ctx, time.Hour)
		ended.Broadcast()
	})
	b.c.Go(ctx, "canceller", func(ctx context.Context) {
		_ = b.c.Sleep(ctx, 5*time.Millisecond)
		cancel()
		cancel()
	})
	require.NoError(b.t, ended.Wait(ctx))
	require.ErrorIs(b.t, got, context.Canceled)
	require.ErrorIs(b.t, inner.Err(), context.Canceled)
	require.ErrorIs(b.t, b.c.Sleep(inner, 0), context.Canceled)
	late, release := b.c.WithCancel(outer)
	defer release()
	require.ErrorIs(b.t, late.Err(), context.Canceled)
	select {
	case <-outer.Done():
	default:
		require.Fail(b.t, "Done is open after the end")
	}
}

func nearerDeadlineWins(ctx context.Context, b *bench) {
	near, cancel := b.c.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	far, release := b.c.WithTimeout(near, time.Hour)
	defer release()
	a, ok := near.Deadline()
	require.True(b.t, ok)
	z, _ := far.Deadline()
	require.Equal(b.t, a, z)
	require.ErrorIs(b.t, b.c.Sleep(far, time.Hour), context.DeadlineExceeded)
	past, release := b.c.WithTimeout(ctx, 0)
	defer release()
	require.ErrorIs(b.t, past.Err(), context.DeadlineExceeded)
}

func foreignContextsRefused(ctx context.Context, b *bench) {
	std := b.t.Context()
	wrapped, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, foreign := range []context.Context{std, wrapped} {
		require.Panics(b.t, func() { _ = b.c.Sleep(foreign, 0) })
		require.Panics(b.t, func() { b.c.Go(foreign, "x", func(context.Context) {}) })
		require.Panics(b.t, func() { b.c.WithTimeout(foreign, time.Second) })
		require.Panics(b.t, func() { _ = b.c.NewCond().Wait(foreign) })
		require.Panics(b.t, func() { _, _ = b.c.Call(foreign, "a", say("x")) })
	}
	var other host.Host
	b.start(ctx, "a", func(_ context.Context, h host.Host) {
		other = h
		b.say("set")
	})
	b.until(ctx, "context set", func() bool { return len(b.heard()) == 1 })
	require.Panics(b.t, func() { _ = b.c.Sleep(other.Context(), 0) })
}

func broadcastWakesAll(ctx context.Context, b *bench) {
	cond, done := b.c.NewCond(), b.c.NewCond()
	woken := 0
	for i := range 5 {
		b.c.Go(ctx, fmt.Sprintf("waiter-%d", i), func(ctx context.Context) {
			if cond.Wait(ctx) == nil {
				woken++
			}
			done.Broadcast()
		})
	}
	b.sleep(ctx, time.Millisecond)
	require.Zero(b.t, woken)
	cond.Broadcast()
	for woken < 5 {
		require.NoError(b.t, done.Wait(ctx))
	}
	short, cancel := b.c.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	require.ErrorIs(b.t, cond.Wait(short), context.DeadlineExceeded)
}

func mutexAndQueue(ctx context.Context, b *bench) {
	mu := host.NewMutex(b.c)
	q := host.NewQueue[int](b.c)
	inside := 0
	for i := range 10 {
		b.c.Go(ctx, "worker", func(ctx context.Context) {
			if mu.Lock(ctx) != nil {
				return
			}
			defer mu.Unlock()
			inside++
			_ = b.c.Sleep(ctx, time.Millisecond)
			if inside != 1 {
				i = -1
			}
			inside--
			q.Put(i)
		})
	}
	seen := map[int]bool{}
	for range 10 {
		i, err := q.Take(ctx)
		require.NoError(b.t, err)
		seen[i] = true
	}
	require.Len(b.t, seen, 10)
	require.False(b.t, seen[-1])
	require.Zero(b.t, q.Len())
}

func blockComesBack(ctx context.Context, b *bench) {
	ran := false
	require.NoError(b.t, b.c.Block(ctx, "outside", func(context.Context) error { ran = true; return nil }))
	require.True(b.t, ran)
	mine := errors.New("mine")
	require.ErrorIs(b.t, b.c.Block(ctx, "outside", func(context.Context) error { return mine }), mine)
	ended, cancel := b.c.WithCancel(ctx)
	cancel()
	require.ErrorIs(b.t, b.c.Block(ended, "outside", func(context.Context) error { return nil }), context.Canceled)
}

func awaitCompletes(ctx context.Context, b *bench) {
	v, err := b.c.Await(ctx, "word", func(complete func(any)) { complete("early"); complete("again") })
	require.NoError(b.t, err)
	require.Equal(b.t, "early", v)
	var later func(any)
	b.c.Go(ctx, "completer", func(ctx context.Context) {
		_ = b.c.Sleep(ctx, 5*time.Millisecond)
		later("late")
	})
	v, err = b.c.Await(ctx, "word", func(complete func(any)) { later = complete })
	require.NoError(b.t, err)
	require.Equal(b.t, "late", v)
	short, cancel := b.c.WithTimeout(ctx, 2*time.Millisecond)
	defer cancel()
	var lost func(any)
	_, err = b.c.Await(short, "word", func(complete func(any)) { lost = complete })
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	lost("too late")
	b.sleep(ctx, time.Millisecond)
}

func streamsByName(ctx context.Context, b *bench) {
	draw := func(_ context.Context, h host.Host) { b.say(fmt.Sprint(h.ID(), h.Incarnation(), h.Rand().Uint64())) }
	a := b.start(ctx, "a", draw)
	require.NoError(b.t, a.Kill(ctx))
	require.NoError(b.t, a.Start(ctx))
	b.start(ctx, "b", draw)
	b.until(ctx, "three draws", func() bool { return len(b.heard()) == 3 })
	draws := map[string]bool{}
	for _, s := range b.heard() {
		draws[s[len("a1"):]] = true
	}
	require.Len(b.t, draws, 3)
	e := b.c.Endpoint("client-0")
	require.Same(b.t, e, b.c.Endpoint("client-0"))
	require.NotEqual(b.t, e.Rand().Uint64(), b.c.Rand().Uint64())
}
