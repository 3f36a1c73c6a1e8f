package checker

import (
	"cmp"
	"slices"
	"time"
)

// The window search decides any model. Sort the n finite operations by return,
// R0, R1, ... If L is a set of linearized operations closed under precedence and
// r is the first with R_r outside L, then L is {R_0 .. R_(r-1)} and operations that
// are open at R_r: one that is called after R_r returned would need R_r before it.
// So a node of the search is (r, a mask over the open operations, the state), a few
// dozen bytes whatever n is, where Porcupine clones a set of n bits.
//
// Read-only operations that are legal now are taken at once and without an
// alternative: moving one to the front is legal, and nothing changes where it was.
// Dead ends are remembered when they are left, so an easy history remembers
// almost nothing. Of equal operations that are open only the one that returns
// first is tried. Operations of unknown outcome are optional, and counted by
// class: the k-th that is used is the k-th that was called. Keys of dead ends are
// exact: an illegal answer needs no second look.
//
// The cost is linear in n for a fixed number of operations open at once, and
// exponential in that number. That is the price of the problem.

// windowSpec is a model whose states and operations are numbered.
type windowSpec interface {
	step(state, op int32) (next int32, ok bool)
	readOnly(op int32) bool
	// class numbers operations that are equal in effect.
	class(op int32) int32
	// helps tells whether moving from state to next makes an operation legal, or may.
	helps(op, next, state int32) bool
	// took and undid tell that an operation entered or left the linearized set;
	// hopeless tells that a state which was just left is needed again and cannot
	// come back.
	took(op int32)
	undid(op int32)
	hopeless(left int32) bool
}

// windowOp is an operation's interval. A crashed one returns at forever.
type windowOp struct{ Call, Ret int32 }

// windowLimits bound the search; zero does not.
type windowLimits struct {
	deadline time.Time
	memory   int64 // bytes for dead ends
}

// windowMask is a set of slots for operations that are open at once.
type windowMask interface{ [1]uint64 | [4]uint64 }

// windowOpen is how many operations may be open at once.
const windowOpen = 256

// windowAnswer is what the search says: why there is no answer, or a witness, the
// operations in a legal order (unknown ones that did not matter are left out).
type windowAnswer struct {
	answer  answer
	reason  string
	witness []int32
}

// searchWindow judges a history.
func searchWindow(ops []windowOp, init int32, spec windowSpec, limits windowLimits) windowAnswer {
	slots, most := slotsOf(ops)
	switch {
	case most <= 64:
		return newWindow[[1]uint64](ops, slots, most, spec, limits).search(init)
	case most <= windowOpen:
		return newWindow[[4]uint64](ops, slots, most, spec, limits).search(init)
	}
	return windowAnswer{answer: notAsked, reason: ReasonOpen}
}

