package tablet_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/real"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/inproc/tablet"
)

// BenchmarkPuts measures acknowledged single-key puts, replication factor 3, in
// the real-time world: three tablets and 64 clients in one process.
func BenchmarkPuts(b *testing.B) { benchmark(b, 64, 12, 0) }

// BenchmarkHalfReads does confirmed reads half of the time.
func BenchmarkHalfReads(b *testing.B) { benchmark(b, 64, 12, 2) }

func benchmark(b *testing.B, clients, buckets, readEvery int) {
	b.Helper()
	w := real.NewWorld(real.Config{NoLatency: true})
	var zxid atomic.Int64
	var nodes []host.Node
	for i := range 3 {
		main := tablet.New(tablet.Config{Server: i, Policy: protocol.Sound().Tablet})
		nodes = append(nodes, w.NewNode(tablet.NodeOf(i), func(ctx context.Context, h host.Host) {
			main(ctx, &benchHost{h, &zxid})
		}))
	}
	var elapsed time.Duration
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		var err error
		elapsed, err = load(ctx, b, c, nodes, clients, buckets, readEvery)
		return err
	})
	w.Close()
	require.NoError(b, err)
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "ops/s")
}

// load starts the tablets, elects by hand, and has the clients do b.N operations.
func load(ctx context.Context, b *testing.B, c host.Control, nodes []host.Node, clients, buckets, readEvery int) (time.Duration, error) {
	b.Helper()
	for _, n := range nodes {
		if err := n.Start(ctx); err != nil {
			return 0, err
		}
	}
	if err := c.Sleep(ctx, 100*time.Millisecond); err != nil {
		return 0, err
	}
	ids := make([]cluster.BucketID, buckets)
	for i := range ids {
		ids[i] = cluster.NewBucket("accounts", 1, "", -1, i)
	}
	for server := range nodes {
		m := &protocol.NotifyLeaderAndIsr{CoordinatorEpoch: 1}
		for i, id := range ids {
			m.Buckets = append(m.Buckets, protocol.BucketState{
				Bucket: id, Table: protocol.TableInfo{Name: "accounts", ID: 1, Kind: cluster.KVTable, MinISR: 2},
				Replicas: []int{0, 1, 2}, LAI: protocol.LeaderAndIsr{Leader: i % 3, ISR: []int{0, 1, 2}},
			})
		}
		if _, err := c.Call(ctx, tablet.NodeOf(server), m); err != nil {
			return 0, err
		}
	}
	if err := c.Sleep(ctx, 300*time.Millisecond); err != nil {
		return 0, err
	}
	begin, left, running, cond := c.Now(), b.N, clients, c.NewCond()
	for i := range clients {
		h := c.Endpoint(cluster.NodeID(fmt.Sprint("client-", i)))
		h.Go(ctx, "client", func(ctx context.Context) {
			for n := 0; left > 0; n++ {
				left--
				bucket := (i + n) % buckets
				if readEvery > 0 && n%readEvery == 0 {
					_, _ = h.Call(ctx, tablet.NodeOf(bucket%3), &protocol.Lookup{Bucket: ids[bucket], Keys: []string{"k"}})
					continue
				}
				answer, err := h.Call(ctx, tablet.NodeOf(bucket%3), &protocol.PutKv{
					Bucket: ids[bucket], Writer: -1, Acks: protocol.AcksAll, TimeoutMillis: 5000,
					Rows: []protocol.Row{{Key: fmt.Sprint("k", n%100), Value: []byte("0123456789")}},
				})
				if err != nil || answer.(*protocol.WriteReply).Code != protocol.CodeNone {
					b.Error(answer, err)
					left = 0
				}
			}
			running--
			cond.Broadcast()
		})
	}
	for running > 0 {
		if err := cond.Wait(ctx); err != nil {
			return 0, err
		}
	}
	return c.Now() - begin, nil
}

type benchHost struct {
	host.Host
	zxid *atomic.Int64
}

type benchSession struct {
	host.Session
	zxid *atomic.Int64
}

func (h *benchHost) Dial(context.Context, host.SessionOptions) (host.Session, error) {
	return &benchSession{zxid: h.zxid}, nil
}

func (s *benchSession) Create(context.Context, string, []byte, host.CreateMode) (string, int64, error) {
	return "", s.zxid.Add(1), nil
}
func (s *benchSession) State() host.SessionState { return host.Connected }
func (s *benchSession) Changed(ctx context.Context, _ host.SessionState) (host.SessionState, error) {
	return host.Closed, nil
}
func (s *benchSession) Close(context.Context) error { return nil }
