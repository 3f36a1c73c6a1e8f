package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// The errors of SessionControl.Expire.
var (
	errZKNoSession    = fmt.Errorf("node has no zookeeper session: %w", cluster.ErrNoSession)
	errZKNotConnected = fmt.Errorf("node is not connected to zookeeper: %w", cluster.ErrNoSession)
	errZKGone         = fmt.Errorf("take session over: it has expired already: %w", cluster.ErrNoSession)
	errZKBroke        = errors.New("connection broke before the session was closed")
	errZKDown         = errors.New("zookeeper is down")
)

// zkGate is everything between one node and ZooKeeper, across the node's
// incarnations and sessions: the rules in force, oldest first, and the clients.
// It offers what TCP can do and nothing else (docs/protocol.md 4).
type zkGate struct {
	zk      *zkSim
	node    cluster.NodeID
	rules   []*zkRule
	clients []*zkClient // those not yet ended, the newest last
}

// zkRule is one lease. The zero value of a field does nothing.
type zkRule struct {
	hold, holdDials, refuse bool
	delay, watchDelay       time.Duration
	before, after           bool
	op                      string // of before and after
	tap                     func(host.ZKPassing)
	ended                   bool
}

// zkView is what the rules add up to; of delays the longest counts.
type zkView struct {
	held, dialsHeld, refuse bool
	delay, watchDelay       time.Duration
}

func (g *zkGate) view() zkView {
	var v zkView
	for _, r := range g.rules {
		v.held = v.held || r.hold
		v.dialsHeld = v.dialsHeld || r.hold || r.holdDials
		v.refuse = v.refuse || r.refuse
		v.delay = max(v.delay, r.delay)
		v.watchDelay = max(v.watchDelay, r.watchDelay)
	}
	return v
}

// add sets a rule; a lease of zero or less lasts until its Undo.
func (g *zkGate) add(r *zkRule, lease time.Duration) host.Undo {
	g.rules = append(g.rules, r)
	undo := func() { g.remove(r) }
	if lease > 0 {
		g.zk.k.After(lease, kernel.Func(undo))
	}
	return undo
}

// remove ends a rule. When the last hold ends the connections break: their
// peers have long waited for bytes that never came. They break while the hold
// still stands, so that nothing held can slip out.
func (g *zkGate) remove(r *zkRule) {
	if r.ended {
		return
	}
	r.ended = true
	another := slices.ContainsFunc(g.rules, func(o *zkRule) bool { return o.hold && !o.ended })
	if r.hold && !another {
		for _, c := range slices.Clone(g.clients) {
			if c.link != nil {
				c.link.fail()
			}
		}
	}
	g.rules = slices.DeleteFunc(g.rules, func(o *zkRule) bool { return o == r })
	g.changed()
}

// changed has everything that waits at the gate look again.
func (g *zkGate) changed() {
	for _, c := range slices.Clone(g.clients) {
		if c.waiting {
			c.dial()
		}
		if c.link != nil {
			c.link.pumpOut()
		}
		if c.link != nil {
			c.link.pumpIn()
		}
	}
}

// takeCut consumes the oldest cut that matches, and reports whether there was
// one. A cut of "" matches writes alone.
func (g *zkGate) takeCut(before bool, f *zkFrame) bool {
	name := zkOpName(f.op)
	write := f.op.IsWrite() && f.op != jute.OpCloseSession
	for _, r := range g.rules {
		if (before && r.before || !before && r.after) && (r.op == name || r.op == "" && write) {
			r.ended = true // nobody waits for the end of a cut
			g.rules = slices.DeleteFunc(g.rules, func(o *zkRule) bool { return o == r })
			return true
		}
	}
	return false
}

// tap shows a passing request or reply to every tap, the oldest first.
func (g *zkGate) tap(f *zkFrame, reply bool) {
	var taps []func(host.ZKPassing)
	for _, r := range g.rules {
		if r.tap != nil {
			taps = append(taps, r.tap)
		}
	}
	if len(taps) == 0 {
		return
	}
	p := host.ZKPassing{Node: g.node, Op: zkOpName(f.op), Paths: zkPaths(f.req), Reply: reply}
	if reply {
		p.Zxid, p.Err = f.reply.Header.Zxid, int32(f.code)
		if f.code == jute.OK && f.reply.Txn.Paths != nil {
			p.Paths = f.reply.Txn.Paths
		}
	}
	for _, t := range taps {
		t(p)
	}
}

