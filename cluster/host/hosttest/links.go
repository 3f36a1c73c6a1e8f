package hosttest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

func linkCases() []testCase {
	return []testCase{
		{"dropped requests are silence, not done", dropRequests},
		{"dropped replies are silence, done", dropReplies},
		{"refused requests are unreachable at once", refuse},
		{"held requests go on in order when the rule ends", holdInOrder},
		{"a hold of one message lets others overtake it", holdOneAPI},
		{"a lease ends by itself", leaseEnds},
		{"delay is added", delayAdds},
		{"a duplicate is done twice and answered once", duplicate},
		{"reordered requests overtake", reorder},
		{"heal ends every rule", heal},
		{"rules match ends and names", matching},
		{"taps see requests and replies", taps},
	}
}

// recorder answers at once and says what it got.
func recorder(b *bench) host.Main {
	return func(_ context.Context, h host.Host) {
		h.Serve(func(_ context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
			w, _ := m.(*word)
			b.say(fmt.Sprintf("%s%v", w.Name, w.Bytes))
			return m, nil
		})
	}
}

func to(ids ...cluster.NodeID) host.Match { return host.Match{To: ids} }

// send calls node a in the background and returns at once; answers count up.
func (b *bench) send(ctx context.Context, m *word, answers *int) {
	b.c.Go(ctx, "send", func(ctx context.Context) {
		if _, err := b.call(ctx, "a", m, time.Minute); err == nil {
			*answers++
		}
	})
	b.sleep(ctx, time.Millisecond) // so that the next is sent after it
}

func dropRequests(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	undo := b.w.Network().Apply(host.Rule{Match: to("a"), Drop: 1}, time.Hour)
	_, err := b.call(ctx, "a", say("x"), 20*time.Millisecond)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	require.Empty(b.t, b.heard())
	undo()
	undo()
	_, err = b.call(ctx, "a", say("x"), time.Second)
	require.NoError(b.t, err)
}

func dropReplies(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Match: host.Match{From: []cluster.NodeID{"a"}, Replies: true}, Drop: 1}, time.Hour)
	_, err := b.call(ctx, "a", say("x"), 20*time.Millisecond)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	require.Len(b.t, b.heard(), 1)
}

func refuse(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Match: to("a"), Refuse: true}, time.Hour)
	_, err := b.call(ctx, "a", say("x"), time.Minute)
	require.ErrorIs(b.t, err, host.ErrUnreachable)
	require.Empty(b.t, b.heard())
}

func holdInOrder(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	undo := b.w.Network().Apply(host.Rule{Match: to("a"), Hold: true}, time.Hour)
	answers := 0
	for i := range byte(10) {
		b.send(ctx, say("x", i), &answers)
	}
	require.Empty(b.t, b.heard())
	undo()
	_, err := b.call(ctx, "a", say("x", 10), time.Second)
	require.NoError(b.t, err)
	b.until(ctx, "all answered", func() bool { return answers == 10 })
	var want []string
	for i := range byte(11) {
		want = append(want, fmt.Sprintf("x%v", []byte{i}))
	}
	require.Equal(b.t, want, b.heard())
}

func holdOneAPI(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Match: host.Match{APIs: []string{"notify"}}, Hold: true}, 200*time.Millisecond)
	answers := 0
	b.send(ctx, say("notify", 1), &answers)
	b.send(ctx, say("metadata", 1), &answers)
	b.until(ctx, "both answered", func() bool { return answers == 2 })
	require.Equal(b.t, []string{"metadata[1]", "notify[1]"}, b.heard())
}

func leaseEnds(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Match: to("a"), Drop: 1}, 200*time.Millisecond)
	b.w.Network().Apply(host.Rule{Match: to("a"), Hold: true}, 400*time.Millisecond)
	_, err := b.call(ctx, "a", say("x"), 10*time.Millisecond)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	b.sleep(ctx, 200*time.Millisecond)
	before := b.c.Now()
	_, err = b.call(ctx, "a", say("y"), 10*time.Second)
	require.NoError(b.t, err)
	require.Less(b.t, b.c.Now()-before, 5*time.Second)
	require.Equal(b.t, []string{"y[]"}, b.heard())
}

