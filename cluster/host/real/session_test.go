package real

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/cluster/host/hosttest"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
)

// conform runs the conformance suite of sessions over servers.
func conform(t *testing.T, servers []string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Run("suite", func(t *testing.T) {
		hosttest.RunSessions(t, func(t *testing.T, o hosttest.Options) hosttest.World {
			t.Helper()
			w := NewWorld(Config{Seed: o.Seed, Observe: o.Observe, Sessions: ZooKeeper(servers...)})
			t.Cleanup(func() {
				w.Close()
				require.Empty(t, w.Findings())
			})
			return w
		})
	})
	goleak.VerifyNone(t, before)
}

func TestSessionsConformOverTheEmbeddedZooKeeper(t *testing.T) {
	s, err := zookeeper.Embedded{}.Start(t.Context(), zookeeper.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	conform(t, s.Addresses())
}
