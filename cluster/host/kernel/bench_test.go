package kernel

import (
	"context"
	"testing"
	"time"
)

// run runs main as a task and stops the kernel when it returns.
func run(tb testing.TB, k *Kernel, main func(ctx context.Context, g *Group)) {
	tb.Helper()
	tb.Cleanup(k.Close)
	g := k.NewGroup("main")
	g.Go(g.Context(), "main", func(ctx context.Context) {
		main(ctx, g)
		k.Stop()
	})
	if err := k.Run(); err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkHandOver(b *testing.B) {
	k := New(Config{StepLimit: 1 << 60})
	b.ReportAllocs()
	run(b, k, func(ctx context.Context, g *Group) {
		ping, pong := g.MakeCond(), g.MakeCond()
		g.Go(ctx, "pong", func(ctx context.Context) {
			for ping.Wait(ctx) == nil {
				pong.Broadcast()
			}
		})
		_ = g.Sleep(ctx, 1)
		for b.Loop() {
			ping.Broadcast()
			_ = pong.Wait(ctx)
		}
	})
}

func BenchmarkSleep(b *testing.B) {
	k := New(Config{Trace: true})
	b.ReportAllocs()
	run(b, k, func(ctx context.Context, g *Group) {
		for i := range 1000 {
			g.Go(ctx, "sleeper", func(ctx context.Context) {
				for {
					_ = g.Sleep(ctx, time.Duration(1000+i))
				}
			})
		}
		for b.Loop() {
			_ = g.Sleep(ctx, 1)
		}
	})
}

func BenchmarkSpawn(b *testing.B) {
	k := New(Config{})
	b.ReportAllocs()
	run(b, k, func(ctx context.Context, g *Group) {
		f := func(context.Context) {}
		for b.Loop() {
			g.Go(ctx, "short", f)
			_ = g.Sleep(ctx, 1)
		}
	})
}

func BenchmarkTimeout(b *testing.B) {
	k := New(Config{})
	b.ReportAllocs()
	run(b, k, func(ctx context.Context, g *Group) {
		for b.Loop() {
			_, cancel := g.WithTimeout(ctx, time.Second)
			cancel()
		}
	})
}
