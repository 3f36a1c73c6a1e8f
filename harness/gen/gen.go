// Package gen builds generators from parts: what to do (Ops, Seq, Once,
// UntilOk, Independent), how often (Rate, Limit, TimeLimit), by whom (Reserve,
// EachProcess), and in what order (Mix, FlipFlop, Any, Phases). Each part is a
// state machine without clock, sleep or dice of its own: the context brings
// them, so a generator under test needs no cluster and no time.
package gen

import (
	"time"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// Done is the step of a generator that has nothing more to give.
func Done() harness.Step { return harness.Step{Done: true} }

// Wait is the step of one that has nothing now: until at, or until something
// completes if at is zero.
func Wait(at time.Duration) harness.Step { return harness.Step{Pending: true, At: at} }

// Do is the step of one that gives op, to a free process drawn from the context.
func Do(c harness.Context, op history.Op) harness.Step {
	op.Process = c.Free[0]
	if len(c.Free) > 1 {
		op.Process = c.Free[c.Rand.IntN(len(c.Free))]
	}
	return harness.Step{Op: op}
}

func given(s harness.Step) bool { return !s.Done && !s.Pending }

// sooner joins two steps that are not operations: done if both are, else
// waiting until the earlier of the two times.
func sooner(a, b harness.Step) harness.Step {
	switch {
	case a.Done:
		return b
	case b.Done:
		return a
	case a.At == 0 || b.At != 0 && b.At < a.At:
		return b
	}
	return a
}

// Ops gives what f makes, for ever.
func Ops(f func(c harness.Context) history.Op) harness.Generator { return ops(f) }

type ops func(c harness.Context) history.Op

func (g ops) Next(c harness.Context) harness.Step  { return Do(c, g(c)) }
func (ops) Update(_ harness.Context, _ history.Op) {}

// Seq gives its operations one after the other, each once, without waiting for
// the one before.
func Seq(list ...history.Op) harness.Generator { return &seq{list: list} }

// Once gives one operation once.
func Once(op history.Op) harness.Generator { return Seq(op) }

type seq struct{ list []history.Op }

func (g *seq) Next(c harness.Context) harness.Step {
	if len(g.list) == 0 {
		return Done()
	}
	op := g.list[0]
	g.list = g.list[1:]
	return Do(c, op)
}

func (*seq) Update(harness.Context, history.Op) {}

// Limit gives at most n operations of g.
func Limit(n int, g harness.Generator) harness.Generator { return &limit{left: n, inner: g} }

type limit struct {
	left  int
	inner harness.Generator
}

func (g *limit) Next(c harness.Context) harness.Step {
	if g.left <= 0 {
		return Done()
	}
	s := g.inner.Next(c)
	if given(s) {
		g.left--
	}
	return s
}

func (g *limit) Update(c harness.Context, op history.Op) { g.inner.Update(c, op) }

// TimeLimit gives what g gives for d, counted from the first time it is asked.
func TimeLimit(d time.Duration, g harness.Generator) harness.Generator {
	return &timeLimit{limit: d, inner: g, end: -1}
}

type timeLimit struct {
	limit, end time.Duration
	inner      harness.Generator
}

func (g *timeLimit) Next(c harness.Context) harness.Step {
	if g.end < 0 {
		g.end = c.Time + g.limit
	}
	if c.Time >= g.end {
		return Done()
	}
	s := g.inner.Next(c)
	if s.Pending && (s.At == 0 || s.At > g.end) {
		s.At = g.end // to be asked again then, and end
	}
	return s
}

func (g *timeLimit) Update(c harness.Context, op history.Op) { g.inner.Update(c, op) }
