package hosttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

func callCases() []testCase {
	return []testCase{
		{"a call is answered", callAnswered},
		{"messages are copied both ways", messagesCopied},
		{"who is not there is unreachable", unreachable},
		{"a peer that dies loses its calls, in order", peerDies},
		{"a caller's time-out does not stop the callee", calleeGoesOn},
		{"a handler's error reaches the caller", handlerError},
		{"calls of one link start in sending order", startOrder},
		{"a handler outlives its caller", handlerOutlivesCaller},
		{"calls to oneself and by endpoints", selfAndEndpoints},
	}
}

func callAnswered(ctx context.Context, b *bench) {
	b.start(ctx, "a", echo)
	for i := range byte(20) {
		m, err := b.call(ctx, "a", say("x", i), time.Second)
		require.NoError(b.t, err)
		require.Equal(b.t, say("x", i), m)
	}
	ended, cancel := b.c.WithCancel(ctx)
	cancel()
	_, err := b.c.Call(ended, "a", say("x"))
	require.ErrorIs(b.t, err, context.Canceled)
}

func messagesCopied(ctx context.Context, b *bench) {
	b.start(ctx, "a", func(_ context.Context, h host.Host) {
		kept := say("kept", 0)
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			w, _ := m.(*word)
			if err := h.Sleep(ctx, 5*time.Millisecond); err != nil {
				return nil, err
			}
			got := w.Bytes[0]
			w.Bytes[0] = 99
			kept.Bytes[0] = got
			return kept, nil
		})
	})
	m := say("x", 1)
	b.c.Go(ctx, "mutate", func(context.Context) { m.Bytes[0] = 50 }) // runs once Call parks
	first, err := b.call(ctx, "a", m, time.Second)
	require.NoError(b.t, err)
	require.Equal(b.t, byte(1), first.(*word).Bytes[0], "a change after the call was seen")
	require.Equal(b.t, byte(50), m.Bytes[0], "the callee's change was seen")
	_, err = b.call(ctx, "a", say("x", 2), time.Second)
	require.NoError(b.t, err)
	require.Equal(b.t, byte(1), first.(*word).Bytes[0], "the callee's later change was seen")
}

func unreachable(ctx context.Context, b *bench) {
	_, err := b.call(ctx, "nobody", say("x"), time.Second)
	require.ErrorIs(b.t, err, host.ErrUnreachable)
	require.True(b.t, cluster.IsDefinite(err))
	n := b.w.NewNode("a", func(ctx context.Context, h host.Host) {
		if h.AwaitStop(ctx) == nil {
			echo(ctx, h)
		}
	})
	_, err = b.call(ctx, "a", say("x"), time.Second)
	require.ErrorIs(b.t, err, host.ErrUnreachable, "declared, not up")
	require.NoError(b.t, n.Start(ctx))
	b.rest(ctx)
	_, err = b.call(ctx, "a", say("x"), time.Second)
	require.ErrorIs(b.t, err, host.ErrUnreachable, "up, not serving")
	short, cancel := b.c.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	require.Error(b.t, n.Stop(short))
	b.rest(ctx)
	_, err = b.call(ctx, "a", say("x"), time.Second)
	require.NoError(b.t, err)
	require.NoError(b.t, n.Kill(ctx))
	_, err = b.call(ctx, "a", say("x"), time.Second)
	require.ErrorIs(b.t, err, host.ErrUnreachable, "killed")
}

func peerDies(ctx context.Context, b *bench) {
	n := b.start(ctx, "a", func(_ context.Context, h host.Host) {
		h.Serve(func(ctx context.Context, _ cluster.NodeID, _ host.Message) (host.Message, error) {
			b.say("arrived")
			return nil, h.NewCond().Wait(ctx)
		})
	})
	ended := b.c.NewCond()
	var errs []error
	for i := range 5 {
		b.c.Go(ctx, fmt.Sprintf("caller-%d", i), func(ctx context.Context) {
			_, err := b.call(ctx, "a", say("x"), time.Minute)
			errs = append(errs, err)
			ended.Broadcast()
		})
	}
	b.until(ctx, "all arrived", func() bool { return len(b.heard()) == 5 })
	require.Empty(b.t, errs)
	require.NoError(b.t, n.Kill(ctx))
	for len(errs) < 5 {
		require.NoError(b.t, ended.Wait(ctx))
	}
	for _, err := range errs {
		require.ErrorIs(b.t, err, host.ErrLost)
		require.False(b.t, cluster.IsDefinite(err))
	}
}

