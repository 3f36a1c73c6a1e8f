package harness

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// watch is what goes on beside a run: the history is flushed, the machine's
// punctuality is measured, and the terminal is told.
type watch struct {
	r     *run
	tasks *tasks
	phase string
	// The nodes report these, each on its own goroutine in real time.
	leader  atomic.Pointer[string]
	refused atomic.Int64
}

const (
	flushEvery    = 100 * time.Millisecond // a SIGKILL may lose at most twice that
	progressEvery = 200 * time.Millisecond
	// stallLimit is how late a timer of the control node may fire before the
	// machine counts as stalled.
	stallLimit = 500 * time.Millisecond
)

func newWatch(r *run) *watch { return &watch{r: r, tasks: newTasks(r.t.Control)} }

func (w *watch) begin(ctx context.Context) {
	failed := func(err error) { w.r.rec.problem(history.ProblemTask, -1, err) }
	w.tasks.start(ctx, "flush", w.flush, failed)
	if w.r.t.Progress == nil {
		return
	}
	w.r.rec.On(history.KindTerm, w.term)
	w.r.rec.On(history.KindRefused, func(history.Op) { w.refused.Add(1) })
	w.tasks.start(ctx, "progress", func(ctx context.Context) error {
		for w.r.t.Control.Sleep(ctx, progressEvery) == nil {
			w.report()
		}
		return nil
	}, failed)
}

// flush hands the history to the operating system in time. Its own timer shows
// whether the machine keeps up: a late one is recorded as a stall.
func (w *watch) flush(ctx context.Context) error {
	h := w.r.t.Control
	due := h.Now() + flushEvery
	for h.Sleep(ctx, flushEvery) == nil {
		if late := h.Now() - due; late > stallLimit {
			w.r.rec.Event(history.Stall{Late: int64(late)})
		}
		_ = w.r.rec.Flush() // the loop sees the error and ends the run
		due = h.Now() + flushEvery
	}
	return nil
}

func (w *watch) term(op history.Op) {
	var term history.Term
	if json.Unmarshal(op.Value, &term) == nil && term.State == history.TermServing {
		w.leader.Store(&term.Coordinator)
	}
}

// report tells the terminal how things stand.
func (w *watch) report() {
	if w.r.t.Progress == nil {
		return
	}
	p := Progress{Phase: w.phase, Time: w.r.t.Control.Now(), Refused: int(w.refused.Load())}
	if leader := w.leader.Load(); leader != nil {
		p.Leader = *leader
	}
	if l := w.r.loop; l != nil {
		p.Ok, p.Fail, p.Info, p.Open = l.counts[history.Ok], l.counts[history.Fail], l.counts[history.Info], l.open
	}
	if x := w.r.exec; x != nil {
		p.Faults = append(p.Faults, x.inForce...)
	}
	w.r.t.Progress(p)
}
