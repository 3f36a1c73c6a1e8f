package checker

import (
	"cmp"
	"slices"
)

// Chains are the zones for registers with compare-and-set and unique writes. A
// successful compare-and-set from u to v reads u and writes v with nothing in
// between, so clusters joined by them form chains, and a chain is contiguous in
// every linearization: write, reads of u, the compare-and-set, reads of v, the
// next one, ... Inside, each group must not have returned before an earlier one
// was called. Between chains the theorem of zones.go holds word for word, with f
// the smallest return and s the largest call of the whole chain.
//
// An unknown compare-and-set is taken to have happened if its value was seen, or
// consumed by one that happened; else it is left out, as an unknown write is.
//
// A failed compare-and-set from u says that u was not there. It is certainly
// wrong if an operation of u's group returned before it was called and one was
// called after it returned; it is certainly right if the chains, laid out by
// f + s, leave each of them a place in time at another value. Else undecided.

// chainFault is what the chains found.
type chainFault uint8

const (
	chainsLegal     chainFault = iota
	chainsRepeated             // a value is written twice: they do not apply
	chainsUndecided            // a failed compare-and-set found no place in this order
	chainsUnwritten            // a value was seen that nobody wrote
	chainsTwice                // two compare-and-sets consumed the same value
	chainsRing                 // compare-and-sets that feed each other
	chainsOrder                // inside a chain, a later group returned before an earlier was called
	chainsConflict             // two chains must each precede the other
	chainsFailed               // a failed compare-and-set while its value was certainly there
)

// chainAnswer is the answer with the values (heads of chains for a conflict) or
// the operation that it rests on.
type chainAnswer struct {
	fault chainFault
	a, b  int32
	op    int32
}

func (c chainAnswer) answer() answer {
	switch c.fault {
	case chainsLegal:
		return legal
	case chainsRepeated, chainsUndecided:
		return notAsked
	default:
		return illegal
	}
}

const noOp = int32(-1)

// group is a value: who wrote it, who read it, which compare-and-set took it on.
type group struct {
	readRet, readCall int32 // smallest return and largest call of its reads
	writer            int32 // operation, noOp for none
	taker             int32
	head              int32 // first value of its chain, noOp if it is in none
	happened          bool  // the writer took effect
}

// chainer holds the algorithm's buffers.
type chainer struct {
	ops    []regOp
	groups []group
	heads  []int32
	queue  []int32
	failed int
	zones  zoner
}

// judge decides a register with compare-and-set. Positions and values are as in
// zoner.judge.
func (c *chainer) judge(ops []regOp, values int) chainAnswer {
	c.ops = ops
	if bad, ok := c.collect(values); !ok {
		return bad
	}
	if bad, ok := c.link(); !ok {
		return bad
	}
	if bad, ok := c.walk(); !ok {
		return bad
	}
	if c.zones.conflicts(2 * len(ops)) {
		a, b := c.zones.pair()
		return chainAnswer{fault: chainsConflict, a: c.heads[a], b: c.heads[b]}
	}
	if c.failed == 0 {
		return chainAnswer{fault: chainsLegal}
	}
	return c.place()
}

// collect fills the groups; not ok if a value is written twice.
func (c *chainer) collect(values int) (chainAnswer, bool) {
	c.groups = slices.Grow(c.groups[:0], values)[:values]
	for v := range c.groups {
		c.groups[v] = group{readRet: noReturn, readCall: noCall, writer: noOp, taker: noOp, head: noOp}
	}
	c.failed = 0
	repeated := noOp
	for i := range c.ops {
		op := &c.ops[i]
		switch op.Kind {
		case opRead:
			g := &c.groups[op.Value]
			g.readRet, g.readCall = min(g.readRet, op.Ret), max(g.readCall, op.Call)
		case opFailedCAS:
			c.failed++
		default:
			g := &c.groups[op.Value]
			if g.writer != noOp || op.Value == initial {
				repeated = op.Value
			}
			g.writer, g.happened = int32(i), !op.crashed()
		}
	}
	return chainAnswer{fault: chainsRepeated, a: repeated}, repeated == noOp
}

// link finds out which operations of unknown outcome happened, and who consumed
// which value.
func (c *chainer) link() (chainAnswer, bool) {
	c.queue = c.queue[:0]
	for v := range c.groups {
		g := &c.groups[v]
		seen := g.readCall != noCall
		if seen && g.writer == noOp && int32(v) != initial {
			return chainAnswer{fault: chainsUnwritten, a: int32(v)}, false
		}
		if g.writer != noOp && (g.happened || seen) {
			g.happened = true
			c.queue = append(c.queue, int32(v))
		}
	}
	for len(c.queue) > 0 {
		v := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		op := &c.ops[c.groups[v].writer]
		if op.Kind != opCAS {
			continue
		}
		u := &c.groups[op.From]
		if u.taker != noOp && u.taker != c.groups[v].writer {
			return chainAnswer{fault: chainsTwice, a: op.From}, false
		}
		u.taker = c.groups[v].writer
		switch {
		case op.From == initial:
		case u.writer == noOp:
			return chainAnswer{fault: chainsUnwritten, a: op.From}, false
		case !u.happened:
			u.happened = true
			c.queue = append(c.queue, op.From)
		}
	}
	return chainAnswer{}, true
}