func calleeGoesOn(ctx context.Context, b *bench) {
	b.start(ctx, "a", func(_ context.Context, h host.Host) {
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			if h.Sleep(ctx, 500*time.Millisecond) == nil {
				b.say("done")
			}
			return m, nil
		})
	})
	_, err := b.call(ctx, "a", say("x"), 10*time.Millisecond)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	require.False(b.t, cluster.IsDefinite(err))
	require.Empty(b.t, b.heard())
	b.until(ctx, "callee done", func() bool { return len(b.heard()) == 1 })
}

func handlerError(ctx context.Context, b *bench) {
	mine := errors.New("mine")
	b.start(ctx, "a", func(_ context.Context, h host.Host) {
		h.Serve(func(context.Context, cluster.NodeID, host.Message) (host.Message, error) { return nil, mine })
	})
	m, err := b.call(ctx, "a", say("x"), time.Second)
	require.ErrorIs(b.t, err, mine)
	require.Nil(b.t, m)
}

func startOrder(ctx context.Context, b *bench) {
	const calls = 200
	b.start(ctx, "a", func(_ context.Context, h host.Host) {
		h.Serve(func(_ context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			w, _ := m.(*word)
			b.say(fmt.Sprint(w.Bytes[0]))
			return m, nil
		})
	})
	sent, ended := byte(0), 0
	done := b.c.NewCond()
	var order []string
	for range calls {
		b.c.Go(ctx, "caller", func(ctx context.Context) {
			sent++
			order = append(order, fmt.Sprint(sent))
			_, err := b.call(ctx, "a", say("x", sent), time.Minute)
			if err == nil {
				ended++
			}
			done.Broadcast()
		})
	}
	for ended < calls {
		require.NoError(b.t, done.Wait(ctx))
	}
	require.Equal(b.t, order, b.heard())
}

func handlerOutlivesCaller(ctx context.Context, b *bench) {
	b.start(ctx, "callee", func(_ context.Context, h host.Host) {
		h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			b.say("called")
			if h.Sleep(ctx, 200*time.Millisecond) == nil {
				b.say("done")
			}
			return m, nil
		})
	})
	caller := b.w.NewNode("caller", func(ctx context.Context, h host.Host) {
		_, _ = h.Call(ctx, "callee", say("x"))
		b.say("answered")
	})
	require.NoError(b.t, caller.Start(ctx))
	b.until(ctx, "call arrived", func() bool { return len(b.heard()) == 1 })
	require.NoError(b.t, caller.Kill(ctx))
	b.until(ctx, "callee done", func() bool { return len(b.heard()) > 1 })
	b.rest(ctx)
	require.Equal(b.t, []string{"called", "done"}, b.heard())
}

func selfAndEndpoints(ctx context.Context, b *bench) {
	b.start(ctx, "a", func(ctx context.Context, h host.Host) {
		h.Serve(func(_ context.Context, from cluster.NodeID, m host.Message) (host.Message, error) {
			b.say(string(from))
			return m, nil
		})
		_, _ = h.Call(ctx, "a", say("x"))
	})
	e := b.c.Endpoint("client-3")
	require.Equal(b.t, cluster.NodeID("client-3"), e.ID())
	_, err := e.Call(ctx, "a", say("x"))
	require.NoError(b.t, err)
	require.Equal(b.t, []string{"a", "client-3"}, b.heard())
	require.Equal(b.t, 1, e.Incarnation())
}