// zkPaths are the paths that a request reads or writes, guards left out.
func zkPaths(req jute.Record) []string {
	m, ok := req.(*jute.MultiRequest)
	if !ok {
		return append([]string{}, jute.Paths(req)...)
	}
	paths := []string{}
	for _, o := range m.Ops {
		if o.Op != jute.OpCheck {
			paths = append(paths, jute.Paths(o.Request)...)
		}
	}
	return paths
}

func (g *zkGate) current() *zkClient {
	for _, c := range slices.Backward(g.clients) {
		if c.id != 0 {
			return c
		}
	}
	return nil
}

// Current is the present session's id, 0 if there is none.
func (g *zkGate) Current() int64 {
	if c := g.current(); c != nil {
		return c.id
	}
	return 0
}

// Hold lets no byte pass until the lease ends; then the connections break.
func (g *zkGate) Hold(lease time.Duration) host.Undo { return g.add(&zkRule{hold: true}, lease) }

// Delay adds latency both ways.
func (g *zkGate) Delay(d, lease time.Duration) host.Undo { return g.add(&zkRule{delay: d}, lease) }

// CutBefore breaks the connection in place of sending the next such request.
func (g *zkGate) CutBefore(op string, lease time.Duration) host.Undo {
	return g.add(&zkRule{before: true, op: op}, lease)
}

// CutAfter breaks the connection in place of delivering the next such reply, if
// the server did what was asked.
func (g *zkGate) CutAfter(op string, lease time.Duration) host.Undo {
	return g.add(&zkRule{after: true, op: op}, lease)
}

// DelayWatches holds watch events back, and all that comes behind them.
func (g *zkGate) DelayWatches(d, lease time.Duration) host.Undo {
	return g.add(&zkRule{watchDelay: d}, lease)
}

// RefuseDials refuses connections, as a server that is down does.
func (g *zkGate) RefuseDials(lease time.Duration) host.Undo {
	return g.add(&zkRule{refuse: true}, lease)
}

// Tap calls f for every request and reply, inside the kernel.
func (g *zkGate) Tap(f func(host.ZKPassing)) host.Undo { return g.add(&zkRule{tap: f}, 0) }

// Expire ends the present session at the server and returns when it has.
func (g *zkGate) Expire(ctx context.Context, how host.ExpireMode) error {
	c := g.current()
	if c == nil {
		return fmt.Errorf("expire session of %s: %w", g.node, errZKNoSession)
	}
	v, err := kernel.Await(ctx, "expire session of "+string(g.node), func(complete func(any)) {
		if how == host.ByInjection {
			g.inject(c, complete)
		} else {
			g.takeOver(c, complete)
		}
	})
	if err != nil {
		return err
	}
	if err, failed := v.(error); failed {
		return fmt.Errorf("expire session of %s: %w", g.node, err)
	}
	return nil
}

// inject sends closeSession on the session's own connection. Its reply is kept
// from the client, which sees the server hang up.
func (g *zkGate) inject(c *zkClient, complete func(any)) {
	l := c.link
	if l == nil || c.state != host.Connected || l.injected != nil {
		complete(errZKNotConnected)
		return
	}
	l.injected = func(err error) {
		if err == nil {
			complete(nil)
		} else {
			complete(err)
		}
	}
	l.send(&zkFrame{kind: zkInjected, op: jute.OpCloseSession})
}

// takeOver connects with the session's id and password, which moves the session
// to the new connection, and closes it there. The node's dials wait meanwhile,
// else it takes the session back in between.
func (g *zkGate) takeOver(c *zkClient, complete func(any)) {
	s, k := g.zk.server, g.zk.k
	hold := &zkRule{holdDials: true}
	release := g.add(hold, 0)
	done := func(v any) {
		release()
		complete(v)
	}
	if c.link != nil && c.state != host.Connected {
		c.link.fail() // a dial under way must not win
	}
	k.After(g.zk.hop()*3, kernel.Func(func() {
		stranger := &zkLink{zk: g.zk, gate: g, broken: true}
		if !s.accept(stranger) {
			done(errZKDown)
			return
		}
		s.take(stranger, &zkFrame{kind: zkGreeting, connect: &jute.ConnectRequest{
			TimeOut: int32(c.agreed.Milliseconds()), SessionID: c.id, Passwd: c.passwd,
		}})
		if s.tree.SessionOf(stranger.conn) != c.id {
			done(errZKGone)
			return
		}
		k.After(g.zk.hop()*2, kernel.Func(func() {
			s.take(stranger, &zkFrame{kind: zkInjected, op: jute.OpCloseSession})
			k.After(g.zk.hop()+g.zk.cfg.Commit, kernel.Func(func() { done(nil) }))
		}))
	}))
}

var _ host.SessionControl = (*zkGate)(nil)
