//go:build integration

package real

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
)

// TestASessionMovesWithinAnEnsemble kills the leader of three servers twice: the
// session goes on at another one, with its watches and its ephemeral node.
func TestASessionMovesWithinAnEnsemble(t *testing.T) {
	server, err := zookeeper.Docker{}.Start(t.Context(), zookeeper.Config{Servers: 3})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close(context.Background())) })
	members, _ := zookeeper.As[zookeeper.Members](server)
	w := NewWorld(Config{Sessions: ZooKeeper(server.Addresses()...)})
	err = w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		s, err := c.Dial(ctx, host.SessionOptions{Timeout: 20 * time.Second})
		require.NoError(t, err)
		own, _, err := s.Create(ctx, "/own", nil, host.Ephemeral)
		require.NoError(t, err)
		_, _, err = s.Create(ctx, "/data", nil, host.Persistent)
		require.NoError(t, err)
		for range 2 {
			_, _, watch, err := s.GetW(ctx, "/data")
			require.NoError(t, err)
			var leader int
			require.NoError(t, c.Block(ctx, "kill leader", func(ctx context.Context) error {
				if leader, err = members.Leader(ctx); err != nil {
					return err
				}
				return members.Kill(ctx, leader)
			}))
			// The followers lose their leader and drop their clients, sooner or later.
			stat, err := s.Exists(ctx, own)
			for lost := false; !lost || err != nil; stat, err = s.Exists(ctx, own) {
				if err != nil {
					lost = true
					require.NotErrorIs(t, err, host.ErrExpired)
				}
				state, err := s.Changed(ctx, s.State())
				require.NoError(t, err)
				require.NotEqual(t, host.Expired, state)
				lost = lost || state == host.Disconnected
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
