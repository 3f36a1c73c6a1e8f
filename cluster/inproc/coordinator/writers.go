package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// writersAtOnce is how many writer ids one transaction takes.
const writersAtOnce = 100

// writerBlock is a range of writer ids that this term has taken and not handed
// out. What is left of it at the end is lost, which harms nobody.
type writerBlock struct{ next, end int64 }

// initWriter hands out a writer id (p).
func (t *term) initWriter(ctx context.Context) *protocol.InitWriterReply {
	reply := &protocol.InitWriterReply{}
	if t.writers.next < t.writers.end {
		reply.Writer = t.writers.next
		t.writers.next++
		return reply
	}
	switch t.ask(ctx, "init writer", func(ctx context.Context) {
		if t.writers.next == t.writers.end {
			from, err := t.take(ctx, protocol.WriterCounterPath, writersAtOnce)
			if err != nil {
				reply.Code = protocol.CodeUnknownServer
				return
			}
			t.writers = writerBlock{from, from + writersAtOnce}
		}
		reply.Writer = t.writers.next
		t.writers.next++
	}) {
	case answered:
		return reply
	default:
		return &protocol.InitWriterReply{Code: protocol.CodeNotCoordinatorLeader}
	}
}

// counter is a counter's value and the operation that moves it on.
type counter struct {
	next int64
	move host.ZKOp
}

// counter reads a counter and prepares to take n values of it (p).
func (t *term) counter(ctx context.Context, path string, n int64) (counter, error) {
	data, stat, err := t.readWritable(ctx, path)
	if err != nil {
		return counter{}, err
	}
	next, err := protocol.DecodeCounter(data)
	if err != nil {
		return counter{}, fmt.Errorf("read %s: %w", path, err)
	}
	return counter{next, host.SetOp(path, protocol.EncodeCounter(next+n), stat.Version)}, nil
}

// readWritable reads a node through the session that will be written through (p).
func (t *term) readWritable(ctx context.Context, path string) ([]byte, host.Stat, error) {
	for {
		z, err := t.writable(ctx)
		if err != nil {
			return nil, host.Stat{}, err
		}
		data, stat, err := z.get(ctx, path)
		if err == nil || t.policy.GuardWrites || z.connected(ctx) == nil || ctx.Err() != nil {
			return data, stat, err
		}
	}
}

// take takes n values of a counter and returns the first (p). Values taken by a
// transaction of unknown outcome are never used: the next are taken.
func (t *term) take(ctx context.Context, path string, n int64) (int64, error) {
	for {
		c, err := t.counter(ctx, path, n)
		if err != nil {
			return 0, err
		}
		err = t.commit(ctx, "count "+path, []host.ZKOp{c.move},
			func(context.Context, zk) (landing, error) { return superseded, nil })
		if err == nil {
			return c.next, nil
		}
		if !errors.Is(err, host.ErrBadVersion) {
			return 0, err
		}
	}
}
