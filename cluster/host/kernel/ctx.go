package kernel

import (
	"context"
	"time"
)

// Ctx is the only kind of context that tasks may use: a tree that belongs to
// one group, so that it ends inside the kernel and in a fixed order. It is not
// safe for other goroutines.
type Ctx struct {
	group       *Group
	parent      *Ctx
	first, last *Ctx // children
	prev, next  *Ctx
	waitHead    *task
	waitTail    *task
	err         error
	done        chan struct{}
	deadline    time.Duration
	hasDeadline bool
	timer       Timer
	hooks       []func()
}

var _ context.Context = (*Ctx)(nil)

// Of takes a context apart that a Host made, and panics at any other: a
// context of the standard library cancels from another goroutine on the wall
// clock.
func Of(ctx context.Context) *Ctx {
	c, ok := ctx.(*Ctx)
	if !ok {
		panic("host: foreign context: take contexts from Host.Context, WithTimeout or WithCancel")
	}
	return c
}

// Group is the group that the context belongs to.
func (c *Ctx) Group() *Group { return c.group }

// Deadline is the context's deadline on the kernel's clock.
func (c *Ctx) Deadline() (time.Time, bool) {
	if !c.hasDeadline {
		return time.Time{}, false
	}
	return c.group.k.cfg.Epoch.Add(c.deadline), true
}

// Done is made when asked for. Node code never waits on it.
func (c *Ctx) Done() <-chan struct{} {
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err is nil until the context ends, then Canceled or DeadlineExceeded.
func (c *Ctx) Err() error { return c.err }

// Value is always nil: contexts carry no values.
func (c *Ctx) Value(any) any { return nil }

// OnEnd calls f inside the kernel when the context ends; f must not park.
func (c *Ctx) OnEnd(f func()) {
	if c.err != nil {
		f()
		return
	}
	c.hooks = append(c.hooks, f)
}

// Fire is the context's deadline.
func (c *Ctx) Fire() { c.end(context.DeadlineExceeded) }

func (c *Ctx) cancel() { c.end(context.Canceled) }

func (g *Group) newCtx(parent *Ctx) *Ctx {
	c := &Ctx{group: g, parent: parent}
	if parent == nil {
		return c
	}
	c.deadline, c.hasDeadline = parent.deadline, parent.hasDeadline
	if parent.err != nil {
		c.err = parent.err
		return c
	}
	c.prev = parent.last
	if parent.last != nil {
		parent.last.next = c
	} else {
		parent.first = c
	}
	parent.last = c
	return c
}

// end ends the context and its children, in order of their making, and wakes
// whoever waits under them.
func (c *Ctx) end(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.group.k.Cancel(&c.timer)
	if c.done != nil {
		close(c.done)
	}
	c.detach()
	for c.waitHead != nil {
		c.waitHead.wake(err)
	}
	for c.first != nil {
		c.first.end(err)
	}
	for _, f := range c.hooks {
		f()
	}
	c.hooks = nil
}

// detach takes the context out of its parent's list.
func (c *Ctx) detach() {
	p := c.parent
	if p == nil {
		return
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else if p.first == c {
		p.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else if p.last == c {
		p.last = c.prev
	}
	c.prev, c.next, c.parent = nil, nil, nil
}

func (c *Ctx) addWaiter(t *task) {
	t.waits = c
	t.ctxPrev, t.ctxNext = c.waitTail, nil
	if c.waitTail != nil {
		c.waitTail.ctxNext = t
	} else {
		c.waitHead = t
	}
	c.waitTail = t
}

func (c *Ctx) removeWaiter(t *task) {
	if t.ctxPrev != nil {
		t.ctxPrev.ctxNext = t.ctxNext
	} else {
		c.waitHead = t.ctxNext
	}
	if t.ctxNext != nil {
		t.ctxNext.ctxPrev = t.ctxPrev
	} else {
		c.waitTail = t.ctxPrev
	}
	t.waits, t.ctxPrev, t.ctxNext = nil, nil, nil
}
