// Package kernel runs cooperative tasks on coroutines, with timers, contexts,
// conditions, and kill by unwinding. It is the floor that both worlds stand on:
// the simulation runs one kernel for all nodes on a virtual clock, the
// real-time world one kernel and one goroutine per node on the wall clock.
//
// A Kernel belongs to the goroutine that calls Run. Only Post, PostAt, Stop,
// Steps and the completions of Await on a wall clock may come from others. Code
// of events runs inside the kernel and must not park; code of tasks may.
package kernel

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Config describes a kernel. The zero value is a virtual clock and a scheduler
// that takes tasks in the order in which they became ready.
type Config struct {
	// Clock tells the time since the world's start; nil makes the clock virtual:
	// it jumps to the next timer whenever nothing is ready.
	Clock func() time.Duration
	// Epoch is the date at which the clock read 0; contexts need it for Deadline.
	Epoch time.Time
	// Pick chooses which of n ready tasks runs next, 2 ≤ n; nil is first in,
	// first out.
	Pick func(n int) int
	// StepLimit bounds the steps at one instant of a virtual clock; 0 is a million.
	StepLimit int
	// OnPanic is told of a panic in a task, before its group is killed.
	OnPanic func(g *Group, p Panic)
	// Trace asks for TraceHash: every choice, every timer, every Note.
	Trace bool
}

// Kernel is a scheduler of tasks.
type Kernel struct {
	cfg     Config
	virtual bool
	now     time.Duration
	instant int // steps since the virtual clock moved
	stopped bool
	failure error

	current *task
	ready   queue
	timers  heap
	mail    mailbox
	burials []*Group
	groups  []*Group // those alive, in order of creation

	idle   []*coroutine
	spare  *task // finished task structs, linked by next
	lastID uint64
	trace  uint64
	steps  atomic.Uint64
	asleep atomic.Bool
}

// New returns a kernel; nothing runs before Run.
func New(cfg Config) *Kernel {
	if cfg.StepLimit == 0 {
		cfg.StepLimit = 1_000_000
	}
	if cfg.Epoch.IsZero() {
		cfg.Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	k := &Kernel{cfg: cfg, virtual: cfg.Clock == nil, trace: traceSeed}
	k.mail.init()
	return k
}

// ErrDeadlock says that no task can ever run again though the kernel was not
// stopped; the text names every task and what it waits for.
var ErrDeadlock = errors.New("deadlock")

// ErrLivelock says that the step limit of one instant was reached.
var ErrLivelock = errors.New("livelock")

// Now is the kernel's time. On a wall clock it is read anew.
func (k *Kernel) Now() time.Duration {
	if k.virtual {
		return k.now
	}
	return k.cfg.Clock()
}

// Virtual reports whether the clock is virtual.
func (k *Kernel) Virtual() bool { return k.virtual }

// Steps counts turns of the loop; it may be read from any goroutine. A kernel
// that is not Idle and whose Steps stand still is blocked natively.
func (k *Kernel) Steps() uint64 { return k.steps.Load() }

// Idle reports whether the kernel waits for a timer or a post.
func (k *Kernel) Idle() bool { return k.asleep.Load() }

// Stop makes Run return nil after the present step; from any goroutine.
func (k *Kernel) Stop() { k.Post(Func(func() { k.stopped = true })) }

// Run runs tasks, timers and posts until Stop. On a virtual clock it also ends
// with ErrDeadlock or ErrLivelock.
func (k *Kernel) Run() error {
	k.stopped, k.failure = false, nil
	if k.virtual {
		k.runVirtual()
	} else {
		k.runWall()
	}
	return k.failure
}

func (k *Kernel) runVirtual() {
	for !k.stopped {
		k.steps.Add(1)
		switch {
		case k.mail.waiting():
			k.drain()
		case len(k.burials) > 0:
			k.bury()
		case k.ready.len() > 0:
			k.instant++
			if k.instant > k.cfg.StepLimit {
				k.failure = fmt.Errorf("%w: %d steps at %v\n%s", ErrLivelock, k.instant, k.now, k.Report())
				return
			}
			k.step(k.take())
		case len(k.timers) > 0:
			k.fireNext()
		default:
			k.failure = fmt.Errorf("%w at %v\n%s", ErrDeadlock, k.now, k.Report())
			return
		}
	}
}

// fireNext moves the virtual clock to the next timer and fires it.
func (k *Kernel) fireNext() {
	t := k.timers.pop()
	if t.when > k.now {
		k.now = t.when
		k.instant = 0
	}
	k.note(2, uint64(t.when), t.seq)
	t.ev.Fire()
}

// stepsPerLook is how many tasks run on a wall clock between two looks at it.
const stepsPerLook = 16

func (k *Kernel) runWall() {
	for !k.stopped {
		k.steps.Add(1)
		if k.mail.waiting() {
			k.drain()
		}
		if len(k.burials) > 0 {
			k.bury()
			continue
		}
		if len(k.timers) > 0 {
			k.fireDue()
		}
		for i := 0; i < stepsPerLook && k.ready.len() > 0 && len(k.burials) == 0; i++ {
			k.step(k.take())
		}
		if !k.stopped && k.ready.len() == 0 && len(k.burials) == 0 && !k.mail.waiting() {
			k.rest()
		}
	}
}

// fireDue fires every timer that is due.
func (k *Kernel) fireDue() {
	k.now = k.cfg.Clock()
	for len(k.timers) > 0 && k.timers[0].when <= k.now {
		k.timers.pop().ev.Fire()
	}
}

// rest waits for a post or the next timer.
func (k *Kernel) rest() {
	wait := time.Duration(-1)
	if len(k.timers) > 0 {
		wait = k.timers[0].when - k.cfg.Clock()
		if wait <= 0 {
			return
		}
	}
	k.asleep.Store(true)
	k.mail.wait(wait)
	k.asleep.Store(false)
}

// take removes the task to run next from the ready queue.
func (k *Kernel) take() *task {
	n := k.ready.len()
	if n == 1 || k.cfg.Pick == nil {
		return k.ready.first()
	}
	return k.ready.remove(k.cfg.Pick(n))
}

// drain runs the posts that have come in.
func (k *Kernel) drain() {
	batch := k.mail.take()
	for i := range batch {
		p := &batch[i]
		if p.at > 0 && p.at > k.now {
			if p.timer == nil {
				p.timer = &Timer{}
			}
			k.Set(p.timer, p.at, p.ev)
		} else {
			p.ev.Fire()
		}
		p.ev, p.timer = nil, nil
	}
	k.mail.giveBack(batch)
}

// Close kills every group, unwinds every task, and ends every coroutine. It is
// called after Run has returned, on any goroutine, once.
func (k *Kernel) Close() {
	k.current = nil  // a task that ended by Goexit left it set
	for range 1000 { // a hook may make another group; a bound keeps a bug visible
		if len(k.groups) == 0 {
			break
		}
		for _, g := range append([]*Group(nil), k.groups...) {
			g.Kill()
		}
		k.bury()
	}
	for _, co := range k.idle {
		co.stop()
	}
	k.idle = nil
}