// walk goes along every chain, checks its inner order and gives its f and s to
// the zones, one zone a chain.
func (c *chainer) walk() (chainAnswer, bool) {
	c.heads = c.heads[:0]
	c.zones.zones = c.zones.zones[:0]
	reached := 0
	for v := range c.groups {
		g := &c.groups[v]
		if int32(v) != initial && (!g.happened || c.ops[g.writer].Kind == opCAS) {
			continue
		}
		z := zone{f: noReturn, s: noCall, write: noCall}
		if int32(v) == initial {
			z.f = noCall
		}
		for u := int32(v); ; {
			reached++
			g := &c.groups[u]
			g.head = int32(v)
			for _, part := range [2]zone{c.writing(u), {f: g.readRet, s: g.readCall}} {
				if part.f < z.s {
					return chainAnswer{fault: chainsOrder, a: u}, false
				}
				z.f, z.s = min(z.f, part.f), max(z.s, part.s)
			}
			if g.taker == noOp {
				break
			}
			u = c.ops[g.taker].Value
		}
		c.heads = append(c.heads, int32(v))
		c.zones.zones = append(c.zones.zones, z)
	}
	for v := range c.groups { // what no chain reached is fed by itself
		if g := &c.groups[v]; g.happened && g.head == noOp {
			return chainAnswer{fault: chainsRing, a: int32(v)}, false
		}
	}
	return chainAnswer{}, true
}

// writing is the interval of the operation that wrote a value.
func (c *chainer) writing(v int32) zone {
	w := c.groups[v].writer
	if w == noOp {
		return zone{f: noReturn, s: noCall}
	}
	return zone{f: c.ops[w].Ret, s: c.ops[w].Call}
}

// place looks for a slot for every failed compare-and-set in one legal order.
func (c *chainer) place() chainAnswer {
	for i := range c.ops {
		if op := &c.ops[i]; op.Kind == opFailedCAS && int(op.From) < len(c.groups) && c.certainlyThere(op) {
			return chainAnswer{fault: chainsFailed, a: op.From, op: int32(i)}
		}
	}
	l := c.layout()
	floor := int32(0) // slots of failed ones that have returned
	slots := make([]int32, len(c.ops))
	for at := range l.events {
		i := l.events[at]
		if i == noOp || c.ops[i].Kind != opFailedCAS {
			continue
		}
		op := &c.ops[i]
		if int32(at) == op.Ret {
			floor = max(floor, slots[i])
			continue
		}
		slot := max(floor, l.after[op.Call])
		if slot >= l.from[op.From] && slot < l.to[op.From] {
			slot = l.to[op.From]
		}
		if slot > l.before[op.Ret] {
			return chainAnswer{fault: chainsUndecided, op: i}
		}
		slots[i] = slot
	}
	return chainAnswer{fault: chainsLegal}
}

// certainlyThere: the value was there before the call and after the return of a
// failed compare-and-set, and cannot have gone and come back.
func (c *chainer) certainlyThere(op *regOp) bool {
	g := &c.groups[op.From]
	first, last := g.readRet, g.readCall
	if g.writer != noOp && g.happened {
		first, last = min(first, c.ops[g.writer].Ret), max(last, c.ops[g.writer].Call)
	}
	if op.From == initial {
		first = noCall
	}
	if g.taker != noOp {
		last = max(last, c.ops[g.taker].Call)
	}
	return first < op.Call && last > op.Ret
}

// chainLayout is one legal order of everything but failed compare-and-sets. Slot
// j is the place before the j-th operation of the order.
type chainLayout struct {
	events   []int32 // operation by position
	after    []int32 // by position: first slot behind everything that returned by then
	before   []int32 // by position: last slot before everything that is called later
	from, to []int32 // by value: slots at which it is there, to excluded
}

func (c *chainer) layout() chainLayout {
	order := make([]int, len(c.heads))
	for i := range order {
		order[i] = i
	}
	zones := c.zones.zones
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(int64(zones[a].f)+int64(zones[a].s), int64(zones[b].f)+int64(zones[b].s))
	})
	reads := make([][]int32, len(c.groups))
	for i := range c.ops { // in order of call, as the operations are
		if op := &c.ops[i]; op.Kind == opRead {
			reads[op.Value] = append(reads[op.Value], int32(i))
		}
	}
	positions := 2 * len(c.ops)
	l := chainLayout{
		events: make([]int32, positions), after: make([]int32, positions), before: make([]int32, positions),
		from: make([]int32, len(c.groups)), to: make([]int32, len(c.groups)),
	}
	slot := int32(0)
	rank := make([]int32, len(c.ops))
	for i := range rank {
		rank[i] = noOp
	}
	put := func(i int32) {
		rank[i] = slot
		slot++
	}
	current := noOp
	enter := func(v int32) {
		if current != noOp {
			l.to[current] = slot
		}
		l.from[v], current = slot, v
	}
	enter(initial)
	for _, b := range order {
		for v := c.heads[b]; ; v = c.ops[c.groups[v].taker].Value {
			if w := c.groups[v].writer; w != noOp {
				put(w)
				enter(v)
			}
			for _, i := range reads[v] {
				put(i)
			}
			if c.groups[v].taker == noOp {
				break
			}
		}
	}
	l.to[current] = slot + 1
	c.bounds(&l, rank, slot)
	return l
}

// bounds fills events, after and before from the operations' ranks.
func (c *chainer) bounds(l *chainLayout, rank []int32, last int32) {
	for at := range l.events {
		l.events[at], l.before[at] = noOp, last
	}
	for i := range c.ops {
		op := &c.ops[i]
		l.events[op.Call] = int32(i)
		if !op.crashed() {
			l.events[op.Ret] = int32(i)
		}
	}
	high := int32(0)
	for at, i := range l.events {
		if i != noOp && rank[i] != noOp && c.ops[i].Ret == int32(at) {
			high = max(high, rank[i]+1)
		}
		l.after[at] = high
	}
	low := last
	for at := len(l.events) - 1; at >= 0; at-- {
		l.before[at] = low
		if i := l.events[at]; i != noOp && rank[i] != noOp && c.ops[i].Call == int32(at) {
			low = min(low, rank[i])
		}
	}
}
