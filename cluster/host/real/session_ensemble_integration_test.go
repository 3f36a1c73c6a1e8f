//go:build integration

package real

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
	"github.com/fencepost-dev/fencepost/history"
)

// TestASessionMovesWithinAnEnsemble kills the leader of three servers twice: the
// session goes on at another one, with its watches and its ephemeral node.
func TestASessionMovesWithinAnEnsemble(t *testing.T) {
	server, err := zookeeper.Docker{}.Start(t.Context(), zookeeper.Config{Servers: 3})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close(context.Background())) })
	members, _ := zookeeper.As[zookeeper.Members](server)
	var breaks atomic.Int32
	w := NewWorld(Config{Sessions: ZooKeeper(server.Addresses()...), Observe: func(_ cluster.NodeID, _ time.Duration, e history.Event) {
		if s, ok := e.(history.Session); ok && s.State == history.SessionSuspended {
			breaks.Add(1)
		}
	}})
	err = w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		ctx, cancel := c.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		s, err := c.Dial(ctx, host.SessionOptions{Timeout: 20 * time.Second})
		require.NoError(t, err)
		own, _, err := s.Create(ctx, "/own", nil, host.Ephemeral)
		require.NoError(t, err)
		_, _, err = s.Create(ctx, "/data", nil, host.Persistent)
		require.NoError(t, err)
		for range 2 {
			_, _, watch, err := s.GetW(ctx, "/data")
			require.NoError(t, err)
			before := breaks.Load()
			var leader int
			require.NoError(t, c.Block(ctx, "kill leader", func(ctx context.Context) error {
				if leader, err = members.Leader(ctx); err != nil {
					return err
				}
				return members.Kill(ctx, leader)
			}))
			// The followers lose their leader and drop their clients.
			for breaks.Load() == before {
				require.NoError(t, c.Sleep(ctx, 10*time.Millisecond))
			}
			stat, err := s.Exists(ctx, own)
			for err != nil {
				require.NotErrorIs(t, err, host.ErrExpired)
				require.NoError(t, c.Sleep(ctx, 50*time.Millisecond))
				stat, err = s.Exists(ctx, own)
			}
			require.Equal(t, s.ID(), stat.EphemeralOwner)
			require.NoError(t, c.Block(ctx, "restart", func(ctx context.Context) error { return members.Restart(ctx, leader) }))
			_, err = s.Set(ctx, "/data", nil, -1)
			require.NoError(t, err)
			_, err = watch.Wait(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, w.ZooKeeper("control").Expire(ctx, host.ByTakeover))
		state := s.State()
		for state != host.Expired {
			state, err = s.Changed(ctx, state)
			require.NoError(t, err)
		}
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, w.Findings())
}
