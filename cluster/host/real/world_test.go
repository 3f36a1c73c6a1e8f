package real

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/hosttest"
)

func TestRealWorldConforms(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, cfg := range map[string]Config{"default latency": {}, "no latency": {NoLatency: true}} {
		t.Run(name, func(t *testing.T) {
			make := func(_ *testing.T, o hosttest.Options) hosttest.World {
				cfg.Seed, cfg.Observe = o.Seed, o.Observe
				return NewWorld(cfg)
			}
			hosttest.Run(t, make)
			hosttest.RunEnds(t, make)
			hosttest.RunLeavesNothing(t, make)
		})
	}
}

func TestBlockedTaskIsFound(t *testing.T) {
	w := NewWorld(Config{Stall: 30 * time.Millisecond})
	err := w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		blocked := make(chan struct{})
		n := w.NewNode("a", func(context.Context, host.Host) { <-blocked })
		if err := n.Start(ctx); err != nil {
			return err
		}
		for len(w.Findings()) == 0 {
			if err := c.Sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		close(blocked)
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, w.Findings()[0].Detail, "TestBlockedTaskIsFound")
}

func TestCloseGivesUpOnABlockedTask(t *testing.T) {
	w := NewWorld(Config{Stall: -1, Grace: 30 * time.Millisecond})
	blocked := make(chan struct{})
	err := w.Run(t.Context(), func(ctx context.Context, _ host.Control) error {
		return w.NewNode("a", func(context.Context, host.Host) { <-blocked }).Start(ctx)
	})
	require.NoError(t, err)
	require.Contains(t, w.Findings()[0].Detail, "TestCloseGivesUpOnABlockedTask")
	close(blocked)
	w.loops.Wait()
	for _, k := range w.kernels {
		k.Close()
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	std, cancel := context.WithCancel(t.Context())
	w := NewWorld(Config{})
	require.ErrorIs(t, w.Run(std, func(ctx context.Context, c host.Control) error {
		cancel()
		return c.Sleep(ctx, time.Hour)
	}), context.Canceled)
	require.Error(t, w.Run(t.Context(), nil), "a world runs once")

	std, cancel = context.WithCancel(t.Context())
	w = NewWorld(Config{Grace: 10 * time.Millisecond})
	require.ErrorIs(t, w.Run(std, func(ctx context.Context, c host.Control) error {
		cancel()
		for {
			_ = c.Sleep(c.Context(), time.Millisecond)
		}
	}), context.Canceled)
}

func TestBlockIsToldOfTheEnd(t *testing.T) {
	w := NewWorld(Config{})
	err := w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		ctx, cancel := c.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		return c.Block(ctx, "outside", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "outside")
}
