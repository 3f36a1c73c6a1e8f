package inproc

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// joinTooEarly is KAFKA-7128: a new leader's high watermark lies below what the
// one before it acknowledged, and a follower that has reached no more than that
// joins the ISR, and leads.
func joinTooEarly(ctx context.Context, l *lab) {
	first, followers := l.roles(ctx, 2)
	if first == "" {
		return
	}
	const key = "directed"
	second, joins := followers[0], followers[1]
	c := l.actor()
	c.write(ctx, key)
	away := l.apply(host.Match{From: nodes(joins), To: nodes(first), APIs: []string{protocol.APIFetchLog}, Both: true}, host.Rule{Drop: 1})
	l.inSync(ctx, joins, false)
	_ = l.c.Sleep(ctx, l.between(time.Second, 2*time.Second)) // anywhere between two checkpoints
	c.write(ctx, key)
	_ = l.cl.Kill(ctx, first)
	_ = l.cl.Kill(ctx, second) // its disk has the record, and an old high watermark
	deaf := l.apply(host.Match{From: nodes(second), To: nodes(joins), APIs: []string{protocol.APIFetchLog}, Replies: true}, host.Rule{Drop: 1})
	away()
	l.revive(ctx, second)
	if l.newLeader(ctx, first) == "" {
		return
	}
	l.joins(ctx, joins, 4*time.Second)
	_ = l.cl.Kill(ctx, second)
	_ = l.c.Sleep(ctx, 2*l.session)
	deaf()
	l.revive(ctx, first, second)
	l.roles(ctx, 1)
	l.actor().read(ctx, key)
}

// joins waits until a server is in the ISR, for so long at most.
func (l *lab) joins(ctx context.Context, id cluster.NodeID, d time.Duration) {
	_ = l.within(ctx, d, func(ctx context.Context) error {
		for ctx.Err() == nil {
			_, others, err := l.cl.Bucket(ctx, "orders", 0)
			if err == nil && slices.Contains(others, id) {
				return nil
			}
			_ = l.c.Sleep(ctx, 5*time.Millisecond)
		}
		return ctx.Err()
	})
}

// trustedEnds: a batch reaches one follower, which is elected; the retry is
// acknowledged although nobody else has the batch, and the new leader is lost.
func trustedEnds(ctx context.Context, l *lab) {
	first, followers := l.roles(ctx, 2)
	if first == "" {
		return
	}
	const key = "directed"
	swap := l.f.IntN(2)
	second, lacks := followers[swap], followers[1-swap]
	c := l.actor()
	c.write(ctx, key)
	away := l.apply(host.Match{From: nodes(lacks), APIs: []string{protocol.APIFetchLog}}, host.Rule{Drop: 1})
	_ = l.c.Sleep(ctx, 600*time.Millisecond)
	acked := false
	l.running++
	l.c.Go(ctx, "writer", func(ctx context.Context) {
		acked = c.write(ctx, key)
		l.done()
	})
	_ = l.c.Sleep(ctx, 100*time.Millisecond)
	_ = l.cl.Kill(ctx, first)
	if l.newLeader(ctx, first) != second {
		away()
		l.revive(ctx, first)
		return
	}
	for end := l.c.Now() + 1800*time.Millisecond; !acked && l.c.Now() < end; {
		_ = l.c.Sleep(ctx, 10*time.Millisecond)
	}
	_ = l.cl.Kill(ctx, second)
	if l.newLeader(ctx, first, second) == "" {
		return
	}
	away()
	l.revive(ctx, first, second)
	l.roles(ctx, 1)
	l.actor().read(ctx, key)
}
