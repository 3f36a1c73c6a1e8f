package hosttest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

func killCases() []testCase {
	return []testCase{
		{"a kill ends tasks in every state", killEveryState},
		{"a kill ends a task that ignores errors", killStubborn},
		{"deferred functions of the killed have no effect", killedDefers},
		{"exit ends the whole process and does not return", exitEnds},
		{"a panic is a crash of its node alone", panicIsACrash},
		{"a graceful stop waits for the process", gracefulStop},
		{"a stop of a process that does not listen ends with its context", stopUnheard},
		{"start counts incarnations and refuses a second", startCounts},
		{"kill and restart, over and over", killOverAndOver},
	}
}

// busy has a task in each state that a task can be in.
func busy(b *bench) host.Main {
	return func(ctx context.Context, h host.Host) {
		cond := h.NewCond()
		gone := func(what string) { h.Observe(history.Violation{Invariant: "ran after kill", Detail: what}) }
		states := []struct {
			name string
			f    func(ctx context.Context)
		}{
			{"sleep", func(ctx context.Context) { _ = h.Sleep(ctx, time.Hour) }},
			{"cond", func(ctx context.Context) { _ = cond.Wait(ctx) }},
			{"call", func(ctx context.Context) { _, _ = h.Call(ctx, "peer", say("park")) }},
			{"disk", func(ctx context.Context) { _ = h.Disk().Sync(ctx, "slow") }},
			{"stop", func(ctx context.Context) { _ = h.AwaitStop(ctx) }},
			{"loop", func(ctx context.Context) {
				for ctx.Err() == nil {
					_ = h.Sleep(ctx, 100*time.Microsecond)
				}
			}},
		}
		_ = h.Disk().WriteFile(ctx, "slow", []byte("x"))
		for _, s := range states {
			h.Go(ctx, s.name, func(ctx context.Context) {
				defer gone(s.name)
				s.f(ctx)
			})
		}
		b.say("up")
		deep, cancel := h.WithTimeout(ctx, time.Hour)
		defer cancel()
		defer gone("main")
		_ = h.Sleep(deep, time.Hour)
	}
}

func killEveryState(ctx context.Context, b *bench) {
	b.start(ctx, "peer", echo)
	n := b.w.NewNode("a", busy(b))
	undo := b.w.Disk("a").Slow(time.Hour, time.Hour)
	defer undo()
	for range 3 {
		require.NoError(b.t, n.Start(ctx))
		b.rest(ctx)
		require.NoError(b.t, n.Kill(ctx))
		require.False(b.t, n.Up())
	}
	require.NoError(b.t, n.Kill(ctx), "a kill of what is down does nothing")
	require.NoError(b.t, n.Start(ctx))
	require.NoError(b.t, n.Kill(ctx), "killed before its first task ran, or just after")
	b.rest(ctx)
	for _, e := range b.seenOf("a") {
		require.IsType(b.t, history.Node{}, e)
	}
}

func killStubborn(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", func(ctx context.Context, h host.Host) {
		for i := 0; ; i++ {
			_ = h.Sleep(ctx, 100*time.Microsecond)
			h.Observe(history.Ready{Server: i})
		}
	})
	b.until(ctx, "it runs", func() bool { return len(b.seenOf("a")) > 10 })
	require.NoError(b.t, n.Kill(ctx))
	before := len(b.seenOf("a"))
	b.rest(ctx)
	require.Len(b.t, b.seenOf("a"), before)
}

func killedDefers(ctx context.Context, b *bench) {
	b.start(ctx, "peer", func(ctx context.Context, h host.Host) {
		h.Serve(func(context.Context, cluster.NodeID, host.Message) (host.Message, error) {
			b.say("called")
			return say("x"), nil
		})
	})
	n := b.start(ctx, "a", func(ctx context.Context, h host.Host) {
		cond := h.NewCond()
		defer h.Observe(history.Ready{})
		defer func() { _, _ = h.Call(ctx, "peer", say("x")) }()
		defer func() { _ = h.Disk().WriteFile(ctx, "f", []byte("x")) }()
		defer func() { h.Go(ctx, "new", func(context.Context) { b.say("new task") }) }()
		defer cond.Broadcast()
		defer func() { _ = h.Sleep(ctx, time.Second) }()
		_ = cond.Wait(ctx)
	})
	require.NoError(b.t, n.Kill(ctx))
	b.rest(ctx)
	require.Empty(b.t, b.heard())
	require.Equal(b.t, []string{history.NodeUp, history.NodeDown}, b.states())
	require.Len(b.t, b.seenOf("a"), 2)
}

