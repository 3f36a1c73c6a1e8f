package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/real"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/harness/gen"
	"github.com/fencepost-dev/fencepost/history"
)

// instant is a client that answers at once.
type instant struct{}

func (instant) Invoke(context.Context, history.Op) (harness.Completion, error) {
	return harness.Completion{}, nil
}
func (instant) Close(context.Context) error { return nil }

// What the harness itself costs an operation: generator, loop, worker, two
// lines of history on disk.
func BenchmarkLoopInRealTime(b *testing.B) {
	o := harness.DefaultOptions()
	o.Concurrency, o.TimeLimit, o.Tablets, o.Replication, o.MinISR = 64, time.Hour, 1, 1, 1
	rec, err := harness.NewRecorder(b.TempDir())
	require.NoError(b, err)
	world := real.NewWorld(real.Config{Observe: rec.Observe})
	defer world.Close()
	value := []byte(`{"key":"k1","value":7}`)
	test := harness.Test{
		Options: o, HostWorld: world, Cluster: newFake(world, 1), Recorder: rec,
		Workload: harness.Workload{
			Name: "instant",
			Open: func(context.Context, harness.Env, history.Process) (harness.Client, error) { return instant{}, nil },
			Generator: func(harness.Options) harness.Generator {
				return gen.Limit(b.N, gen.Independent(gen.Keys{Prefix: "k", Active: 24, Ops: 180, Open: 10},
					func(harness.Context, string) history.Op { return history.Op{F: "write", Value: value} }))
			},
		},
	}
	b.ReportAllocs()
	require.NoError(b, world.Run(b.Context(), func(ctx context.Context, c host.Control) error {
		test.Control = c
		b.ResetTimer()
		_, err := harness.Run(ctx, test)
		return err
	}))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
