package real

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
)

// BenchmarkSession measures one call at a time, and eight at a time, through
// kernel, library, gate and the embedded server.
func BenchmarkSession(b *testing.B) {
	server, err := zookeeper.Embedded{}.Start(b.Context(), zookeeper.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Close(context.Background())) })
	for name, tasks := range map[string]int{"one": 1, "eight": 8} {
		b.Run(name, func(b *testing.B) {
			w := NewWorld(Config{Sessions: ZooKeeper(server.Addresses()...)})
			require.NoError(b, w.Run(b.Context(), func(ctx context.Context, c host.Control) error {
				s, err := c.Dial(ctx, host.SessionOptions{Timeout: 10 * time.Second})
				if err != nil {
					return err
				}
				left, ended := tasks, c.NewCond()
				b.ResetTimer()
				for range tasks {
					c.Go(ctx, "set", func(ctx context.Context) {
						for range b.N / tasks {
							if _, err := s.Set(ctx, "/", nil, -1); err != nil {
								b.Error(err)
							}
						}
						left--
						ended.Broadcast()
					})
				}
				for left > 0 {
					if err := ended.Wait(ctx); err != nil {
						return err
					}
				}
				b.StopTimer()
				return s.Close(ctx)
			}))
		})
	}
}
