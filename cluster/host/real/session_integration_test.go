//go:build integration

package real

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

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
	conform(t, realZooKeeper(t))
}
