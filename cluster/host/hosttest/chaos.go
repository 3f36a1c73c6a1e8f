package hosttest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

func chaosCases() []testCase {
	return []testCase{
		{"a clock is skewed and comes back", clockSkew},
		{"a clock that runs fast has fast timers", clockRate},
		{"everything at once", chaos},
	}
}

func clockSkew(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", func(_ context.Context, h host.Host) {
		h.Serve(func(context.Context, cluster.NodeID, host.Message) (host.Message, error) {
			return say(fmt.Sprint(h.Now() > time.Hour/2)), nil
		})
	})
	skewed := func(want bool) {
		b.t.Helper()
		m, err := b.call(ctx, "a", say("x"), time.Second)
		require.NoError(b.t, err)
		require.Equal(b.t, fmt.Sprint(want), m.API())
	}
	skewed(false)
	undo, err := n.(host.Skewer).Skew(ctx, time.Hour, 0, time.Hour)
	require.NoError(b.t, err)
	skewed(true)
	require.NoError(b.t, n.Kill(ctx))
	require.NoError(b.t, n.Start(ctx))
	require.NoError(b.t, n.Resume(ctx))
	skewed(true)
	undo()
	undo()
	b.rest(ctx)
	skewed(false)
	_, err = n.(host.Skewer).Skew(ctx, time.Hour, 0, 200*time.Millisecond)
	require.NoError(b.t, err)
	skewed(true)
	b.sleep(ctx, 250*time.Millisecond)
	skewed(false)
	require.Less(b.t, b.c.Now(), time.Minute, "the others' clocks stay")
}

func clockRate(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", func(_ context.Context, h host.Host) {
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			before := h.Now()
			err := h.Sleep(ctx, time.Second)
			b.say(fmt.Sprint(h.Now()-before >= time.Second))
			return m, err
		})
	})
	_, err := n.(host.Skewer).Skew(ctx, 0, -2, time.Hour)
	require.Error(b.t, err)
	undo, err := n.(host.Skewer).Skew(ctx, 0, 9, time.Hour)
	require.NoError(b.t, err)
	before := b.c.Now()
	_, err = b.call(ctx, "a", say("x"), time.Minute)
	require.NoError(b.t, err)
	took := b.c.Now() - before
	require.GreaterOrEqual(b.t, took, 100*time.Millisecond)
	require.Less(b.t, took, 900*time.Millisecond, "a second of its own is a tenth of ours")
	require.Equal(b.t, []string{"true"}, b.heard())
	undo()
}

// chatty calls all others all the time, and writes what it hears.
func chatty(ids []cluster.NodeID) host.Main {
	return func(ctx context.Context, h host.Host) {
		heard := 0
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			heard++
			if err := h.Disk().Append(ctx, "heard", []byte{byte(heard)}); err != nil {
				return nil, err
			}
			if err := h.Sleep(ctx, time.Duration(h.Rand().IntN(1000))*time.Microsecond); err != nil {
				return nil, err
			}
			w, _ := m.(*word)
			w.Bytes[0]++
			return w, h.Disk().Sync(ctx, "heard")
		})
		for _, to := range ids {
			h.Go(ctx, "talk", func(ctx context.Context) {
				for {
					call, cancel := h.WithTimeout(ctx, 3*time.Millisecond)
					if _, err := h.Call(call, to, say("x", 1)); err == nil {
						h.Observe(history.Ready{Server: heard})
					}
					cancel()
					_ = h.Sleep(ctx, 300*time.Microsecond)
				}
			})
		}
		if h.AwaitStop(ctx) == nil {
			h.Exit(nil)
		}
	}
}

func chaos(ctx context.Context, b *bench) {
	ids := []cluster.NodeID{"a", "b", "c", "d", "e"}
	var nodes []host.Node
	for _, id := range ids {
		n := b.w.NewNode(id, chatty(ids))
		require.NoError(b.t, n.Start(ctx))
		nodes = append(nodes, n)
	}
	r, net := b.c.Rand(), b.w.Network()
	undo := net.Tap(func(host.Passing) {})
	defer undo()
	for range 60 {
		n := nodes[r.IntN(len(nodes))]
		one := []cluster.NodeID{n.ID()}
		lease := time.Duration(1+r.IntN(10)) * time.Millisecond
		switch r.IntN(9) {
		case 0:
			require.NoError(b.t, n.Kill(ctx))
		case 1:
			require.NoError(b.t, n.PowerLoss(ctx))
		case 2:
			if n.Up() {
				require.NoError(b.t, n.Pause(ctx, lease))
			}
		case 3:
			stop, cancel := b.c.WithTimeout(ctx, lease)
			_ = n.Stop(stop)
			cancel()
		case 4:
			net.Apply(host.Rule{Match: host.Match{From: one, Both: true}, Hold: true}, lease)
		case 5:
			net.Apply(host.Rule{Match: host.Match{To: one, Both: true}, Drop: 0.5, Duplicate: 0.5, Reorder: 0.5, Jitter: lease}, lease)
		case 6:
			b.w.Disk(n.ID()).Slow(lease, lease)
		case 7:
			net.Heal()
		case 8:
			net.Apply(host.Rule{Match: host.Match{To: one}, Refuse: true}, lease)
		}
		b.sleep(ctx, time.Duration(r.IntN(4000))*time.Microsecond)
		for _, n := range nodes {
			if !n.Up() {
				require.NoError(b.t, n.Start(ctx))
			}
		}
	}
	net.Heal()
	b.sleep(ctx, 30*time.Millisecond)
	before := len(b.seenOf("a"))
	b.until(ctx, "it talks again", func() bool { return len(b.seenOf("a")) > before+10 })
}
