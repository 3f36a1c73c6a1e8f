package gen

import (
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// retryPause is how long UntilOk leaves an operation alone after a failure.
const retryPause = 100 * time.Millisecond

// UntilOk gives every operation of the list, and each again until it was Ok or
// was tried the given number of times. It is done when none is left or under way.
func UntilOk(tries int, list ...history.Op) harness.Generator {
	g := &untilOk{open: map[history.Process]try{}}
	for _, op := range list {
		g.waiting = append(g.waiting, try{op: op, left: tries})
	}
	return g
}

type untilOk struct {
	waiting []try                   // those due first come first
	open    map[history.Process]try // looked up by process only
}

type try struct {
	op   history.Op
	left int
	from time.Duration // not before
}

func (g *untilOk) Next(c harness.Context) harness.Step {
	if len(g.waiting) == 0 {
		if len(g.open) == 0 {
			return Done()
		}
		return Wait(0)
	}
	t := g.waiting[0]
	if c.Time < t.from {
		return Wait(t.from)
	}
	g.waiting = g.waiting[1:]
	s := Do(c, t.op)
	t.left--
	g.open[s.Op.Process] = t
	return s
}

func (g *untilOk) Update(c harness.Context, op history.Op) {
	t, mine := g.open[op.Process]
	if !mine || op.Type == history.Invoke {
		return
	}
	delete(g.open, op.Process)
	if op.Type == history.Ok || t.left <= 0 {
		return
	}
	t.from = c.Time + retryPause
	at := slices.IndexFunc(g.waiting, func(o try) bool { return o.from > t.from })
	if at < 0 {
		at = len(g.waiting)
	}
	g.waiting = slices.Insert(g.waiting, at, t)
}
