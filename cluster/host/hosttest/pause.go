package hosttest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

func pauseCases() []testCase {
	return []testCase{
		{"a paused node does nothing, then goes on", pauseHolds},
		{"a pause ends by its lease", pauseLease},
		{"calls to a paused node wait", pausedCalls},
		{"a paused node can be killed and started", pausedKill},
		{"a pause again renews the lease", pauseAgain},
	}
}

func ticking(ctx context.Context, h host.Host) {
	echo(ctx, h)
	for i := 0; ; i++ {
		if h.Sleep(ctx, time.Millisecond) != nil {
			return
		}
		h.Observe(history.Ready{Server: i})
	}
}

// quiet checks that a node reports nothing for a while, or that it does.
func (b *bench) quiet(ctx context.Context, n host.Node, want bool) {
	b.t.Helper()
	before := len(b.seenOf(n.ID()))
	if want {
		b.rest(ctx)
		require.Len(b.t, b.seenOf(n.ID()), before)
		return
	}
	b.until(ctx, "it runs", func() bool { return len(b.seenOf(n.ID())) > before+2 })
}

func pauseHolds(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", ticking)
	require.NoError(b.t, n.Pause(ctx, time.Hour))
	b.quiet(ctx, n, true)
	require.True(b.t, n.Up())
	require.NoError(b.t, n.Resume(ctx))
	b.quiet(ctx, n, false)
	require.NoError(b.t, n.Resume(ctx), "without a pause it does nothing")
	require.Equal(b.t, []string{history.NodeUp, history.NodePaused, history.NodeResumed}, b.states())
	require.NoError(b.t, n.Kill(ctx))
	require.Error(b.t, n.Pause(ctx, time.Hour))
}

func pauseLease(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", ticking)
	require.NoError(b.t, n.Pause(ctx, 300*time.Millisecond))
	b.quiet(ctx, n, true)
	b.sleep(ctx, 300*time.Millisecond)
	b.quiet(ctx, n, false)
	require.Equal(b.t, []string{history.NodeUp, history.NodePaused, history.NodeResumed}, b.states())
}

func pausedCalls(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", ticking)
	require.NoError(b.t, n.Pause(ctx, time.Hour))
	_, err := b.call(ctx, "a", say("x"), 20*time.Millisecond)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	b.c.Go(ctx, "resume", func(ctx context.Context) {
		_ = b.c.Sleep(ctx, 20*time.Millisecond)
		_ = n.Resume(ctx)
	})
	before := b.c.Now()
	_, err = b.call(ctx, "a", say("x"), 10*time.Second)
	require.NoError(b.t, err)
	require.GreaterOrEqual(b.t, b.c.Now()-before, 20*time.Millisecond)
}

func pausedKill(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", ticking)
	require.NoError(b.t, n.Pause(ctx, time.Hour))
	require.NoError(b.t, n.Kill(ctx))
	require.NoError(b.t, n.Start(ctx))
	b.quiet(ctx, n, false)
}

func pauseAgain(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", ticking)
	require.NoError(b.t, n.Pause(ctx, 20*time.Millisecond))
	require.NoError(b.t, n.Pause(ctx, time.Hour))
	b.sleep(ctx, 40*time.Millisecond)
	b.quiet(ctx, n, true)
}