func delayAdds(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Match: host.Match{Both: true}, Delay: 20 * time.Millisecond, Jitter: time.Millisecond}, time.Hour)
	before := b.c.Now()
	_, err := b.call(ctx, "a", say("x"), time.Minute)
	require.NoError(b.t, err)
	require.GreaterOrEqual(b.t, b.c.Now()-before, 40*time.Millisecond)
}

func duplicate(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Match: host.Match{Both: true}, Duplicate: 1}, time.Hour)
	for i := range byte(3) {
		m, err := b.call(ctx, "a", say("x", i), time.Second)
		require.NoError(b.t, err)
		require.Equal(b.t, say("x", i), m)
	}
	b.until(ctx, "all done twice", func() bool { return len(b.heard()) == 6 })
	b.rest(ctx)
	require.Len(b.t, b.heard(), 6)
}

func reorder(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Match: to("a"), Reorder: 0.5, Jitter: 40 * time.Millisecond}, time.Hour)
	answers := 0
	for i := range byte(30) {
		b.send(ctx, say("x", i), &answers)
	}
	b.until(ctx, "all answered", func() bool { return answers == 30 })
	got := b.heard()
	require.Len(b.t, got, 30)
	want := make([]string, 0, 30)
	for i := range byte(30) {
		want = append(want, fmt.Sprintf("x%v", []byte{i}))
	}
	require.NotEqual(b.t, want, got)
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(b.t, want, got)
}

func heal(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.w.Network().Apply(host.Rule{Drop: 1}, time.Hour)
	b.w.Network().Apply(host.Rule{Refuse: true}, time.Hour)
	b.w.Network().Heal()
	_, err := b.call(ctx, "a", say("x"), time.Second)
	require.NoError(b.t, err)
	b.w.Network().Apply(host.Rule{Hold: true}, time.Hour)
	answers := 0
	b.send(ctx, say("x"), &answers)
	b.rest(ctx)
	require.Zero(b.t, answers)
	b.w.Network().Heal()
	b.until(ctx, "held call answered", func() bool { return answers == 1 })
}

func matching(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	b.start(ctx, "z", recorder(b))
	net := b.w.Network()
	net.Apply(host.Rule{Match: host.Match{From: []cluster.NodeID{"client-1"}, To: []cluster.NodeID{"a"}, APIs: []string{"put"}}, Refuse: true}, time.Hour)
	one, two := b.c.Endpoint("client-1"), b.c.Endpoint("client-2")
	for _, c := range []struct {
		from    host.Host
		to      cluster.NodeID
		api     string
		refused bool
	}{{one, "a", "put", true}, {one, "a", "get", false}, {one, "z", "put", false}, {two, "a", "put", false}} {
		_, err := c.from.Call(ctx, c.to, say(c.api))
		if c.refused {
			require.ErrorIs(b.t, err, host.ErrUnreachable)
		} else {
			require.NoError(b.t, err, "%v", c)
		}
	}
}

func taps(ctx context.Context, b *bench) {
	b.start(ctx, "a", recorder(b))
	undo := b.w.Network().Tap(func(p host.Passing) {
		b.say(fmt.Sprintf("tap %s %s %s %v %v", p.From, p.To, p.API, p.Reply, p.Message.(*word).Bytes))
	})
	_, err := b.call(ctx, "a", say("x", 5), time.Second)
	require.NoError(b.t, err)
	require.Equal(b.t, []string{"tap control a x false [5]", "x[5]", "tap a control x true [5]"}, b.heard())
	undo()
	_, err = b.call(ctx, "a", say("x", 5), time.Second)
	require.NoError(b.t, err)
	require.Len(b.t, b.heard(), 4)
}
