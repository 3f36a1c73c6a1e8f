package kernel

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	traceSeed  = 14695981039346656037
	tracePrime = 1099511628211
)

// note mixes a step into the trace.
func (k *Kernel) note(kind, a, b uint64) {
	if !k.cfg.Trace {
		return
	}
	h := k.trace
	h = (h ^ kind) * tracePrime
	h = (h ^ a) * tracePrime
	h = (h ^ b) * tracePrime
	k.trace = h ^ h>>29
}

// Note mixes bytes into the trace: an observation, a choice made elsewhere.
func (k *Kernel) Note(b []byte) {
	if !k.cfg.Trace {
		return
	}
	h := k.trace
	for _, c := range b {
		h = (h ^ uint64(c)) * tracePrime
	}
	k.trace = h ^ h>>29
}

// TraceHash sums up everything that has happened: every task that ran, with
// the choice that there was, every timer, every Note. Two runs of one seed
// must agree in it; that is sharper than comparing histories.
func (k *Kernel) TraceHash() uint64 { return k.trace }

// Report names every task and what it waits for.
func (k *Kernel) Report() string {
	var b strings.Builder
	for _, g := range k.groups {
		state := ""
		if g.paused {
			state = ", paused"
		}
		fmt.Fprintf(&b, "%s (%d tasks%s)\n", g.name, g.size, state)
		for t := g.head; t != nil; t = t.next {
			fmt.Fprintf(&b, "  %s: %s\n", t.name, t.state())
		}
	}
	return b.String()
}

func (t *task) state() string {
	switch {
	case t == t.k.current:
		return "running"
	case t.co == nil:
		return "not started"
	case t.cond == nil && t.waits == nil && t.slot == nil && !t.timer.set():
		return "ready"
	}
	s := t.what
	if t.whatArg != "" {
		s += " " + t.whatArg
	}
	if t.waits != nil && t.waits.hasDeadline {
		s += fmt.Sprintf(", until %v", t.waits.deadline)
	}
	if t.timer.set() {
		s += fmt.Sprintf(", until %v", t.timer.when)
	}
	return s
}

// Stream is the random stream of a name under a seed. Streams of different
// names are independent, so that a draw more in one does not move another.
func Stream(seed uint64, name string) *rand.Rand {
	h := uint64(traceSeed)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * tracePrime
	}
	return rand.New(rand.NewPCG(mix(seed^h), mix(h+seed*0x9e3779b97f4a7c15)))
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
