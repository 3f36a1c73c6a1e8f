package real

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// The reasons for which the gate ends a connection or refuses a dial.
var (
	errZKCut    = errors.New("zookeeper connection cut by the gate")
	errZKHealed = errors.New("zookeeper connection cut as a hold ended")
	errZKShut   = errors.New("zookeeper gate is shut")
	errZKRefuse = errors.New("zookeeper dial refused by the gate")
	errZKStrict = errors.New("request overtook the renewal of watches")
)

// zkGate is everything between one node and ZooKeeper, across the node's
// incarnations and sessions: the rules in force, and the door of each session.
// It offers what TCP can do and nothing else (docs/protocol.md 4): inside one stream no
// frame is dropped, doubled or overtaken.
//
// Lock order: a door's lock comes before the gate's. Taps, observers and posts
// are called under neither, so they may set and end rules.
type zkGate struct {
	node    cluster.NodeID
	observe func(history.Event)
	log     *zap.Logger
	outbox  zkOutbox
	connect func(network, address string, timeout time.Duration) (net.Conn, error)

	mu      sync.Mutex
	rules   map[int]*zkRule
	lastID  int
	changed chan struct{} // closed, and replaced, at every change of the rules
	doors   []*zkDoor     // those not yet gone, the newest last
	closed  bool
	wg      sync.WaitGroup // goroutines of connections, calls and closings
}

// zkOutbox sends, one after the other and under no lock of the gate's, what was
// put into it under such a lock. Whoever finds it idle empties it.
type zkOutbox struct {
	mu    sync.Mutex
	items []func()
	busy  bool
}

func (o *zkOutbox) put(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = append(o.items, f)
}

func (o *zkOutbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy {
		return
	}
	o.busy = true
	for len(o.items) > 0 {
		items := o.items
		o.items = nil
		o.mu.Unlock()
		for _, f := range items {
			f()
		}
		o.mu.Lock()
	}
	o.busy = false
}

// report puts an event into the outbox.
func (g *zkGate) report(e history.Event) { g.outbox.put(func() { g.observe(e) }) }

// zkRule is one lease. The zero value of a field does nothing.
type zkRule struct {
	hold, holdDials, refuse bool
	delay, watchDelay       time.Duration
	before, after           bool
	op                      string // of before and after
	tap                     func(host.ZKPassing)
	timer                   *time.Timer
	ending                  bool // its Undo has begun
}

// newZKGate returns an open gate. Observe must be callable from any goroutine.
func newZKGate(node cluster.NodeID, observe func(history.Event), log *zap.Logger) *zkGate {
	return &zkGate{
		node: node, observe: observe, log: log, connect: net.DialTimeout,
		rules: map[int]*zkRule{}, changed: make(chan struct{}),
	}
}

// zkView is what the rules say now, until changed is closed.
type zkView struct {
	held, dialsHeld, refuse bool
	delay, watchDelay       time.Duration
	changed                 <-chan struct{}
}

// view adds the rules up; of delays the longest counts.
func (g *zkGate) view() zkView {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := zkView{changed: g.changed}
	for _, r := range g.rules {
		v.held = v.held || r.hold
		v.dialsHeld = v.dialsHeld || r.hold || r.holdDials
		v.refuse = v.refuse || r.refuse
		v.delay = max(v.delay, r.delay)
		v.watchDelay = max(v.watchDelay, r.watchDelay)
	}
	return v
}

// wait tells how long a frame that arrived at the gate at the given time has
// to stay. Held frames wait for a change of the rules.
func (v zkView) wait(arrived, now time.Time, watch bool) (d time.Duration, held bool) {
	due := arrived.Add(v.delay)
	if watch {
		due = due.Add(v.watchDelay)
	}
	return due.Sub(now), v.held
}

// add sets a rule. A lease of zero or less lasts until its Undo.
func (g *zkGate) add(r *zkRule, lease time.Duration) host.Undo {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return func() {}
	}
	g.lastID++
	id := g.lastID
	g.rules[id] = r
	if lease > 0 {
		r.timer = time.AfterFunc(lease, func() { g.remove(id) })
	}
	g.bump()
	return func() { g.remove(id) }
}

