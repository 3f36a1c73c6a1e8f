package sim

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// gossip is a small program with everything that could upset determinism:
// tasks, calls, time-outs, conditions, draws, a disk, a restart that reads it.
// Peers gives the order in which it calls its peers.
func gossip(peers func() []cluster.NodeID) host.Main {
	return func(ctx context.Context, h host.Host) {
		heard, news := 0, h.NewCond()
		if b, err := h.Disk().ReadFile(ctx, "heard"); err == nil {
			heard = len(b)
		}
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			heard++
			news.Broadcast()
			if err := h.Disk().Append(ctx, "heard", []byte{'x'}); err != nil {
				return nil, err
			}
			if h.Rand().IntN(4) == 0 {
				if err := h.Disk().Sync(ctx, "heard"); err != nil {
					return nil, err
				}
			}
			return m, nil
		})
		h.Go(ctx, "teller", func(ctx context.Context) {
			for news.Wait(ctx) == nil {
				h.Observe(history.Ready{Server: heard, Incarnation: int64(h.Incarnation())})
			}
		})
		for round := 0; ; round++ {
			for _, to := range peers() {
				h.Go(ctx, "tell", func(ctx context.Context) {
					ctx, cancel := h.WithTimeout(ctx, 2*time.Millisecond)
					defer cancel()
					_, _ = h.Call(ctx, to, text{fmt.Sprint(round)})
				})
			}
			if h.Sleep(ctx, time.Duration(1+h.Rand().IntN(3))*time.Millisecond) != nil {
				return
			}
		}
	}
}

// gossipRun runs it with faults and returns the trace's hash and the events.
func gossipRun(t *testing.T, seed uint64, peers func() []cluster.NodeID) (trace uint64, events []string) {
	t.Helper()
	w := NewWorld(Config{Seed: seed, NoZooKeeper: true, Observe: func(id cluster.NodeID, at time.Duration, e history.Event) {
		events = append(events, fmt.Sprint(id, at, e))
	}})
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		var nodes []host.Node
		for i := range 4 {
			n := w.NewNode(cluster.NodeID(fmt.Sprintf("n%d", i)), gossip(peers))
			nodes = append(nodes, n)
			if err := n.Start(ctx); err != nil {
				return err
			}
		}
		w.Network().Apply(host.Rule{Drop: 0.1, Duplicate: 0.1, Reorder: 0.1, Jitter: time.Millisecond}, time.Minute)
		for range 5 {
			n := nodes[c.Rand().IntN(len(nodes))]
			if err := c.Sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			if err := n.PowerLoss(ctx); err != nil {
				return err
			}
			if err := n.Start(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, w.Findings())
	return w.TraceHash(), events
}

func inOrder() []cluster.NodeID { return []cluster.NodeID{"n0", "n1", "n2", "n3", "nobody"} }

func TestSameSeedSameRun(t *testing.T) {
	traces := map[uint64]uint64{}
	for seed := range uint64(200) {
		trace, events := gossipRun(t, seed, inOrder)
		again, eventsAgain := gossipRun(t, seed, inOrder)
		require.Equal(t, trace, again, "seed %d", seed)
		require.Equal(t, events, eventsAgain, "seed %d", seed)
		require.NotEmpty(t, events)
		traces[trace] = seed
	}
	require.Len(t, traces, 200, "different seeds are different runs")
}

// TestTraceCatchesMapOrder plants the classic mistake: work done in the order
// of a map.
func TestTraceCatchesMapOrder(t *testing.T) {
	mapOrder := func() []cluster.NodeID {
		set := map[cluster.NodeID]bool{"n0": true, "n1": true, "n2": true, "n3": true, "nobody": true}
		var ids []cluster.NodeID
		for id := range set {
			ids = append(ids, id)
		}
		return ids
	}
	for seed := range uint64(10) {
		trace, _ := gossipRun(t, seed, mapOrder)
		again, _ := gossipRun(t, seed, mapOrder)
		require.NotEqual(t, trace, again, "seed %d", seed)
	}
}

func TestPickIsAsked(t *testing.T) {
	asked := 0
	w := NewWorld(Config{NoZooKeeper: true, Pick: func(n int) int {
		asked++
		return n - 1
	}})
	var order []int
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		for i := range 4 {
			c.Go(ctx, "task", func(context.Context) { order = append(order, i) })
		}
		return c.Sleep(ctx, time.Millisecond)
	})
	require.NoError(t, err)
	require.Equal(t, 3, order[0])
	require.Len(t, order, 4)
	require.Equal(t, 3, asked)
}

