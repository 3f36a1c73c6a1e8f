package gen

import (
	"strconv"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// Keys are the limits of Independent. A key is judged by itself, and a judge's
// work grows with the number of its operations and, much faster, with how many
// were open at once. An operation that ended in Info stays open to the end of
// the history, so it counts for ever.
type Keys struct {
	Prefix string // of the keys' names: k0, k1, …
	Active int    // keys in use at a time
	Ops    int    // operations on a key before it is retired
	Open   int    // operations under way on a key, unknown ones included
	// Busy bounds the processes that work on one key at a time, 0 is Open. Without
	// it the keys of a dead server soon hold every process.
	Busy int
}

// Independent spreads operations over many keys. Make gives the next operation
// on a key. A key that has had its share, or whose unknown operations fill half
// of what may be open, is retired and a new one takes its place.
func Independent(k Keys, make func(c harness.Context, key string) history.Op) *IndependentGen {
	return &IndependentGen{limits: k, make: make, open: map[history.Process]*keyState{}}
}

// IndependentGen is the generator that Independent makes.
type IndependentGen struct {
	limits Keys
	make   func(c harness.Context, key string) history.Op
	active []*keyState
	used   []string
	open   map[history.Process]*keyState // looked up by process only
	spare  []*keyState                   // scratch
}

type keyState struct {
	name          string
	ops           int
	open, unknown int
}

// Used lists every key that was ever in use, in order of its coming in.
func (g *IndependentGen) Used() []string { return g.used }

// Next gives an operation on a key drawn from those that have room.
func (g *IndependentGen) Next(c harness.Context) harness.Step {
	busy := g.limits.Busy
	if busy == 0 {
		busy = g.limits.Open
	}
	g.refill()
	g.spare = g.spare[:0]
	for _, k := range g.active {
		if k.open < busy && k.open+k.unknown < g.limits.Open {
			g.spare = append(g.spare, k)
		}
	}
	if len(g.spare) == 0 {
		return Wait(0)
	}
	k := g.spare[c.Rand.IntN(len(g.spare))]
	s := Do(c, g.make(c, k.name))
	k.ops++
	k.open++
	g.open[s.Op.Process] = k
	return s
}

// refill retires keys and brings in new ones.
func (g *IndependentGen) refill() {
	for i, k := range g.active {
		if k.ops >= g.limits.Ops || 2*k.unknown >= g.limits.Open {
			g.active[i] = g.fresh()
		}
	}
	for len(g.active) < g.limits.Active {
		g.active = append(g.active, g.fresh())
	}
}

func (g *IndependentGen) fresh() *keyState {
	k := &keyState{name: g.limits.Prefix + strconv.Itoa(len(g.used))}
	g.used = append(g.used, k.name)
	return k
}

// Update follows what is open on each key.
func (g *IndependentGen) Update(_ harness.Context, op history.Op) {
	if op.Type == history.Invoke {
		return
	}
	k, mine := g.open[op.Process]
	if !mine {
		return
	}
	delete(g.open, op.Process)
	k.open--
	if op.Type == history.Info {
		k.unknown++
	}
}
