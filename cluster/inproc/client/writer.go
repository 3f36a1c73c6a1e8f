package client

import (
	"context"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// noWriter is the writer id of a write that is not idempotent.
const noWriter = -1

// writes numbers the writes of one client to one bucket (rule S10). The pair
// (id, next) belongs to one operation until that has been acknowledged. If an
// operation ends in any other way the pair is never used again, because a
// delayed copy of it might still be executed: the bucket takes a new id then.
type writes struct {
	id   int64
	next int
	busy *host.Mutex // one write at a time, so that sequences have no gap
}

// beginWrite makes the bucket's next write the caller's: it holds the bucket
// until endWrite, and has a writer id.
func (c *Client) beginWrite(ctx context.Context, o *operation, b *bucket) error {
	w := &b.writes
	if w.busy == nil {
		w.busy = host.NewMutex(c.h)
	}
	if err := w.busy.Lock(ctx); err != nil {
		return err
	}
	if w.id != noWriter || !c.policy.SameSequence {
		return nil
	}
	for c.writer == noWriter {
		if err := c.initWriter(ctx, o); err != nil {
			w.busy.Unlock()
			return err
		}
	}
	w.id, w.next = c.writer, 0
	return nil
}

// endWrite gives the bucket free.
func (c *Client) endWrite(b *bucket, acknowledged bool) {
	w := &b.writes
	switch {
	case !c.policy.SameSequence:
	case acknowledged:
		w.next++
	default:
		if c.writer == w.id {
			c.writer = noWriter
		}
		w.id = noWriter
	}
	w.busy.Unlock()
}

// initWriter asks a tablet for a fresh writer id, until one answers. An id that
// was drawn and never arrived harms nobody, so no attempt leaves the operation
// open.
func (c *Client) initWriter(ctx context.Context, o *operation) error {
	open := o.open
	defer func() { o.open = open }()
	for {
		if err := c.askWriter(ctx, o); err != nil || c.writer != noWriter {
			return err
		}
		if err := o.pause(ctx); err != nil {
			return err
		}
	}
}

// askWriter makes one attempt; an error means that no other will help.
func (c *Client) askWriter(ctx context.Context, o *operation) error {
	node, ok := c.pickTablet(nil)
	if !ok {
		o.last = errNoTablet
		return nil
	}
	api := o.api
	o.api = apiWriter
	reply, result := o.call(ctx, node, &protocol.InitWriter{}, nil)
	o.api = api
	if result == succeeded {
		m, ok := reply.(*protocol.InitWriterReply)
		if !ok {
			return unexpected(node, reply)
		}
		if o.answered(node, m.Code) == succeeded && c.writer == noWriter {
			c.writer = m.Writer
			o.failures = 0
		}
	}
	return ctx.Err()
}