func TestDeadlockNamesTheTasks(t *testing.T) {
	w := NewWorld(Config{NoZooKeeper: true})
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		c.Go(ctx, "forgotten", func(ctx context.Context) { _ = c.NewCond().Wait(ctx) })
		return c.NewCond().Wait(ctx)
	})
	require.ErrorContains(t, err, "deadlock")
	require.ErrorContains(t, err, "forgotten: cond")
}

func TestLivelockIsFound(t *testing.T) {
	w := NewWorld(Config{NoZooKeeper: true, StepLimit: 1000})
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		a, b := c.NewCond(), c.NewCond()
		c.Go(ctx, "pong", func(ctx context.Context) {
			for {
				b.Broadcast()
				if a.Wait(ctx) != nil {
					return
				}
			}
		})
		for {
			a.Broadcast()
			if err := b.Wait(ctx); err != nil {
				return err
			}
		}
	})
	require.ErrorContains(t, err, "livelock")
	require.ErrorContains(t, err, "pong")
}

func TestRunEndsWithItsContext(t *testing.T) {
	w := NewWorld(Config{NoZooKeeper: true})
	std, cancel := context.WithCancel(context.Background())
	err := w.Run(std, func(ctx context.Context, c host.Control) error {
		cancel()
		for ctx.Err() == nil {
			_ = c.Sleep(ctx, time.Second)
		}
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)

	stubborn := NewWorld(Config{NoZooKeeper: true})
	std, cancel = context.WithCancel(context.Background())
	err = stubborn.Run(std, func(ctx context.Context, c host.Control) error {
		cancel()
		for {
			_ = c.Sleep(c.Context(), time.Second)
		}
	})
	require.ErrorIs(t, err, context.Canceled)
}

func BenchmarkCalls(b *testing.B) {
	w := NewWorld(Config{NoZooKeeper: true})
	b.ReportAllocs()
	err := w.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		n := w.NewNode("a", echo)
		if err := n.Start(ctx); err != nil {
			return err
		}
		left, ended := 16, c.NewCond()
		todo := b.N
		b.ResetTimer()
		before := w.Steps()
		for range left {
			c.Go(ctx, "client", func(ctx context.Context) {
				for ; todo > 0; todo-- {
					call, cancel := c.WithTimeout(ctx, time.Second)
					_, _ = c.Call(call, "a", text{})
					cancel()
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
		b.ReportMetric(float64(w.Steps()-before)/b.Elapsed().Seconds(), "events/s")
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// TestTraceCatchesAClockRead plants another: a pause that depends on the wall
// clock.
func TestTraceCatchesAClockRead(t *testing.T) {
	run := func() uint64 {
		w := NewWorld(Config{NoZooKeeper: true})
		err := w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
			for range 10 {
				if err := c.Sleep(ctx, time.Duration(time.Now().UnixNano()%1000)); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		return w.TraceHash()
	}
	first, second := run(), run()
	require.NotEqual(t, first, second)
}

// TestMemoryStaysFlat runs an hour of virtual time and looks at the heap.
func TestMemoryStaysFlat(t *testing.T) {
	w := NewWorld(Config{NoZooKeeper: true})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early, late uint64
	err := w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		for _, id := range []cluster.NodeID{"n0", "n1"} {
			n := w.NewNode(id, func(ctx context.Context, h host.Host) {
				echo(ctx, h)
				for {
					call, cancel := h.WithTimeout(ctx, 100*time.Millisecond)
					_, _ = h.Call(call, "n0", text{})
					cancel()
					_ = h.Sleep(ctx, 100*time.Millisecond)
				}
			})
			if err := n.Start(ctx); err != nil {
				return err
			}
		}
		if err := c.Sleep(ctx, 5*time.Minute); err != nil {
			return err
		}
		early = heap()
		if err := c.Sleep(ctx, time.Hour); err != nil {
			return err
		}
		late = heap()
		return nil
	})
	require.NoError(t, err)
	require.Less(t, late, early+early/5+200_000, "heap grew from %d to %d bytes", early, late)
}