func exitEnds(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", func(ctx context.Context, h host.Host) {
		h.Go(ctx, "other", func(ctx context.Context) {
			defer h.Observe(history.Ready{})
			_ = h.Sleep(ctx, time.Hour)
		})
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			defer h.Observe(history.Ready{})
			h.Exit(errors.New("enough"))
			b.say("exit returned")
			return m, nil
		})
	})
	_, err := b.call(ctx, "a", say("x"), time.Second)
	require.ErrorIs(b.t, err, host.ErrLost)
	b.until(ctx, "node down", func() bool { return !n.Up() && len(b.states()) == 2 })
	require.Empty(b.t, b.heard())
	events := b.seenOf("a")
	require.Equal(b.t, history.Node{Node: "a", State: history.NodeDown, Error: "enough"}, events[len(events)-1])
	require.Len(b.t, events, 2)
}

func panicIsACrash(ctx context.Context, b *bench) {
	b.start(ctx, "peer", echo)
	n := b.start(ctx, "a", func(ctx context.Context, h host.Host) {
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			w, _ := m.(*word)
			w.Bytes[len(w.Bytes)]++
			return w, nil
		})
	})
	_, err := b.call(ctx, "a", say("x"), time.Second)
	require.ErrorIs(b.t, err, host.ErrLost)
	b.until(ctx, "crash reported", func() bool { return len(b.states()) == 3 })
	require.Equal(b.t, []string{history.NodeUp, history.NodePanicked, history.NodeDown}, b.states())
	crash, _ := b.seenOf("a")[1].(history.Node)
	require.Contains(b.t, crash.Error, "index out of range")
	require.Contains(b.t, crash.Error, "panicIsACrash", "the stack is that of the panic")
	_, err = b.call(ctx, "peer", say("x"), time.Second)
	require.NoError(b.t, err)
	require.NoError(b.t, n.Start(ctx))
	require.True(b.t, n.Up())
}

func gracefulStop(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", func(ctx context.Context, h host.Host) {
		if h.AwaitStop(ctx) != nil || !h.Stopping() {
			return
		}
		b.say("stopping")
		_ = h.Sleep(ctx, 5*time.Millisecond)
		b.say("clean")
		h.Exit(nil)
	})
	require.NoError(b.t, n.Stop(ctx))
	require.False(b.t, n.Up())
	require.Equal(b.t, []string{"stopping", "clean"}, b.heard())
	require.NoError(b.t, n.Stop(ctx))
}

func stopUnheard(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", echo)
	short, cancel := b.c.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(b.t, n.Stop(short), context.DeadlineExceeded)
	require.True(b.t, n.Up())
}

func startCounts(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", func(_ context.Context, h host.Host) { b.say(string(rune('0' + h.Incarnation()))) })
	require.Error(b.t, n.Start(ctx))
	require.NoError(b.t, n.Kill(ctx))
	require.NoError(b.t, n.Start(ctx))
	b.until(ctx, "second start", func() bool { return len(b.heard()) == 2 })
	require.Equal(b.t, []string{"1", "2"}, b.heard())
}

func killOverAndOver(ctx context.Context, b *bench) {
	peer := b.w.NewNode("peer", echo)
	n := b.w.NewNode("a", busy(b))
	for i := range 30 {
		require.NoError(b.t, peer.Start(ctx))
		require.NoError(b.t, n.Start(ctx))
		b.sleep(ctx, time.Duration(i%5)*300*time.Microsecond)
		require.NoError(b.t, n.Kill(ctx))
		require.NoError(b.t, peer.PowerLoss(ctx))
	}
}