// remove ends a rule. When the last hold ends the connections break: their
// peers have long waited for bytes that never came. They break while the hold
// still stands, so that nothing held can slip out.
func (g *zkGate) remove(id int) {
	g.mu.Lock()
	r := g.rules[id]
	if r == nil || r.ending {
		g.mu.Unlock()
		return
	}
	r.ending = true
	if r.hold && !g.anyHold() {
		doors := slices.Clone(g.doors)
		g.mu.Unlock()
		for _, d := range doors {
			d.breakAll(errZKHealed)
		}
		g.mu.Lock()
	}
	g.drop(id)
	g.bump()
	g.mu.Unlock()
}

func (g *zkGate) drop(id int) {
	if r := g.rules[id]; r != nil && r.timer != nil {
		r.timer.Stop()
	}
	delete(g.rules, id)
}

// anyHold reports whether a hold stands that is not about to end.
func (g *zkGate) anyHold() bool {
	for _, r := range g.rules {
		if r.hold && !r.ending {
			return true
		}
	}
	return false
}

func (g *zkGate) bump() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// takeCut consumes the oldest cut that matches, and reports whether there was
// one. Write tells whether op changes anything: "" matches those alone.
func (g *zkGate) takeCut(before bool, op string, write bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	best := 0
	for id, r := range g.rules {
		if (before && r.before || !before && r.after) && (r.op == op || r.op == "" && write) && (best == 0 || id < best) {
			best = id
		}
	}
	if best == 0 {
		return false
	}
	g.drop(best)
	return true
}

// tap shows a passing request or reply to every tap, the oldest first.
func (g *zkGate) tap(p host.ZKPassing) {
	g.mu.Lock()
	var ids []int
	for id, r := range g.rules {
		if r.tap != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	taps := make([]func(host.ZKPassing), 0, len(ids))
	for _, id := range ids {
		taps = append(taps, g.rules[id].tap)
	}
	g.mu.Unlock()
	p.Node = g.node
	for _, f := range taps {
		f(p)
	}
}

// awaitDial parks a goroutine until the rules let it dial.
func (g *zkGate) awaitDial(d *zkDoor) error {
	for {
		v := g.view()
		switch {
		case d.isShut():
			return errZKShut
		case v.refuse:
			return errZKRefuse
		case !v.dialsHeld:
			return nil
		}
		select {
		case <-v.changed:
		case <-d.shutC:
		}
	}
}

// enter adds a door; false if the gate is closed.
func (g *zkGate) enter(d *zkDoor) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.doors = append(g.doors, d)
	return true
}

func (g *zkGate) leave(d *zkDoor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doors = slices.DeleteFunc(g.doors, func(o *zkDoor) bool { return o == d })
}

// spawn runs f on a goroutine that close waits for; false, and nothing runs,
// once the gate is closed.
func (g *zkGate) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(f)
	return true
}

// current is the door of the present session, or nil.
func (g *zkGate) current() *zkDoor {
	g.mu.Lock()
	doors := slices.Clone(g.doors)
	g.mu.Unlock()
	for _, d := range slices.Backward(doors) {
		if id, live := d.identity(); live && id != 0 {
			return d
		}
	}
	return nil
}

// kill shuts the doors of a dying incarnation at once: from here on none of its
// bytes reach ZooKeeper. What its goroutines still do ends in close.
func (g *zkGate) kill() {
	g.mu.Lock()
	doors := slices.Clone(g.doors)
	g.mu.Unlock()
	for _, d := range doors {
		d.kill()
	}
}

// shut ends every session and lease for good.
func (g *zkGate) shut() {
	g.kill()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for id := range g.rules {
		g.drop(id)
	}
	g.bump()
}

// await waits until no goroutine of the gate is left, or ctx ends.
func (g *zkGate) await(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		g.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for zookeeper goroutines of %s: %w", g.node, ctx.Err())
	}
}
