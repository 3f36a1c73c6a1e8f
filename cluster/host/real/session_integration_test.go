//go:build integration

package real

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host/hosttest"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
)

// realZooKeeper starts a server in Docker for one test.
func realZooKeeper(t *testing.T) []string {
	t.Helper()
	s, err := zookeeper.Docker{}.Start(t.Context(), zookeeper.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s.Addresses()
}

func TestSessionsConformOverARealZooKeeper(t *testing.T) {
	servers := realZooKeeper(t)
	before := goleak.IgnoreCurrent()
	hosttest.RunSessions(t, func(t *testing.T, o hosttest.Options) hosttest.World {
		t.Helper()
		w := NewWorld(Config{Seed: o.Seed, Observe: o.Observe, Log: zap.NewNop(), Sessions: ZooKeeper(servers...)})
		t.Cleanup(func() {
			w.Close()
			require.Empty(t, w.Findings())
			goleak.VerifyNone(t, before)
		})
		return w
	})
}
