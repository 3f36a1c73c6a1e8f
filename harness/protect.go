package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// PanicError is a panic of code that the harness called: a client, a generator,
// a nemesis. It is a finding about the harness, and an unknown outcome for the
// operation under way.
type PanicError struct {
	Value any
	Stack []byte
}

// Error gives the panic's value; the stack is kept apart.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// protect calls f and turns a panic into an error. The unwinding of a kill is
// no panic of f: it goes on, because a call to the host of a dead incarnation
// does not return.
func protect(ctx context.Context, h host.Host, f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if value == nil {
			return // a test's Goexit travels on by itself
		}
		stack := debug.Stack()
		_, cancel := h.WithCancel(ctx)
		cancel()
		err = &PanicError{Value: value, Stack: stack}
	}()
	err = f()
	returned = true
	return err
}

// problem records a problem of the harness itself.
func (r *Recorder) problem(kind string, p history.Process, err error) {
	detail := err.Error()
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		kind, detail = history.ProblemPanic, detail+"\n"+string(panicked.Stack)
	}
	r.Event(history.Harness{Problem: kind, Detail: detail, Process: p})
}

// tasks joins tasks of one host.
type tasks struct {
	h    host.Host
	cond host.Cond
	open int
}

func newTasks(h host.Host) *tasks { return &tasks{h: h, cond: h.NewCond()} }

// start runs f as a task; report is told if f fails or panics.
func (g *tasks) start(ctx context.Context, name string, f func(context.Context) error, report func(error)) {
	g.open++
	g.h.Go(ctx, name, func(ctx context.Context) {
		if err := protect(ctx, g.h, func() error { return f(ctx) }); err != nil {
			report(fmt.Errorf("%s: %w", name, err))
		}
		g.open--
		g.cond.Broadcast()
	})
}

// wait parks until every task has ended, or ctx ends.
func (g *tasks) wait(ctx context.Context) error {
	for g.open > 0 {
		if err := g.cond.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
