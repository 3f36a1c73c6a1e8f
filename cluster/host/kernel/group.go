package kernel

import (
	"context"
	"fmt"
	"time"
)

// Group is a set of tasks that live and die together: one incarnation of a
// node.
type Group struct {
	k          *Kernel
	name       string
	root       *Ctx
	head, tail *task
	size       int
	dead       bool
	gone       bool
	paused     bool
	held       []*task // became ready while paused
	hooks      []*hook
	onGone     []func()
	exit       error
	rate       float64 // of its timers, 0 = 1
}

// Panic is a panic of a task.
type Panic struct {
	Task  string
	Value any
	Stack []byte
}

// Error gives the message and the stack.
func (p Panic) Error() string {
	return fmt.Sprintf("panic in task %s: %v\n%s", p.Task, p.Value, p.Stack)
}

type hook struct{ f func() }

// NewGroup makes a group. It is called inside the kernel, or before Run.
func (k *Kernel) NewGroup(name string) *Group {
	g := &Group{k: k, name: name}
	g.root = g.newCtx(nil)
	k.groups = append(k.groups, g)
	return g
}

// Kernel is the kernel that runs the group.
func (g *Group) Kernel() *Kernel { return g.k }

// Name is the group's name.
func (g *Group) Name() string { return g.name }

// Context is the root of the group's contexts.
func (g *Group) Context() context.Context { return g.root }

// Dead reports whether the group was killed.
func (g *Group) Dead() bool { return g.dead }

// ExitErr is what Exit or a panic gave, nil after a kill.
func (g *Group) ExitErr() error { return g.exit }

// Size is the number of tasks.
func (g *Group) Size() int { return g.size }

// Go starts a task. Dead groups start none.
func (g *Group) Go(ctx context.Context, name string, f func(context.Context)) {
	g.Alive()
	c := Of(ctx)
	if c.group != g {
		panic("host: context of another node or incarnation: " + c.group.name + " at " + g.name)
	}
	g.makeReady(g.k.newTask(g, c, name, RunFunc(f)))
}

// WithTimeout derives a context that ends after d.
func (g *Group) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	g.Alive()
	parent := Of(ctx)
	if parent.group != g {
		panic("host: context of another node or incarnation: " + parent.group.name + " at " + g.name)
	}
	c := g.newCtx(parent)
	at := g.k.clockNow() + g.pace(d)
	switch {
	case c.err != nil || c.hasDeadline && c.deadline <= at:
	case d <= 0:
		c.deadline, c.hasDeadline = at, true
		c.end(context.DeadlineExceeded)
	default:
		c.deadline, c.hasDeadline = at, true
		c.timer.ev = c
		g.k.schedule(&c.timer, at)
	}
	return c, c.cancel
}

// SetRate has the timers that the group's tasks set from now on run faster
// than the kernel's clock, if rate is above 1, or slower.
func (g *Group) SetRate(rate float64) { g.rate = rate }

// pace is the time on the kernel's clock that the group takes for d.
func (g *Group) pace(d time.Duration) time.Duration {
	if g.rate == 0 || g.rate == 1 {
		return d
	}
	return time.Duration(float64(d) / g.rate)
}

// WithCancel derives a context that ends when the function is called.
func (g *Group) WithCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	g.Alive()
	parent := Of(ctx)
	if parent.group != g {
		panic("host: context of another node or incarnation: " + parent.group.name + " at " + g.name)
	}
	c := g.newCtx(parent)
	return c, c.cancel
}

// OnDead calls f inside the kernel when the group is killed, before its tasks
// unwind; hooks run in the order of their making. What must be closed when an
// incarnation dies is handed over here before the first park. The function
// returned takes the hook back.
func (g *Group) OnDead(f func()) (remove func()) {
	if g.dead {
		f()
		return func() {}
	}
	h := &hook{f: f}
	g.hooks = append(g.hooks, h)
	return func() {
		for i, x := range g.hooks {
			if x == h {
				g.hooks = append(g.hooks[:i], g.hooks[i+1:]...)
				return
			}
		}
	}
}

