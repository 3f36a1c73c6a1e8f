package node

import (
	"context"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/gate"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
)

// call is a request on its way, then the reply on its way back. The slot
// belongs to the caller's kernel; all else to the side that has the call.
type call struct {
	kernel.Slot
	src, dst *port
	req      host.Message
	resp     host.Message
	err      error
	api      string
	reply    bool
	orphan   bool     // a duplicate: nobody waits for the answer
	callee   *Process // that works at it
	prev     *call    // in the callee's list
	next     *call
	verdict  gate.Verdict // while held
	timer    kernel.Timer // while on its way
}

// Call sends a copy of m and waits for the answer.
func (p *Process) Call(ctx context.Context, to cluster.NodeID, m host.Message) (host.Message, error) {
	return p.port.call(ctx, to, m)
}

func (p *port) call(ctx context.Context, to cluster.NodeID, m host.Message) (host.Message, error) {
	kernel.Of(ctx).Group().Alive()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := p.newCall()
	c.req, c.api = m.Clone(), m.API()
	now := p.core.cfg.Now()
	if l := p.linkTo(to); l != nil {
		c.dst = l.to
		l.send(c, now, false)
	} else {
		c.err, c.reply = host.ErrUnreachable, true
		p.k.Set(&c.timer, now+p.core.latency(p.rand), c)
	}
	if err := c.Wait(ctx, c.api, string(to)); err != nil {
		return nil, err
	}
	resp, err := c.resp, c.err
	*c = call{src: p, next: p.spare} // answered, so that nobody else has it
	p.spare = c
	return resp, err
}

func (p *port) newCall() *call {
	c := p.spare
	if c == nil {
		return &call{src: p}
	}
	p.spare, c.next = c.next, nil
	return c
}

// linkTo is the link to a node, nil if there is no such node.
func (p *port) linkTo(id cluster.NodeID) *link {
	if l := p.links[id]; l != nil {
		return l
	}
	to := p.core.find(id)
	if to == nil {
		return nil
	}
	return p.link(to)
}

func (c *call) passing(now time.Duration) host.Passing {
	p := host.Passing{From: c.src.id, To: c.dst.id, API: c.api, Reply: c.reply, Message: c.req, At: now}
	if c.reply {
		p.From, p.To, p.Message = c.dst.id, c.src.id, c.resp
	}
	return p
}

// Fire is the arrival of the request at the callee or of the reply at the
// caller.
func (c *call) Fire() {
	if c.reply {
		if !c.orphan {
			c.Wake()
		}
		return
	}
	p := c.dst.proc
	if p == nil || p.Dead() || p.handler == nil {
		c.answer(nil, host.ErrUnreachable, true)
		return
	}
	c.callee = p
	p.inflight.add(c)
	order := p.orders[c.src.id]
	if order == nil {
		order = &kernel.Order{}
		p.orders[c.src.id] = order
	}
	p.GoOrdered(p.Context(), order, c.api, c)
}

// Run is the callee's task.
func (c *call) Run(ctx context.Context) {
	resp, err := c.callee.handler(ctx, c.src.id, c.req)
	c.callee.Alive()
	c.callee.inflight.remove(c)
	if resp != nil {
		resp = resp.Clone()
	}
	c.answer(resp, err, false)
}

// answer sends the reply back. A quiet one is the network's own word, of which
// taps hear nothing.
func (c *call) answer(resp host.Message, err error, quiet bool) {
	c.resp, c.err, c.reply = resp, err, true
	c.dst.link(c.src).send(c, c.dst.core.cfg.Now(), quiet)
}

// lost is a message that the network dropped: nothing more happens.
func (c *call) lost() { c.resp, c.err = nil, nil }

// twin is a second copy of a message that is delivered twice. The answer to a
// request's twin is dropped on arrival; a reply's twin is too.
func (c *call) twin() *call {
	t := &call{src: c.src, dst: c.dst, api: c.api, err: c.err, reply: c.reply, orphan: true}
	if c.req != nil && !c.reply {
		t.req = c.req.Clone()
	}
	if c.resp != nil {
		t.resp = c.resp.Clone()
	}
	return t
}

// died gives up what a process was working at, in the order of arrival.
func (p *Process) died() {
	port := p.port
	for c := p.inflight.head; c != nil; c = p.inflight.head {
		p.inflight.remove(c)
		c.answer(nil, host.ErrLost, true)
	}
	p.handler = nil
	if port.proc == p {
		port.proc = nil
	}
}

// callList is the calls that a process works at.
type callList struct{ head, tail *call }

func (l *callList) add(c *call) {
	c.prev, c.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = c
	} else {
		l.head = c
	}
	l.tail = c
}

func (l *callList) remove(c *call) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.tail = c.prev
	}
	c.prev, c.next = nil, nil
}
