package kernel

import (
	"context"
	"iter"
	"runtime/debug"
)

// task is one thread of straight-line code. It is parked on at most one thing,
// and then a member of the lists of what may wake it.
type task struct {
	k     *Kernel
	group *Group
	id    uint64
	name  string
	run   Runner
	ctx   *Ctx
	co    *coroutine
	order *Order

	parked  bool
	done    bool
	killed  bool
	goexit  bool
	err     error  // what the wait returns
	what    string // what it waits for
	whatArg string

	timer            Timer
	cond             *Cond
	condPrev         *task
	condNext         *task
	waits            *Ctx
	ctxPrev, ctxNext *task
	slot             *Slot
	prev, next       *task // in the group, or spare
}

// Runner is a task's code.
type Runner interface{ Run(ctx context.Context) }

// RunFunc is a function as a Runner.
type RunFunc func(ctx context.Context)

// Run calls the function.
func (f RunFunc) Run(ctx context.Context) { f(ctx) }

// coroutine carries tasks, one after the other.
type coroutine struct {
	task  *task
	yield func(struct{}) bool
	next  func() (struct{}, bool)
	stop  func()
	over  bool
}

// killed unwinds a task whose group is dead.
type killed struct{}

func (k *Kernel) newTask(g *Group, c *Ctx, name string, r Runner) *task {
	t := k.spare
	if t != nil {
		k.spare = t.next
		*t = task{}
	} else {
		t = &task{}
	}
	k.lastID++
	t.k, t.group, t.id, t.name, t.run, t.ctx = k, g, k.lastID, name, r, c
	t.timer.ev = t
	g.add(t)
	return t
}

// step lets a task run until it parks or ends.
func (k *Kernel) step(t *task) {
	if t.co == nil {
		if t.order != nil {
			t.order.started(t)
		}
		t.co = k.coroutine()
		t.co.task = t
	}
	k.note(1, t.id, uint64(k.ready.len()))
	k.current = t
	t.co.next()
	k.current = nil
	if t.done {
		k.finish(t)
	}
}

// finish returns what a task used to the kernel.
func (k *Kernel) finish(t *task) {
	co := t.co
	t.group.remove(t)
	t.co, t.run, t.ctx = nil, nil, nil
	if co != nil {
		co.task = nil
		if !co.over {
			k.idle = append(k.idle, co)
		}
	}
	t.next = k.spare
	k.spare = t
}

func (k *Kernel) coroutine() *coroutine {
	if n := len(k.idle); n > 0 {
		co := k.idle[n-1]
		k.idle[n-1] = nil
		k.idle = k.idle[:n-1]
		return co
	}
	co := &coroutine{}
	co.next, co.stop = iter.Pull(co.run)
	return co
}

func (co *coroutine) run(yield func(struct{}) bool) {
	co.yield = yield
	for {
		co.task.main()
		if co.over || !yield(struct{}{}) {
			co.over = true
			return
		}
	}
}

// main runs the task and catches how it ends: by returning, by a kill, by a
// panic of its own, or by Goexit (a failed requirement of a test), which
// travels on to the goroutine that runs the kernel.
func (t *task) main() {
	returned := false
	defer func() {
		t.done = true
		if returned {
			return
		}
		r := recover()
		if r == nil {
			t.co.over, t.goexit = true, true
			return
		}
		if _, ok := r.(killed); ok || t.group.dead {
			return
		}
		t.group.panicked(Panic{Task: t.name, Value: r, Stack: debug.Stack()})
	}()
	t.run.Run(t.ctx)
	returned = true
}

// park gives the kernel back to others until the task is woken, and returns
// what it was woken with. A task of a dead group does not return.
func (t *task) park(what, arg string) error {
	t.what, t.whatArg, t.parked = what, arg, true
	if !t.co.yield(struct{}{}) {
		t.co.over = true
		t.killed = true
	}
	t.parked = false
	if t.killed {
		panic(killed{})
	}
	return t.err
}

// Fire is the end of a sleep.
func (t *task) Fire() { t.wake(nil) }

// wake makes a parked task ready, once.
func (t *task) wake(err error) {
	t.unlink()
	t.err = err
	t.group.makeReady(t)
}

// unlink takes a parked task out of everything that may wake it.
func (t *task) unlink() {
	t.k.Cancel(&t.timer)
	if t.cond != nil {
		t.cond.remove(t)
	}
	if t.waits != nil {
		t.waits.removeWaiter(t)
	}
	if t.slot != nil {
		t.slot.task = nil
		t.slot = nil
	}
}
