package checker

import (
	"cmp"
	"math/bits"
	"slices"
)

// Zones decide a register whose writes are unique in linear time (Gibbons and
// Korach, "Testing shared memories", 1997).
//
// For a value v let its cluster be the write of v and all reads of v, f(v) the
// smallest return and s(v) the largest call in it; for the initial value f is
// before everything. In a linearization a cluster is contiguous, since after the
// next write v can never be read again. So a linearization is an order of
// clusters, and A must come before B exactly when f(A) < s(B). The register is
// linearizable iff every value read was written, no read of v returned before
// the write of v was called, and no two clusters have f(A) < s(B) and f(B) < s(A):
// if A must precede B and not B A, then f(A)+s(A) < f(B)+s(B), so the relation
// has no cycle.
//
// Call a cluster forward if f < s: it owns the cells f..s-1 of the position
// line. Two forward clusters conflict iff they share a cell; a forward and a
// backward one (s <= f) iff the forward one owns all of s-1..f; two backward
// ones never. Two forward clusters never touch, because a position is either a
// call or a return; so "all owned" means "all owned by one".
//
// A crashed write that nobody read is left out (no operation can notice); one
// that was read did take effect, and its cluster's f comes from the reads.

// zoneFault is what the zones found.
type zoneFault uint8

const (
	zonesLegal     zoneFault = iota
	zonesRepeated            // a value is written twice: the zones do not apply
	zonesUnwritten           // a value was read that nobody wrote
	zonesEarly               // a value was read before its write was called
	zonesConflict            // two clusters must each precede the other
)

// zoneAnswer is the answer with the numbers of the values that it rests on: A
// and B for a conflict, A for the others.
type zoneAnswer struct {
	fault zoneFault
	a, b  int32
}

func (z zoneAnswer) answer() answer {
	switch z.fault {
	case zonesLegal:
		return legal
	case zonesRepeated:
		return notAsked
	default:
		return illegal
	}
}

// zone is a value's cluster: 12 bytes.
type zone struct {
	f, s  int32 // smallest return, largest call
	write int32 // call of the write, none if there is none
}

const (
	noCall   = int32(-1)
	noReturn = forever
)

// zoner holds the buffers of the algorithm, to be used again for the next key.
type zoner struct {
	zones []zone
	owned []uint64
}

// judge decides a register in O(n). Positions of calls and returns are 0..2n-1,
// all different; values are numbered 0..values-1 and 0 is the initial one.
func (z *zoner) judge(spans []span, values int) zoneAnswer {
	if repeated := z.collect(spans, values); repeated != noCall {
		return zoneAnswer{fault: zonesRepeated, a: repeated}
	}
	// Nothing may be called a violation before the writes are known to be unique.
	for v := range z.zones[1:] {
		c := &z.zones[v+1]
		switch {
		case c.write == noCall && c.f != noReturn:
			return zoneAnswer{fault: zonesUnwritten, a: int32(v + 1)}
		case c.f < c.write:
			return zoneAnswer{fault: zonesEarly, a: int32(v + 1)}
		}
	}
	if z.conflicts(2 * len(spans)) {
		a, b := z.pair()
		return zoneAnswer{fault: zonesConflict, a: a, b: b}
	}
	return zoneAnswer{fault: zonesLegal}
}

// collect fills the zones and returns a value that is written twice, or noCall.
func (z *zoner) collect(spans []span, values int) int32 {
	z.zones = slices.Grow(z.zones[:0], values)[:values]
	for v := range z.zones {
		z.zones[v] = zone{f: noReturn, s: noCall, write: noCall}
	}
	// The initial value was written before everything.
	z.zones[initial] = zone{f: noCall, s: noCall, write: noCall}
	repeated := noCall
	for i := range spans {
		op := &spans[i]
		c := &z.zones[op.Value]
		if op.Write {
			if c.write != noCall || op.Value == initial {
				repeated = op.Value
			}
			c.write = op.Call
		}
		c.f = min(c.f, op.Ret)
		c.s = max(c.s, op.Call)
	}
	return repeated
}

// left tells a cluster that takes no part: nobody noticed it.
func (c *zone) left() bool { return c.f == noReturn || c.s == noCall }

// conflicts paints the forward clusters' cells and looks for a cell painted
// twice, then for a backward cluster whose cells are all painted. The initial
// value's f is -1, so cells are shifted by one.
func (z *zoner) conflicts(positions int) bool {
	words := (positions + 1 + 63) / 64
	z.owned = slices.Grow(z.owned[:0], words)[:words]
	clear(z.owned)
	for v := range z.zones {
		c := &z.zones[v]
		if !c.left() && c.f < c.s && z.paint(int(c.f)+1, int(c.s)+1) {
			return true
		}
	}
	for v := range z.zones {
		c := &z.zones[v]
		if !c.left() && c.s <= c.f && z.covered(int(c.s), int(c.f)+2) {
			return true
		}
	}
	return false
}

// paint owns the cells from..to-1, and reports whether one was owned before.
func (z *zoner) paint(from, to int) bool {
	for from < to {
		word, low := from/64, from%64
		n := min(64-low, to-from)
		mask := (^uint64(0) >> (64 - n)) << low
		if z.owned[word]&mask != 0 {
			return true
		}
		z.owned[word] |= mask
		from += n
	}
	return false
}

// covered reports whether the cells from..to-1 are all owned. It stops at the
// first free one.
func (z *zoner) covered(from, to int) bool {
	for from < to {
		word, low := from/64, from%64
		n := min(64-low, to-from)
		free := bits.TrailingZeros64(^(z.owned[word] >> low))
		if free < n {
			return false
		}
		from += n
	}
	return true
}

// pair finds two clusters that conflict, the one whose s is called first in the
// history first. It is asked only when there are some: sorting is affordable.
func (z *zoner) pair() (a, b int32) {
	var order []int32
	for v := range z.zones {
		if !z.zones[v].left() {
			order = append(order, int32(v))
		}
	}
	slices.SortFunc(order, func(x, y int32) int {
		return cmp.Compare(int64(z.zones[x].f)+int64(z.zones[x].s), int64(z.zones[y].f)+int64(z.zones[y].s))
	})
	last := order[0]
	for _, v := range order[1:] {
		if z.zones[last].s > z.zones[v].f {
			return last, v
		}
		if z.zones[v].s > z.zones[last].s {
			last = v
		}
	}
	return noCall, noCall
}
