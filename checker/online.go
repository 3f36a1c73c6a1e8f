package checker

// onlineRegister is the zones of zones.go while the history is still growing: it
// is told of calls and returns in their order, and names a violation at the very
// return after which no linearization exists. No checker can be earlier.
//
// It remembers the clusters that a later operation can still conflict with. Let L
// be the oldest open call. A pair of clusters conflicts when f(A) < s(B) and
// f(B) < s(A); the last of the four numbers to become known is an s, and every
// change of an s is checked against all others known, so none is missed. Of the
// clusters with f < L only the two largest s of different values matter: whatever
// returns later was called at or after L. A value is forgotten as soon as
// another cluster B with f(B) < L has s(B) > f(v), because a later read of v has a
// call >= L > f(B) and would conflict with B: to see it again is a violation.
//
// So memory depends on what is open, and on crashed writes that nobody has seen,
// not on the length of the history. Writes must be unique: a value that was
// forgotten cannot be recognised when it is written again.
type onlineRegister[V comparable] struct {
	clock int64
	live  map[V]int32 // values that a read may still see, by slot
	slots []cluster[V]
	free  []int32
	// Open calls, oldest first; closed ones leave when they come to the front.
	calls []openCall
	base  int64 // number of calls[0]
	head  int
	// recent are the clusters with f >= L in order of f; older ones are folded.
	recent []bounds
	folded [2]bounds // the two largest s among the folded, of different values
	byF    []int32   // slots of seen live values in order of f
	next   uint32
}

// bounds are a cluster's f and s; they outlive the value.
type bounds struct {
	f, s int64
	id   uint32 // names the cluster; 0 for none
}

// cluster is a live value.
type cluster[V comparable] struct {
	value V
	bounds
	write int64 // call of its write
	used  bool
	seen  bool // f is known
	old   bool // folded
}

type openCall struct {
	at     int64
	closed bool
}

// callID numbers the calls of one register.
type callID int64

func newOnlineRegister[V comparable](initial V) *onlineRegister[V] {
	r := &onlineRegister[V]{live: map[V]int32{}, clock: 1}
	slot := r.insert(initial, 0)
	c := &r.slots[slot]
	c.f, c.s, c.seen, c.old = 0, -1, true, true // written before everything
	r.folded[0] = c.bounds
	r.byF = append(r.byF, slot)
	return r
}

func (r *onlineRegister[V]) insert(value V, call int64) int32 {
	var slot int32
	if n := len(r.free); n > 0 {
		slot, r.free = r.free[n-1], r.free[:n-1]
	} else {
		slot = int32(len(r.slots))
		r.slots = append(r.slots, cluster[V]{})
	}
	r.next++
	r.slots[slot] = cluster[V]{value: value, bounds: bounds{id: r.next, s: -1}, write: call, used: true}
	r.live[value] = slot
	return slot
}

func (r *onlineRegister[V]) forget(slot int32) {
	c := &r.slots[slot]
	delete(r.live, c.value)
	var zero V
	c.value, c.used = zero, false
	r.free = append(r.free, slot)
}

func (r *onlineRegister[V]) call() callID {
	r.calls = append(r.calls, openCall{at: r.clock})
	r.clock++
	return callID(r.base + int64(len(r.calls)) - 1)
}

// callRead opens a read.
func (r *onlineRegister[V]) callRead() callID { return r.call() }

// callWrite opens a write; false if the value is still known, so that the writes
// are not unique.
func (r *onlineRegister[V]) callWrite(value V) (callID, bool) {
	if _, known := r.live[value]; known {
		return r.call(), false
	}
	r.insert(value, r.clock)
	return r.call(), true
}

// drop closes a call that says nothing: a read that failed, or whose outcome is
// unknown, and a write of unknown outcome, whose value stays.
func (r *onlineRegister[V]) drop(id callID) { r.close(id) }

// refuse closes a write that did not happen; false if somebody has seen it.
func (r *onlineRegister[V]) refuse(id callID, value V) bool {
	r.close(id)
	slot, known := r.live[value]
	if known && !r.slots[slot].seen {
		r.forget(slot)
		return true
	}
	return false
}

