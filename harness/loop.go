package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// loop is the one task that owns clock, generator and history of a test.
//
//	      Next                 dispatch               Invoke
//	generator ──▶ loop: write invocation ──▶ worker ──▶ client
//	    ▲                                      │
//	    └── Update ── loop: write completion ◀─┘ finished
//
// Completions are drained before new work is asked for: an operation that is
// over must not seem to overlap the next one. An invocation is written before
// it is dispatched, a completion after it was received, so intervals only widen
// and never accuse falsely.
type loop struct {
	env      Env
	rec      *Recorder
	workload Workload
	workers  []*worker
	all      []history.Process
	free     []history.Process // scratch for Context.Free
	open     int
	finished []finished
	wake     host.Cond
	tasks    *tasks
	rand     *rand.Rand
	start    time.Duration
	// completed is told of every completion.
	completed func()
	counts    [4]int // completions by type
}

func newLoop(env Env, w Workload) *loop {
	workers := env.Options.Concurrency
	if w.Extra != nil {
		workers += w.Extra(env.Options)
	}
	l := &loop{
		env: env, rec: env.Events, workload: w, wake: env.Host.NewCond(), tasks: newTasks(env.Host),
		rand: Stream(env.Options.Seed, "generator"), completed: func() {},
	}
	for i := range workers {
		l.workers = append(l.workers, &worker{loop: l, process: history.Process(i), wake: env.Host.NewCond()})
		l.all = append(l.all, history.Process(i))
	}
	return l
}

// begin starts the workers; their operations' contexts end with ctx.
func (l *loop) begin(ctx context.Context) {
	for i, w := range l.workers {
		l.tasks.start(ctx, fmt.Sprintf("worker %d", i), w.run,
			func(err error) { l.rec.problem(history.ProblemTask, w.process, err) })
	}
}

// run asks the generator for work until it is done, ctx ends, or the limit is
// over (0: none), and then waits for what is open. It returns early only if the
// history cannot be written.
func (l *loop) run(ctx context.Context, g Generator, limit time.Duration) error {
	l.start = l.env.Host.Now()
	for {
		l.drain(g)
		if err := l.rec.Err(); err != nil {
			return err
		}
		elapsed := l.env.Host.Now() - l.start
		if ctx.Err() != nil || limit > 0 && elapsed >= limit {
			break
		}
		until := limit
		if c := l.context(elapsed); len(c.Free) > 0 {
			var step Step
			if err := protect(ctx, l.env.Host, func() error { step = g.Next(c); return nil }); err != nil {
				l.rec.problem(history.ProblemPanic, -1, err)
				return fmt.Errorf("ask generator: %w", err)
			}
			if step.Done {
				break
			}
			if !step.Pending {
				if err := l.dispatch(g, step.Op); err != nil {
					return err
				}
				continue
			}
			if step.At > 0 && (until == 0 || step.At < until) {
				until = step.At
			}
		}
		l.wait(ctx, until)
	}
	return l.finish(g)
}

func (l *loop) context(elapsed time.Duration) Context {
	l.free = l.free[:0]
	for _, w := range l.workers {
		if !w.busy {
			l.free = append(l.free, w.process)
		}
	}
	return Context{Time: elapsed, Free: l.free, All: l.all, Workers: len(l.all), Rand: l.rand}
}

// wait parks until a completion comes or the time since the start of this run
// reaches until (0: no such time).
func (l *loop) wait(ctx context.Context, until time.Duration) {
	if len(l.finished) > 0 {
		return
	}
	h := l.env.Host
	if until == 0 {
		_ = l.wake.Wait(ctx)
		return
	}
	left := l.start + until - h.Now()
	if left <= 0 {
		// A generator that asks to be asked again now: let the tasks run first.
		left = okPause
	}
	bounded, cancel := h.WithTimeout(ctx, left)
	_ = l.wake.Wait(bounded)
	cancel()
}

func (l *loop) dispatch(g Generator, op history.Op) error {
	i := int(op.Process) % len(l.workers)
	if i < 0 || l.workers[i].busy || l.workers[i].process != op.Process {
		err := fmt.Errorf("check generator: it gave %q to process %d, which is not free", op.F, op.Process)
		l.rec.problem(history.ProblemTask, op.Process, err)
		return err
	}
	w := l.workers[i]
	op.Type = history.Invoke
	op = l.rec.Append(op)
	w.slot, w.full, w.busy = op, true, true
	l.open++
	g.Update(l.context(op.Time-l.start), op)
	w.wake.Broadcast()
	return nil
}

// drain writes the completions that have come in.
func (l *loop) drain(g Generator) {
	for i := 0; i < len(l.finished); i++ {
		f := l.finished[i]
		op := l.rec.Append(l.complete(f))
		f.worker.busy = false
		l.open--
		l.counts[op.Type]++
		if op.Type == history.Info {
			l.retire(f.worker)
		}
		g.Update(l.context(op.Time-l.start), op)
		l.completed()
	}
	clear(l.finished)
	l.finished = l.finished[:0]
}

// retire gives the worker a new process: the old one may still have an
// operation under way somewhere, so it never does another.
func (l *loop) retire(w *worker) {
	i := int(w.process) % len(l.all)
	w.process += history.Process(len(l.all))
	l.all[i] = w.process
}

// joinGrace is how long a client may overrun its operation's time before it is
// taken for stuck.
const joinGrace = 5 * time.Second

// finish waits for the operations under way. Those that do not come back stay
// open in the history, which is the truth about them.
func (l *loop) finish(g Generator) error {
	h := l.env.Host
	ctx, cancel := h.WithTimeout(h.Context(), l.env.Options.OpTimeout+joinGrace)
	defer cancel()
	for l.open > 0 {
		if len(l.finished) == 0 && l.wake.Wait(ctx) != nil {
			break
		}
		l.drain(g)
	}
	for _, w := range l.workers {
		if w.busy {
			l.rec.problem(history.ProblemStuck, w.process, fmt.Errorf("%s did not return within %v and %v of grace",
				w.slot.F, l.env.Options.OpTimeout, joinGrace))
		}
	}
	return l.rec.Err()
}

// end stops the workers, which close their clients, and joins them.
func (l *loop) end(ctx context.Context) {
	for _, w := range l.workers {
		w.stop = true
		w.wake.Broadcast()
	}
	if err := l.tasks.wait(ctx); err != nil {
		l.rec.problem(history.ProblemStuck, -1, fmt.Errorf("join workers: %w", err))
	}
}