// OnGone calls f inside the kernel once all tasks of the dead group have gone.
func (g *Group) OnGone(f func()) {
	if g.gone {
		f()
		return
	}
	g.onGone = append(g.onGone, f)
}

// Kill marks the group dead: none of its code runs any more but the deferred
// functions of its tasks, which have no effect. The kernel buries it before
// the next task runs. It is called inside the kernel and returns, even to a
// task of the group, whose next call unwinds it.
func (g *Group) Kill() {
	if g.dead {
		return
	}
	g.dead = true
	g.k.burials = append(g.k.burials, g)
}

// Exit kills the group from inside one of its tasks and does not return.
func (g *Group) Exit(err error) {
	g.Alive()
	g.exit = err
	g.Kill()
	panic(killed{})
}

func (g *Group) panicked(p Panic) {
	g.exit = p
	if g.k.cfg.OnPanic != nil {
		g.k.cfg.OnPanic(g, p)
	}
	g.Kill()
}

// Pause keeps every task of the group from running until Resume. Timers and
// messages are kept for it meanwhile.
func (g *Group) Pause() {
	if g.paused || g.dead {
		return
	}
	g.paused = true
	g.k.ready.filter(func(t *task) bool {
		if t.group == g {
			g.held = append(g.held, t)
			return false
		}
		return true
	})
}

// Resume lets the group run on.
func (g *Group) Resume() {
	if !g.paused {
		return
	}
	g.paused = false
	held := g.held
	g.held = nil
	for _, t := range held {
		g.k.ready.add(t)
	}
}

// Paused reports whether the group is paused.
func (g *Group) Paused() bool { return g.paused }

func (g *Group) makeReady(t *task) {
	if g.dead {
		// The burial unwinds it. Deferred functions of its siblings, which cancel
		// contexts, come here while that is going on: a task that is about to be
		// used again must not stay in the queue.
		return
	}
	if g.paused {
		g.held = append(g.held, t)
		return
	}
	g.k.ready.add(t)
}

func (g *Group) add(t *task) {
	t.prev, t.next = g.tail, nil
	if g.tail != nil {
		g.tail.next = t
	} else {
		g.head = t
	}
	g.tail = t
	g.size++
}

func (g *Group) remove(t *task) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		g.head = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		g.tail = t.prev
	}
	t.prev, t.next = nil, nil
	g.size--
}

// bury unwinds the tasks of the groups that were killed.
func (k *Kernel) bury() {
	for len(k.burials) > 0 {
		g := k.burials[0]
		k.burials = k.burials[1:]
		k.note(3, uint64(g.size), 0)
		for len(g.hooks) > 0 {
			h := g.hooks[0]
			g.hooks = g.hooks[1:]
			h.f()
		}
		k.ready.filter(func(t *task) bool { return t.group != g })
		g.paused, g.held = false, nil
		for t := g.head; t != nil; t = g.head {
			k.unwind(t)
		}
		g.root.end(context.Canceled)
		for i, x := range k.groups {
			if x == g {
				k.groups = append(k.groups[:i], k.groups[i+1:]...)
				break
			}
		}
		g.gone = true
		for _, f := range g.onGone {
			f()
		}
		g.onGone = nil
	}
}

// unwind ends one task of a dead group. One that never ran has nothing to
// unwind.
func (k *Kernel) unwind(t *task) {
	t.unlink()
	if t.order != nil {
		t.order.drop(t)
	}
	if t.co == nil {
		t.done = true
		k.finish(t)
		return
	}
	t.killed = true
	k.current = t
	t.co.next()
	k.current = nil
	if !t.done {
		panic("kernel: task " + t.name + " parked while unwinding")
	}
	k.finish(t)
}
