package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// worker is a place for one process at a time. It is a task that takes an
// operation from its slot, has the process's client do it, and hands the result
// to the loop. It decides nothing and writes nothing.
type worker struct {
	loop    *loop
	process history.Process
	slot    history.Op
	full    bool
	busy    bool // from the dispatch until the loop has taken the completion
	wake    host.Cond
	stop    bool

	client Client
	owner  history.Process // the process whose client it is
}

// finished is what a worker hands over.
type finished struct {
	worker     *worker
	op         history.Op // the invocation
	completion Completion
	err        error
}

// Pauses that keep a client that fails at once from turning the loop into a
// spin: virtual time would never move.
const (
	openPause = 100 * time.Millisecond
	failPause = time.Millisecond
	okPause   = time.Microsecond
)

func (w *worker) run(ctx context.Context) error {
	h := w.loop.env.Host
	for {
		for !w.full && !w.stop && ctx.Err() == nil {
			_ = w.wake.Wait(ctx) // its end is seen by the loop
		}
		if !w.full {
			w.close()
			return nil
		}
		w.full = false
		op := w.slot
		began := h.Now()
		completion, err := w.invoke(ctx, op)
		if h.Now() == began {
			pause := okPause
			if err != nil {
				pause = failPause
			}
			_ = h.Sleep(ctx, pause)
		}
		w.loop.finished = append(w.loop.finished, finished{w, op, completion, err})
		w.loop.wake.Broadcast()
	}
}

// invoke has the process's own client do one operation, in its time.
func (w *worker) invoke(ctx context.Context, op history.Op) (Completion, error) {
	h, limit := w.loop.env.Host, w.loop.env.Options.OpTimeout
	bounded, cancel := h.WithTimeout(ctx, limit)
	defer cancel()
	if w.client == nil || w.owner != op.Process {
		w.close()
		if err := w.open(bounded, op.Process); err != nil {
			_ = h.Sleep(ctx, openPause)
			return Completion{}, err
		}
	}
	var completion Completion
	err := protect(bounded, h, func() error {
		var err error
		completion, err = w.client.Invoke(bounded, op)
		return err
	})
	if isPanic(err) {
		w.client = nil // whatever state it is in, nobody calls it again
	}
	return completion, err
}

// open makes a client. Nothing was sent for the operation yet, so a failure is
// definite; a panic is not trusted that far.
func (w *worker) open(ctx context.Context, p history.Process) error {
	err := protect(ctx, w.loop.env.Host, func() error {
		client, err := w.loop.workload.Open(ctx, w.loop.env, p)
		if err == nil {
			w.client, w.owner = client, p
		}
		return err
	})
	if err == nil || isPanic(err) {
		return err
	}
	return cluster.Definite(fmt.Errorf("open client: %w", err))
}

// closeTime bounds the closing of one client.
const closeTime = 5 * time.Second

func (w *worker) close() {
	client := w.client
	if client == nil {
		return
	}
	w.client = nil
	h := w.loop.env.Host
	ctx, cancel := h.WithTimeout(h.Context(), closeTime)
	defer cancel()
	err := protect(ctx, h, func() error { return client.Close(ctx) })
	if isPanic(err) {
		w.loop.rec.problem(history.ProblemPanic, w.owner, fmt.Errorf("close client: %w", err))
	}
}

// complete turns a client's answer into the line of the history. This is the
// only place that decides how an operation ended.
func (l *loop) complete(f finished) history.Op {
	op := history.Op{
		Process: f.op.Process, F: f.op.F, Value: f.op.Value,
		Node: string(f.completion.Attempts.Node), Tries: f.completion.Attempts.Tries,
		Metadata: f.completion.Attempts.Metadata,
	}
	op.Type = l.verdict(f.op.F, f.err)
	if f.err != nil {
		op.Error = f.err.Error()
	}
	if f.err == nil && f.completion.Value != nil {
		raw, err := encode(f.completion.Value)
		if err != nil { // the operation happened, only its value is lost
			op.Type, op.Error = history.Info, fmt.Sprintf("value has no JSON form: %v", err)
			l.rec.problem(history.ProblemTask, f.op.Process, errors.New(op.Error))
		} else {
			op.Value = raw
		}
	}
	if isPanic(f.err) {
		l.rec.problem(history.ProblemPanic, f.op.Process, f.err)
	}
	return op
}

func (l *loop) verdict(f string, err error) history.Type {
	switch {
	case err == nil:
		return history.Ok
	case isPanic(err):
		return history.Info
	case cluster.IsDefinite(err):
		return history.Fail
	case l.workload.ReadOnly != nil && l.workload.ReadOnly(f):
		return history.Fail
	}
	return history.Info
}

func encode(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	return json.Marshal(v)
}
