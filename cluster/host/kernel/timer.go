package kernel

import "time"

// Event is something that happens inside the kernel. Fire must not park.
type Event interface{ Fire() }

// Func is a function as an Event.
type Func func()

// Fire calls the function.
func (f Func) Fire() { f() }

// Timer is an event at a time; the zero value is not set. Timers of one instant
// fire in the order in which they were set.
type Timer struct {
	ev   Event
	when time.Duration
	seq  uint64
	pos  int // in the heap, from 1; 0 if not there
}

func (t *Timer) set() bool { return t.pos > 0 }

// After fires ev in d from now. It is called inside the kernel.
func (k *Kernel) After(d time.Duration, ev Event) *Timer {
	return k.At(k.clockNow()+max(d, 0), ev)
}

// At fires ev at a time, or as soon as it can if that has passed.
func (k *Kernel) At(at time.Duration, ev Event) *Timer {
	t := &Timer{ev: ev}
	k.schedule(t, at)
	return t
}

// Set sets a timer that is embedded in something, and not set now.
func (k *Kernel) Set(t *Timer, at time.Duration, ev Event) {
	t.ev = ev
	k.schedule(t, at)
}

// Cancel takes a timer back; it reports whether the timer had not fired. A nil
// timer is fine.
func (k *Kernel) Cancel(t *Timer) bool {
	if t == nil || !t.set() {
		return false
	}
	k.timers.remove(t.pos - 1)
	return true
}

// clockNow is the time from which timers count.
func (k *Kernel) clockNow() time.Duration {
	if k.virtual {
		return k.now
	}
	return k.cfg.Clock()
}

func (k *Kernel) schedule(t *Timer, at time.Duration) {
	k.lastID++
	t.when, t.seq = at, k.lastID
	k.timers.push(t)
}

// heap is a 4-ary heap of timers by (when, seq).
type heap []*Timer

func before(a, b *Timer) bool {
	return a.when < b.when || a.when == b.when && a.seq < b.seq
}

func (h *heap) push(t *Timer) {
	*h = append(*h, t)
	h.up(len(*h)-1, t)
}

func (h *heap) pop() *Timer {
	t := (*h)[0]
	h.remove(0)
	return t
}

func (h *heap) remove(i int) {
	old := *h
	gone, last := old[i], old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	gone.pos = 0
	if gone == last {
		return
	}
	if i > 0 && before(last, (*h)[(i-1)/4]) {
		h.up(i, last)
	} else {
		h.down(i, last)
	}
}

func (h *heap) up(i int, t *Timer) {
	s := *h
	for i > 0 {
		parent := (i - 1) / 4
		if !before(t, s[parent]) {
			break
		}
		s[i] = s[parent]
		s[i].pos = i + 1
		i = parent
	}
	s[i] = t
	t.pos = i + 1
}

func (h *heap) down(i int, t *Timer) {
	s := *h
	for {
		first := 4*i + 1
		if first >= len(s) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(s)); c++ {
			if before(s[c], s[least]) {
				least = c
			}
		}
		if !before(s[least], t) {
			break
		}
		s[i] = s[least]
		s[i].pos = i + 1
		i = least
	}
	s[i] = t
	t.pos = i + 1
}
