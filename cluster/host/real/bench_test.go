package real

import (
	"context"
	"testing"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

type ping struct{ body []byte }

func (p *ping) Clone() host.Message { return &ping{append([]byte(nil), p.body...)} }
func (*ping) API() string           { return "ping" }

func benchCalls(b *testing.B, cfg Config, clients int) {
	b.Helper()
	w := NewWorld(cfg)
	defer w.Close()
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		n := w.NewNode("a", func(_ context.Context, h host.Host) {
			h.Serve(func(_ context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) { return m, nil })
		})
		if err := n.Start(ctx); err != nil {
			return err
		}
		if err := c.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
		left, ended := clients, c.NewCond()
		todo := b.N
		b.ReportAllocs()
		b.ResetTimer()
		for range clients {
			c.Go(ctx, "client", func(ctx context.Context) {
				for todo > 0 {
					todo--
					call, cancel := c.WithTimeout(ctx, time.Second)
					_, err := c.Call(call, "a", &ping{[]byte("0123456789")})
					cancel()
					if err != nil {
						b.Error(err)
						break
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
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCallOneClient(b *testing.B)   { benchCalls(b, Config{NoLatency: true}, 1) }
func BenchmarkCallManyClients(b *testing.B) { benchCalls(b, Config{NoLatency: true}, 32) }
func BenchmarkCallLatency(b *testing.B)     { benchCalls(b, Config{}, 1) }
