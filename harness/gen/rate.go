package gen

import (
	"time"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// catchUp is how far behind its plan a Rate may be and still make up for it:
// timers fire late, and without this each lateness would lower the rate. What
// is older is forgotten, else an outage would be followed by a flood.
const catchUp = 10 * time.Millisecond

// Rate spaces the operations of g so that there are perSecond of them on
// average, each gap drawn between zero and twice the mean. Zero or less means
// as fast as the processes go.
func Rate(perSecond float64, g harness.Generator) harness.Generator {
	if perSecond <= 0 {
		return g
	}
	return &rate{gap: float64(time.Second) / perSecond, inner: g}
}

type rate struct {
	gap   float64 // mean, nanoseconds
	next  time.Duration
	inner harness.Generator
}

func (g *rate) Next(c harness.Context) harness.Step {
	if c.Time < g.next {
		return Wait(g.next)
	}
	s := g.inner.Next(c)
	if given(s) {
		g.next = max(g.next, c.Time-catchUp) + time.Duration(c.Rand.Float64()*2*g.gap)
	}
	return s
}

func (g *rate) Update(c harness.Context, op history.Op) { g.inner.Update(c, op) }
