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
)

type text struct{ s string }

func (t text) Clone() host.Message { return t }
func (text) API() string           { return "text" }

func echo(ctx context.Context, h host.Host) {
	n := 0
	h.Serve(func(ctx context.Context, from cluster.NodeID, m host.Message) (host.Message, error) {
		n++
		if err := h.Sleep(ctx, time.Duration(h.Rand().IntN(1000))*time.Microsecond); err != nil {
			return nil, err
		}
		return text{fmt.Sprintf("%s %s %d", m.(text).s, from, n)}, nil
	})
}

func TestCallAnswersAndKillLoses(t *testing.T) {
	w := NewWorld(Config{Seed: 1, NoZooKeeper: true})
	defer w.Close()
	a := w.NewNode("a", echo)
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		_, err := c.Call(ctx, "a", text{"hi"})
		require.ErrorIs(t, err, host.ErrUnreachable)
		require.NoError(t, a.Start(ctx))
		require.NoError(t, c.Sleep(ctx, time.Millisecond))
		got, err := c.Call(ctx, "a", text{"hi"})
		require.NoError(t, err)
		require.Equal(t, text{"hi control 1"}, got)
		c.Go(ctx, "killer", func(ctx context.Context) {
			_ = c.Sleep(ctx, 600*time.Microsecond)
			_ = a.Kill(ctx)
		})
		for err == nil {
			_, err = c.Call(ctx, "a", text{"hi"})
		}
		require.True(t, errors.Is(err, host.ErrLost) || errors.Is(err, host.ErrUnreachable))
		require.False(t, a.Up())
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, w.Findings())
}
