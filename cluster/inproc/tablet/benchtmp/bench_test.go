package benchtmp

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/real"
	"github.com/fencepost-dev/fencepost/cluster/inproc/client"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/inproc/tablet"
)

func BenchmarkPut(b *testing.B)  { bench(b, 0) }
func BenchmarkHalf(b *testing.B) { bench(b, 2) }

func bench(b *testing.B, readEvery int) {
	w := real.NewWorld(real.Config{NoLatency: true})
	defer w.Close()
	info := protocol.TableInfo{Name: "orders", ID: 1, Kind: cluster.KVTable, Buckets: 12, Replication: 3, MinISR: 2}
	var tabs []host.Node
	var infos []cluster.NodeInfo
	for i := range 3 {
		tabs = append(tabs, w.NewNode(tablet.NodeOf(i), tablet.New(tablet.Config{Server: i, Policy: protocol.Sound().Tablet, SessionTimeout: time.Second, Timing: tablet.Timing{Retry: time.Hour}})))
		infos = append(infos, cluster.NodeInfo{ID: tablet.NodeOf(i), Role: cluster.RoleTablet, Server: i})
	}
	coord := w.NewNode("coordinator-0", func(ctx context.Context, h host.Host) {
		writer := int64(0)
		h.Serve(func(ctx context.Context, from cluster.NodeID, m host.Message) (host.Message, error) {
			switch m.(type) {
			case *protocol.InitWriter:
				writer++
				return &protocol.InitWriterReply{Writer: writer}, nil
			}
			return &protocol.AdjustIsrReply{Code: protocol.CodeNotCoordinatorLeader}, nil
		})
		up := &protocol.UpdateMetadata{CoordinatorEpoch: 1, Coordinator: protocol.ServerNode{Server: -1, Node: "coordinator-0"}, Tables: []protocol.TableInfo{info}}
		not := &protocol.NotifyLeaderAndIsr{CoordinatorEpoch: 1, MaxWaitMillis: 100}
		for i := range 3 {
			up.Tablets = append(up.Tablets, protocol.ServerNode{Server: i, Node: tablet.NodeOf(i)})
		}
		for i := range 12 {
			id := cluster.NewBucket("orders", 1, "", -1, i)
			up.Buckets = append(up.Buckets, protocol.BucketMetadata{Bucket: id, Leader: i % 3, Replicas: []int{0, 1, 2}})
			not.Buckets = append(not.Buckets, protocol.BucketState{Bucket: id, Table: info, Replicas: []int{0, 1, 2}, LAI: protocol.LeaderAndIsr{Leader: i % 3, ISR: []int{0, 1, 2}, CoordinatorEpoch: 1}})
		}
		for range 3 {
			for i := range 3 {
				_, _ = h.Call(ctx, tablet.NodeOf(i), not)
				_, _ = h.Call(ctx, tablet.NodeOf(i), up)
			}
			_ = h.Sleep(ctx, 50*time.Millisecond)
		}
	})
	err := w.Run(b.Context(), func(ctx context.Context, c host.Control) error {
		for _, t := range tabs {
			require.NoError(b, t.Start(ctx))
		}
		require.NoError(b, coord.Start(ctx))
		_ = c.Sleep(ctx, 300*time.Millisecond)
		const clients = 64
		left, done := b.N, 0
		cond := c.NewCond()
		var tries, failed int
		start := false
		ready := 0
		for i := range clients {
			cl := client.New(c.Endpoint(cluster.NodeID(fmt.Sprintf("client-%d", i))), client.Config{Policy: protocol.Sound().Client, Tablets: infos})
			c.Go(ctx, "w", func(ctx context.Context) {
				key := fmt.Sprintf("k%d", i)
				for j := range 12 {
					cx, cancel := c.WithTimeout(ctx, 10*time.Second)
					_, err := cl.Put(cx, "orders", fmt.Sprintf("%s-%d", key, j), []byte("1"))
					cancel()
					if err != nil {
						b.Error(err)
					}
				}
				ready++
				cond.Broadcast()
				for !start {
					_ = cond.Wait(ctx)
				}
				for n := 0; left > 0; n++ {
					left--
					cx, cancel := c.WithTimeout(ctx, 10*time.Second)
					k := fmt.Sprintf("%s-%d", key, n%12)
					var a cluster.Attempts
					var err error
					if readEvery > 0 && n%readEvery == 0 {
						_, a, err = cl.Get(cx, "orders", k)
					} else {
						a, err = cl.Put(cx, "orders", k, []byte("123456"))
					}
					cancel()
					tries += a.Tries
					if err != nil {
						failed++
					}
				}
				done++
				cond.Broadcast()
			})
		}
		for ready < clients {
			_ = cond.Wait(ctx)
		}
		b.ResetTimer()
		start = true
		cond.Broadcast()
		for done < clients {
			_ = cond.Wait(ctx)
		}
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		b.ReportMetric(float64(failed), "failed")
		fmt.Fprintln(os.Stderr, "tries", tries, "failed", failed, "n", b.N)
		return nil
	})
	require.NoError(b, err)
}