// done closes a read of value, or a write of it, that ended well; false if no
// linearization is left.
func (r *onlineRegister[V]) done(id callID, value V) bool {
	now := r.clock
	r.clock++
	call := r.calls[int64(id)-r.base].at
	slot, known := r.live[value]
	if !known {
		return false // never written, or overwritten for good before the call
	}
	ok := true
	c := &r.slots[slot]
	switch {
	case !c.seen:
		// Everybody's s is below now: the first return cannot conflict.
		c.f, c.s, c.seen = now, max(call, c.write), true
		r.recent = append(r.recent, c.bounds)
		r.byF = append(r.byF, slot)
	case call > c.s:
		ok = !r.conflict(c.bounds, call)
		c.s = call
		r.raise(c)
	}
	r.close(id)
	return ok
}

// conflict looks for another cluster with f below the new s and s above c's f.
func (r *onlineRegister[V]) conflict(c bounds, s int64) bool {
	for _, b := range r.folded {
		if b.id != 0 && b.id != c.id && b.s > c.f {
			return true
		}
	}
	for _, b := range r.recent {
		if b.f >= s {
			break
		}
		if b.id != c.id && b.s > c.f {
			return true
		}
	}
	return false
}

// raise writes a cluster's new s to where it is remembered.
func (r *onlineRegister[V]) raise(c *cluster[V]) {
	if c.old {
		r.fold(c.bounds)
		return
	}
	low, high := 0, len(r.recent)
	for low < high {
		if mid := (low + high) / 2; r.recent[mid].f < c.f {
			low = mid + 1
		} else {
			high = mid
		}
	}
	r.recent[low].s = c.s
}

// fold keeps the two largest s of different clusters.
func (r *onlineRegister[V]) fold(b bounds) {
	first, second := &r.folded[0], &r.folded[1]
	switch {
	case first.id == b.id:
		first.s = max(first.s, b.s)
	case first.id == 0 || b.s > first.s:
		*first, *second = b, *first
	case second.id == b.id:
		second.s = max(second.s, b.s)
	case second.id == 0 || b.s > second.s:
		*second = b
	}
}

// close ends a call; when the oldest open call moves on, clusters are folded and
// values forgotten.
func (r *onlineRegister[V]) close(id callID) {
	r.calls[int64(id)-r.base].closed = true
	if int(int64(id)-r.base) != r.head {
		return
	}
	for r.head < len(r.calls) && r.calls[r.head].closed {
		r.head++
	}
	oldest := r.clock
	if r.head < len(r.calls) {
		oldest = r.calls[r.head].at
	}
	if r.head > 64 && r.head > len(r.calls)/2 {
		n := copy(r.calls, r.calls[r.head:])
		r.base += int64(r.head)
		r.calls, r.head = r.calls[:n], 0
	}
	n := 0
	for n < len(r.recent) && r.recent[n].f < oldest {
		r.fold(r.recent[n])
		n++
	}
	if n > 0 {
		r.recent = r.recent[:copy(r.recent, r.recent[n:])]
	}
	r.evict(oldest)
}

// evict forgets values in the order of f. The cluster with the largest s cannot
// be told to go by itself, so it is stepped over.
func (r *onlineRegister[V]) evict(oldest int64) {
	kept, i := 0, 0
	for ; i < len(r.byF); i++ {
		slot := r.byF[i]
		c := &r.slots[slot]
		if c.f < oldest {
			c.old = true
		}
		top := r.folded[0]
		if top.id == c.id {
			top = r.folded[1]
		}
		if top.id != 0 && top.s > c.f {
			r.forget(slot)
			continue
		}
		r.byF[kept] = slot
		kept++
		if r.folded[0].id != c.id && c.f >= oldest {
			i++
			break
		}
	}
	if kept < i {
		r.byF = r.byF[:kept+copy(r.byF[kept:], r.byF[i:])]
	}
}

// size is how many values and clusters are remembered.
func (r *onlineRegister[V]) size() int { return len(r.live) + len(r.recent) + len(r.calls) }
