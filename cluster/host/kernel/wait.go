package kernel

import (
	"context"
	"sync/atomic"
	"time"
)

// enter checks that a task of the group calls, with a context of the group,
// and returns both. A task of a dead group does not get past it.
func (g *Group) enter(ctx context.Context) (*Ctx, *task) {
	g.Alive()
	c := Of(ctx)
	if c.group != g {
		panic("host: context of another node or incarnation: " + c.group.name + " at " + g.name)
	}
	t := g.k.current
	if t == nil {
		panic("host: a parking call outside any task")
	}
	return c, t
}

// Alive unwinds the calling task if its group is dead.
func (g *Group) Alive() {
	if g.dead {
		panic(killed{})
	}
}

// Sleep parks for d, or until the context ends.
func (g *Group) Sleep(ctx context.Context, d time.Duration) error {
	c, t := g.enter(ctx)
	if c.err != nil {
		return c.err
	}
	g.k.schedule(&t.timer, g.k.clockNow()+max(g.pace(d), 0))
	c.addWaiter(t)
	return t.park("sleep", "")
}

// Cond is a condition of one group.
type Cond struct {
	group      *Group
	head, tail *task
}

// MakeCond returns a condition of the group.
func (g *Group) MakeCond() *Cond { return &Cond{group: g} }

// Wait parks until the next Broadcast or the end of the context.
func (c *Cond) Wait(ctx context.Context) error {
	x, t := c.group.enter(ctx)
	if x.err != nil {
		return x.err
	}
	t.cond = c
	t.condPrev, t.condNext = c.tail, nil
	if c.tail != nil {
		c.tail.condNext = t
	} else {
		c.head = t
	}
	c.tail = t
	x.addWaiter(t)
	return t.park("cond", "")
}

// Broadcast wakes all that wait, in the order in which they came. It may also
// be called from an event of the kernel.
func (c *Cond) Broadcast() {
	if c.group.dead {
		return
	}
	for n := c.head; n != nil; n = c.head {
		n.wake(nil)
	}
}

func (c *Cond) remove(t *task) {
	if t.condPrev != nil {
		t.condPrev.condNext = t.condNext
	} else {
		c.head = t.condNext
	}
	if t.condNext != nil {
		t.condNext.condPrev = t.condPrev
	} else {
		c.tail = t.condPrev
	}
	t.cond, t.condPrev, t.condNext = nil, nil, nil
}

// Slot is a meeting point of one task and one event; the zero value is ready.
// It is made to be embedded in what the event carries.
type Slot struct {
	task *task
	done bool
}

// Wait parks until Wake, or until the context ends. What names the wait.
func (s *Slot) Wait(ctx context.Context, what, arg string) error {
	c := Of(ctx)
	_, t := c.group.enter(ctx)
	if s.done {
		return nil
	}
	if c.err != nil {
		return c.err
	}
	s.task, t.slot = t, s
	c.addWaiter(t)
	return t.park(what, arg)
}

// Wake ends the wait, from inside the kernel. It reports false if the task had
// given up, or had been killed, before.
func (s *Slot) Wake() bool {
	if s.done {
		return false
	}
	s.done = true
	if s.task == nil {
		return false
	}
	s.task.wake(nil)
	return true
}

// Await parks the calling task until start's complete is called, once; later
// calls do nothing. On a wall clock complete may come from any goroutine; on a
// virtual one only from inside the kernel (an event, a timer, another task).
// The error is ctx.Err() if the context ended first.
func Await(ctx context.Context, what string, start func(complete func(any))) (any, error) {
	c := Of(ctx)
	c.group.enter(ctx)
	if c.err != nil {
		return nil, c.err
	}
	a := &awaited{k: c.group.k}
	start(a.complete)
	if err := a.Wait(ctx, what, ""); err != nil {
		return nil, err
	}
	return a.value, nil
}

type awaited struct {
	Slot
	k     *Kernel
	value any
	fired atomic.Bool
}

func (a *awaited) complete(v any) {
	if a.fired.Swap(true) {
		return
	}
	a.value = v
	if a.k.virtual {
		a.Wake()
		return
	}
	a.k.Post(a)
}

// Fire delivers the completion inside the kernel.
func (a *awaited) Fire() { a.Wake() }
