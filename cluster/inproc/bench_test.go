package inproc

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/real"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
	"github.com/fencepost-dev/fencepost/history"
)

// The benchmarks run a whole cluster in real time without faults and without
// link latency: 3 coordinators, 3 tablets, 12 buckets, replication factor 3,
// min-ISR 2, 64 clients that put or get single keys, one request each at a time.
// ZooKeeper is off the path of data. It is the embedded one unless
// FENCEPOST_ZOOKEEPER names another (docker, or HOST:PORT).

func BenchmarkPut(b *testing.B) { benchmarkCluster(b, 0) }

// BenchmarkHalfReads has confirmed reads for every other operation.
func BenchmarkHalfReads(b *testing.B) { benchmarkCluster(b, 2) }

func benchmarkCluster(b *testing.B, readEvery int) {
	b.Helper()
	spec := os.Getenv("FENCEPOST_ZOOKEEPER")
	if spec == "" {
		spec = "embedded"
	}
	provider, err := zookeeper.Parse(spec, "")
	require.NoError(b, err)
	zk, err := provider.Start(b.Context(), zookeeper.Config{})
	require.NoError(b, err)
	defer func() { require.NoError(b, zk.Close(context.Background())) }()
	l := &load{b: b, readEvery: readEvery, left: b.N}
	w := real.NewWorld(real.Config{NoLatency: true, Sessions: real.ZooKeeper(zk.Addresses()...), Observe: l.observe})
	defer w.Close()
	require.NoError(b, w.Run(b.Context(), func(ctx context.Context, c host.Control) error {
		l.c, l.changed = c, c.NewCond()
		return l.run(ctx, w)
	}))
	require.Zero(b, l.failed)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(l.tries)/float64(b.N), "tries/op")
}

const benchClients = 64

// load is the clients of a benchmark; they share the work.
type load struct {
	b             *testing.B
	c             host.Control
	changed       host.Cond
	readEvery     int
	left          int
	ready, ended  int
	begun         bool
	tries, failed int
	mu            sync.Mutex
	events        int
}

func (l *load) observe(cluster.NodeID, time.Duration, history.Event) {
	l.mu.Lock()
	l.events++
	l.mu.Unlock()
}

func (l *load) run(ctx context.Context, w host.World) error {
	cl, err := New(w, Config{Policy: protocol.Sound()})
	if err != nil {
		return err
	}
	start, cancel := l.c.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := cl.Start(start); err != nil {
		return err
	}
	admin, err := cl.Dial(ctx, "setup", "")
	if err != nil {
		return err
	}
	spec := cluster.TableSpec{Name: "orders", Kind: cluster.KVTable, Buckets: 12, Replication: 3, MinISR: 2}
	if _, err := admin.(cluster.Admin).CreateTable(start, spec); err != nil {
		return err
	}
	for i := range benchClients {
		conn, err := cl.Dial(ctx, cluster.NodeID(fmt.Sprintf("client-%d", i)), "")
		if err != nil {
			return err
		}
		l.c.Go(ctx, "client", func(ctx context.Context) { l.client(ctx, i, conn.(cluster.KV)) })
	}
	for l.ready < benchClients {
		if err := l.changed.Wait(ctx); err != nil {
			return err
		}
	}
	l.b.ResetTimer()
	l.begun = true
	l.changed.Broadcast()
	for l.ended < benchClients {
		if err := l.changed.Wait(ctx); err != nil {
			return err
		}
	}
	l.b.StopTimer()
	return cl.Stop(ctx)
}

// client does its share; its first puts, before the clock runs, find the leaders.
func (l *load) client(ctx context.Context, i int, kv cluster.KV) {
	const keys = 12
	for k := range keys {
		l.one(ctx, kv, fmt.Sprintf("k%d-%d", i, k), false)
	}
	l.ready++
	l.changed.Broadcast()
	for !l.begun {
		if l.changed.Wait(ctx) != nil {
			return
		}
	}
	l.tries = 0
	for n := 0; l.left > 0; n++ {
		l.left--
		l.tries += l.one(ctx, kv, fmt.Sprintf("k%d-%d", i, n%keys), l.readEvery > 0 && n%l.readEvery == 0)
	}
	l.ended++
	l.changed.Broadcast()
}

func (l *load) one(ctx context.Context, kv cluster.KV, key string, read bool) int {
	ctx, cancel := l.c.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var a cluster.Attempts
	var err error
	if read {
		_, a, err = kv.Get(ctx, "orders", key)
	} else {
		a, err = kv.Put(ctx, "orders", key, []byte("1234567"))
	}
	if err != nil {
		l.failed++
		l.b.Logf("%s: %v", key, err)
	}
	return a.Tries
}
