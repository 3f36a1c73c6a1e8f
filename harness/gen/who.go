package gen

import (
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// Reserve keeps the last n workers for special, and leaves the others to rest.
// Special goes first when both have something, so it needs a rate of its own.
func Reserve(n int, special, rest harness.Generator) harness.Generator {
	return &reserve{n: n, special: special, rest: rest}
}

type reserve struct {
	n             int
	special, rest harness.Generator
}

func (g *reserve) Next(c harness.Context) harness.Step {
	out := Wait(0)
	if mine := g.view(c, true); len(mine.Free) > 0 {
		if out = g.special.Next(mine); given(out) {
			return out
		}
	}
	others := g.view(c, false)
	if len(others.Free) == 0 {
		return sooner(out, Wait(0))
	}
	s := g.rest.Next(others)
	if given(s) {
		return s
	}
	return sooner(out, s)
}

func (g *reserve) Update(c harness.Context, op history.Op) {
	mine := c.Worker(op.Process) >= c.Workers-g.n
	if mine {
		g.special.Update(g.view(c, true), op)
	} else {
		g.rest.Update(g.view(c, false), op)
	}
}

// view is the context as one of the two sides sees it: all and free hold its
// own processes only. Both lists are in order of workers.
func (g *reserve) view(c harness.Context, mine bool) harness.Context {
	border := max(0, len(c.All)-g.n)
	free := 0
	for free < len(c.Free) && c.Worker(c.Free[free]) < c.Workers-g.n {
		free++
	}
	if mine {
		c.All, c.Free = c.All[border:], c.Free[free:]
	} else {
		c.All, c.Free = c.All[:border], c.Free[:free]
	}
	return c
}

// EachProcess gives every worker a generator of its own, made by f from the
// worker's place among all. It is done when each of them is.
func EachProcess(f func(worker int) harness.Generator) harness.Generator {
	return &eachProcess{make: f, parts: map[int]harness.Generator{}}
}

type eachProcess struct {
	make  func(worker int) harness.Generator
	parts map[int]harness.Generator // looked up, never ranged over
}

func (g *eachProcess) part(worker int) harness.Generator {
	p, ok := g.parts[worker]
	if !ok {
		p = g.make(worker)
		g.parts[worker] = p
	}
	return p
}

func (g *eachProcess) Next(c harness.Context) harness.Step {
	out := Done()
	for i, p := range c.Free {
		own := c
		own.Free = c.Free[i : i+1 : i+1]
		s := g.part(c.Worker(p)).Next(own)
		if given(s) {
			return s
		}
		out = sooner(out, s)
	}
	if out.Done && len(c.Free) < len(c.All) {
		return Wait(0) // those under way may have more to do
	}
	return out
}

func (g *eachProcess) Update(c harness.Context, op history.Op) {
	g.part(c.Worker(op.Process)).Update(c, op)
}