// slotsOf gives every finite operation the lowest slot that is free at its call,
// until its return.
func slotsOf(ops []windowOp) (slots []int32, most int) {
	type event struct{ at, op int32 }
	events := make([]event, 0, 2*len(ops))
	for i, op := range ops {
		if op.Ret != forever {
			events = append(events, event{op.Call, int32(i)}, event{op.Ret, int32(i)})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	slots = make([]int32, len(ops))
	var taken []bool
	for _, e := range events {
		if e.at == ops[e.op].Ret {
			taken[slots[e.op]] = false
			continue
		}
		s := slices.Index(taken, false)
		if s < 0 {
			s = len(taken)
			taken = append(taken, false)
		}
		taken[s], slots[e.op] = true, int32(s)
	}
	return slots, len(taken)
}

// windowNode is where the search stands: what it remembers of a dead end.
type windowNode[M windowMask] struct {
	mask    M
	r       int32
	state   int32
	crashed int32 // number of the vector of used crashed operations
}

// windowFrame is a node on the way, with the choices that are left.
type windowFrame[M windowMask] struct {
	node       windowNode[M]
	path       int32 // length of the path when the node was entered
	next, last int32 // choices left, on the common stack
}

type window[M windowMask] struct {
	spec    windowSpec
	limits  windowLimits
	ops     []windowOp
	slot    []int32
	order   []int32 // finite operations by return
	rank    []int32 // place in order
	calls   []int32 // finite operations by call
	prev    []int32 // who held the slot before
	holds   []int32 // by slot: the last operation that took it
	called  int     // how many of calls have been called at R_r
	crashes crashes

	at      windowNode[M]
	path    []int32 // linearized operations
	frames  []windowFrame[M]
	choices []int32
	dead    deadEnds[M]
	nodes   int64
}

func newWindow[M windowMask](ops []windowOp, slots []int32, most int, spec windowSpec, limits windowLimits) *window[M] {
	w := &window[M]{spec: spec, limits: limits, ops: ops, slot: slots}
	w.rank, w.prev = make([]int32, len(ops)), make([]int32, len(ops))
	w.holds = make([]int32, most)
	for i := range w.holds {
		w.holds[i] = noOp
	}
	for i, op := range ops {
		if op.Ret != forever {
			w.order = append(w.order, int32(i))
		} else if !spec.readOnly(int32(i)) {
			w.crashes.ops = append(w.crashes.ops, int32(i))
		}
	}
	w.calls = slices.Clone(w.order)
	slices.SortFunc(w.order, func(a, b int32) int { return cmp.Compare(ops[a].Ret, ops[b].Ret) })
	slices.SortFunc(w.calls, func(a, b int32) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
	for i, o := range w.order {
		w.rank[o] = int32(i)
	}
	for _, o := range w.calls {
		w.prev[o] = w.holds[slots[o]]
		w.holds[slots[o]] = o
	}
	for i := range w.holds {
		w.holds[i] = noOp
	}
	w.crashes.prepare(ops, spec)
	return w
}

func (w *window[M]) search(init int32) windowAnswer {
	w.at.state = init
	w.open()
	entered := w.enter()
	for {
		if int(w.at.r) == len(w.order) {
			return windowAnswer{answer: legal, witness: w.path}
		}
		if w.nodes++; w.nodes&1023 == 0 {
			if reason := w.exceeded(); reason != "" {
				return windowAnswer{answer: timedOut, reason: reason}
			}
		}
		if entered && w.try() {
			entered = w.enter()
			continue
		}
		if entered { // every choice failed
			w.leave()
		}
		if len(w.frames) == 0 {
			return windowAnswer{answer: illegal}
		}
		w.backtrack(w.frames[len(w.frames)-1])
		entered = true
	}
}

func (w *window[M]) exceeded() string {
	if !w.limits.deadline.IsZero() && time.Now().After(w.limits.deadline) {
		return ReasonTime
	}
	if w.limits.memory > 0 && w.dead.bytes() > w.limits.memory {
		return ReasonMemory
	}
	return ""
}

func has[M windowMask](m *M, slot int32) bool { return (*m)[slot>>6]&(1<<(slot&63)) != 0 }
func set[M windowMask](m *M, slot int32)      { (*m)[slot>>6] |= 1 << (slot & 63) }
func clearBit[M windowMask](m *M, slot int32) { (*m)[slot>>6] &^= 1 << (slot & 63) }

// open brings in what is called before R_r returns.
func (w *window[M]) open() {
	if int(w.at.r) >= len(w.order) {
		return
	}
	until := w.ops[w.order[w.at.r]].Ret
	for w.called < len(w.calls) && w.ops[w.calls[w.called]].Call < until {
		o := w.calls[w.called]
		w.holds[w.slot[o]] = o
		w.called++
	}
}

// retreat takes back what was called after R_r returned.
func (w *window[M]) retreat() {
	until := w.ops[w.order[w.at.r]].Ret
	for w.called > 0 && w.ops[w.calls[w.called-1]].Call > until {
		w.called--
		o := w.calls[w.called]
		w.holds[w.slot[o]] = w.prev[o]
	}
}

func (w *window[M]) take(o int32) {
	w.path = append(w.path, o)
	w.spec.took(o)
	if w.ops[o].Ret != forever {
		set(&w.at.mask, w.slot[o])
	}
}

// enter settles what needs no choice and puts a frame with the choices on the
// stack; false if the node is a known dead end.
func (w *window[M]) enter() bool {
	w.settle()
	if int(w.at.r) == len(w.order) {
		return true
	}
	if w.dead.has(w.at) {
		return false
	}
	f := windowFrame[M]{node: w.at, path: int32(len(w.path)), next: int32(len(w.choices))}
	w.choose()
	f.last = int32(len(w.choices))
	w.frames = append(w.frames, f)
	return true
}

// settle advances over linearized returns and takes legal observers, until
// neither is left.
func (w *window[M]) settle() {
	for {
		for int(w.at.r) < len(w.order) && has(&w.at.mask, w.slot[w.order[w.at.r]]) {
			clearBit(&w.at.mask, w.slot[w.order[w.at.r]])
			w.at.r++
			w.open()
		}
		if int(w.at.r) == len(w.order) {
			return
		}
		moved := false
		for s, o := range w.holds {
			if o == noOp || w.rank[o] < w.at.r || has(&w.at.mask, int32(s)) || !w.spec.readOnly(o) {
				continue
			}
			if _, ok := w.spec.step(w.at.state, o); ok {
				w.take(o)
				moved = moved || o == w.order[w.at.r]
			}
		}
		if !moved {
			return
		}
	}
}

// choose lists the operations that may come next, the most promising last: the
// next return itself, then what helps it, then by return.
func (w *window[M]) choose() {
	from := len(w.choices)
	front := w.order[w.at.r]
	for s, o := range w.holds {
		if o == noOp || w.rank[o] < w.at.r || has(&w.at.mask, int32(s)) || w.spec.readOnly(o) {
			continue
		}
		if _, ok := w.spec.step(w.at.state, o); ok {
			w.offer(from, o)
		}
	}
	w.crashes.each(w.at.crashed, w.ops[front].Ret, func(o int32) {
		if next, ok := w.spec.step(w.at.state, o); ok && next != w.at.state {
			w.offer(from, o)
		}
	})
	rate := func(o int32) int {
		if o == front {
			return 0
		}
		next, _ := w.spec.step(w.at.state, o)
		if w.spec.helps(front, next, w.at.state) {
			return 1
		}
		return 2
	}
	slices.SortFunc(w.choices[from:], func(a, b int32) int {
		return -cmp.Or(cmp.Compare(rate(a), rate(b)), cmp.Compare(w.ops[a].Ret, w.ops[b].Ret), cmp.Compare(a, b))
	})
}

// offer adds a choice unless an equal one that returns earlier is there.
func (w *window[M]) offer(from int, o int32) {
	class := w.spec.class(o)
	for i, other := range w.choices[from:] {
		if w.spec.class(other) == class {
			if w.ops[o].Ret < w.ops[other].Ret {
				w.choices[from+i] = o
			}
			return
		}
	}
	w.choices = append(w.choices, o)
}

// try takes the next choice of the top frame that is not hopeless.
func (w *window[M]) try() bool {
	f := &w.frames[len(w.frames)-1]
	for f.last > f.next {
		f.last--
		o := w.choices[f.last]
		next, _ := w.spec.step(w.at.state, o)
		left := w.at.state
		w.take(o)
		if w.ops[o].Ret == forever {
			w.at.crashed = w.crashes.use(w.at.crashed, o)
		}
		w.at.state = next
		if next != left && w.spec.hopeless(left) {
			w.backtrack(*f)
			continue
		}
		return true
	}
	return false
}

// leave remembers the top frame as a dead end and takes it off.
func (w *window[M]) leave() {
	f := w.frames[len(w.frames)-1]
	w.dead.add(f.node)
	w.frames = w.frames[:len(w.frames)-1]
	w.choices = w.choices[:f.next]
}

// backtrack goes back to a frame's node.
func (w *window[M]) backtrack(f windowFrame[M]) {
	for len(w.path) > int(f.path) {
		o := w.path[len(w.path)-1]
		w.path = w.path[:len(w.path)-1]
		w.spec.undid(o)
	}
	w.at = f.node
	w.retreat()
}
