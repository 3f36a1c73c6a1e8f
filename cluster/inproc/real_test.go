package inproc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/real"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
)

// TestClusterInRealTime runs the same cluster on the wall clock, over sessions of
// the real client library, and holds that Stop leaves no goroutine behind, a node
// that was killed and one that was paused included.
func TestClusterInRealTime(t *testing.T) {
	before := goleak.IgnoreCurrent()
	zk, err := zookeeper.Embedded{}.Start(t.Context(), zookeeper.Config{})
	require.NoError(t, err)
	w := real.NewWorld(real.Config{Sessions: real.ZooKeeper(zk.Addresses()...)})
	require.NoError(t, w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		ctx, cancel := c.WithTimeout(ctx, time.Minute)
		defer cancel()
		cl, err := New(w, Config{Policy: protocol.Sound()})
		if err != nil {
			return err
		}
		if err := cl.Start(ctx); err != nil {
			return err
		}
		conn, err := cl.Dial(ctx, "client-0", "")
		if err != nil {
			return err
		}
		spec := cluster.TableSpec{Name: "orders", Kind: cluster.KVTable, Buckets: 2, Replication: 3, MinISR: 2}
		if _, err := conn.(cluster.Admin).CreateTable(ctx, spec); err != nil {
			return err
		}
		if _, err := conn.(cluster.KV).Put(ctx, "orders", "k", []byte("1")); err != nil {
			return err
		}
		value, _, err := conn.(cluster.KV).Get(ctx, "orders", "k")
		assert.Equal(t, "1", string(value))
		if err != nil {
			return err
		}
		office, err := cl.Coordinator(ctx)
		assert.NotEmpty(t, office)
		if err != nil {
			return err
		}
		if err := cl.Kill(ctx, "tablet-0"); err != nil {
			return err
		}
		if err := cl.Pause(ctx, "coordinator-1", time.Minute); err != nil {
			return err
		}
		return cl.Stop(ctx)
	}))
	w.Close()
	require.NoError(t, zk.Close(t.Context()))
	goleak.VerifyNone(t, before)
}
