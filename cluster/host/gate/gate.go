// Package gate decides what happens to a message on its way between nodes. It
// holds the rules in force, each with a lease that the gate itself keeps, and
// the taps that triggers listen at. Both worlds share it; it knows no clock
// but the times that it is given.
package gate

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

// Gate is the rules and taps of one world's network; safe for any goroutine.
type Gate struct {
	now     func() time.Duration
	changed func()

	mu    sync.Mutex
	next  uint64
	rules atomic.Pointer[[]*rule]
	edits atomic.Uint64
	taps  atomic.Pointer[[]*tap]
}

type rule struct {
	host.Rule
	id    uint64
	until time.Duration
}

type tap struct {
	id uint64
	f  func(host.Passing)
}

// New returns an open gate. Changed is called after rules ended before their
// lease, so that what is held can go on; it may be nil.
func New(now func() time.Duration, changed func()) *Gate {
	if changed == nil {
		changed = func() {}
	}
	g := &Gate{now: now, changed: changed}
	g.rules.Store(&[]*rule{})
	g.taps.Store(&[]*tap{})
	return g
}

// Verdict is what the rules say of one message. The zero value lets it pass.
type Verdict struct {
	Drop      bool
	Refuse    bool
	Duplicate bool
	Reorder   bool
	Delay     time.Duration
	// HeldUntil is the end of the last lease that holds the message, 0 if none.
	// It may end earlier.
	HeldUntil time.Duration
}

// Apply sets a rule until its lease ends, or Undo.
func (g *Gate) Apply(r host.Rule, lease time.Duration) host.Undo {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.next++
	id := g.next
	rules := g.alive(now)
	rules = append(rules, &rule{Rule: clone(r), id: id, until: now + lease})
	g.store(rules)
	return func() { g.end(id) }
}

// store puts new rules in force.
func (g *Gate) store(rules []*rule) {
	g.rules.Store(&rules)
	g.edits.Add(1)
}

// Edits counts the changes of the rules, the ends of leases apart. A sender that
// sees the same number as before need not look again at what it holds.
func (g *Gate) Edits() uint64 { return g.edits.Load() }

// alive is a copy of the rules whose lease runs.
func (g *Gate) alive(now time.Duration) []*rule {
	return slices.DeleteFunc(slices.Clone(*g.rules.Load()), func(r *rule) bool { return r.until <= now })
}

func (g *Gate) end(id uint64) {
	g.mu.Lock()
	rules := g.alive(g.now())
	before := len(rules)
	rules = slices.DeleteFunc(rules, func(r *rule) bool { return r.id == id })
	g.store(rules)
	g.mu.Unlock()
	if len(rules) != before {
		g.changed()
	}
}

// Heal ends every rule.
func (g *Gate) Heal() {
	g.mu.Lock()
	g.store([]*rule{})
	g.mu.Unlock()
	g.changed()
}

// Tap calls f for every message that comes to the gate.
func (g *Gate) Tap(f func(host.Passing)) host.Undo {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	id := g.next
	taps := append(slices.Clone(*g.taps.Load()), &tap{id: id, f: f})
	g.taps.Store(&taps)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		taps := slices.DeleteFunc(slices.Clone(*g.taps.Load()), func(t *tap) bool { return t.id == id })
		g.taps.Store(&taps)
	}
}

// Open reports that no rule and no tap is set: every message passes.
func (g *Gate) Open() bool { return len(*g.rules.Load()) == 0 && len(*g.taps.Load()) == 0 }

// Listen tells the taps of a message.
func (g *Gate) Listen(p host.Passing) {
	for _, t := range *g.taps.Load() {
		t.f(p)
	}
}

// Judge adds up the rules that match a message now; the strictest wins. Draws
// come from r, and only for rules that match.
func (g *Gate) Judge(p host.Passing, r *rand.Rand) Verdict {
	var v Verdict
	rules := *g.rules.Load()
	for _, rule := range rules {
		if rule.until <= p.At || !Matches(rule.Match, p) {
			continue
		}
		v.Refuse = v.Refuse || rule.Refuse && !p.Reply
		v.Drop = v.Drop || happens(rule.Drop, r)
		v.Duplicate = v.Duplicate || happens(rule.Duplicate, r)
		v.Reorder = v.Reorder || happens(rule.Reorder, r)
		v.Delay += rule.Delay
		if rule.Jitter > 0 {
			v.Delay += time.Duration(r.Int64N(int64(rule.Jitter)))
		}
		if rule.Hold {
			v.HeldUntil = max(v.HeldUntil, rule.until)
		}
	}
	return v
}

// HeldUntil tells until when the rules in force now hold a message; 0 is not.
func (g *Gate) HeldUntil(p host.Passing) time.Duration {
	var until time.Duration
	for _, rule := range *g.rules.Load() {
		if rule.Hold && rule.until > p.At && Matches(rule.Match, p) {
			until = max(until, rule.until)
		}
	}
	return until
}

// happens draws with probability p; certain and impossible things draw nothing.
func happens(p float64, r *rand.Rand) bool {
	switch {
	case p <= 0:
		return false
	case p >= 1:
		return true
	default:
		return r.Float64() < p
	}
}

// Matches reports whether a message is one that m selects. From and To are the
// two ends of this message: a reply's From is the callee.
func Matches(m host.Match, p host.Passing) bool {
	if !m.Both && m.Replies != p.Reply {
		return false
	}
	return among(m.From, p.From) && among(m.To, p.To) &&
		(len(m.APIs) == 0 || slices.Contains(m.APIs, p.API))
}

func among(list []cluster.NodeID, id cluster.NodeID) bool {
	return len(list) == 0 || slices.Contains(list, id)
}

func clone(r host.Rule) host.Rule {
	r.Match.From = slices.Clone(r.Match.From)
	r.Match.To = slices.Clone(r.Match.To)
	r.Match.APIs = slices.Clone(r.Match.APIs)
	return r
}
