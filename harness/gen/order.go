package gen

import (
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// Weighted is a part of a Mix: its share is Weight over the sum of all weights.
type Weighted struct {
	Weight    int
	Generator harness.Generator
}

// Mix draws for each operation which part gives it. A part that is done drops
// out; one that waits gives its turn to another draw at the next asking. A
// part without weight is never asked.
func Mix(parts ...Weighted) harness.Generator {
	g := &mix{}
	for _, p := range parts {
		if p.Weight > 0 {
			g.parts = append(g.parts, p)
			g.sum += p.Weight
		}
	}
	return g
}

type mix struct {
	parts []Weighted
	sum   int
}

func (g *mix) Next(c harness.Context) harness.Step {
	for len(g.parts) > 0 {
		i, at := 0, c.Rand.IntN(g.sum)
		for at >= g.parts[i].Weight {
			at -= g.parts[i].Weight
			i++
		}
		s := g.parts[i].Generator.Next(c)
		if !s.Done {
			return s
		}
		g.sum -= g.parts[i].Weight
		g.parts = append(g.parts[:i:i], g.parts[i+1:]...)
	}
	return Done()
}

func (g *mix) Update(c harness.Context, op history.Op) {
	for _, p := range g.parts {
		p.Generator.Update(c, op)
	}
}

// Any gives what the first of its parts gives that has something now. Earlier
// parts go first, so they need a Rate or a Limit.
func Any(parts ...harness.Generator) harness.Generator { return &anyOf{parts} }

type anyOf struct{ parts []harness.Generator }

func (g *anyOf) Next(c harness.Context) harness.Step {
	out := Done()
	for _, p := range g.parts {
		s := p.Next(c)
		if given(s) {
			return s
		}
		out = sooner(out, s)
	}
	return out
}

func (g *anyOf) Update(c harness.Context, op history.Op) {
	for _, p := range g.parts {
		p.Update(c, op)
	}
}

// FlipFlop takes one operation of each part in turn and ends when the one whose
// turn it is ends.
func FlipFlop(parts ...harness.Generator) harness.Generator { return &flipFlop{parts: parts} }

type flipFlop struct {
	parts []harness.Generator
	turn  int
}

func (g *flipFlop) Next(c harness.Context) harness.Step {
	if len(g.parts) == 0 {
		return Done()
	}
	s := g.parts[g.turn].Next(c)
	if given(s) {
		g.turn = (g.turn + 1) % len(g.parts)
	}
	return s
}

func (g *flipFlop) Update(c harness.Context, op history.Op) {
	for _, p := range g.parts {
		p.Update(c, op)
	}
}

// Phases runs its parts one after the other; each begins when the one before is
// done and nothing is under way any more.
func Phases(parts ...harness.Generator) harness.Generator { return &phases{parts: parts} }

type phases struct{ parts []harness.Generator }

func (g *phases) Next(c harness.Context) harness.Step {
	for len(g.parts) > 0 {
		s := g.parts[0].Next(c)
		if !s.Done {
			return s
		}
		if len(g.parts) > 1 && len(c.Free) < len(c.All) {
			return Wait(0)
		}
		g.parts = g.parts[1:]
	}
	return Done()
}

func (g *phases) Update(c harness.Context, op history.Op) {
	if len(g.parts) > 0 {
		g.parts[0].Update(c, op)
	}
}
