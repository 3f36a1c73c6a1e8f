package node

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/gate"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
)

// port is a node's place in the network. It outlives incarnations, and belongs
// to its kernel's goroutine.
type port struct {
	core         *Core
	id           cluster.NodeID
	k            *kernel.Kernel
	links        map[cluster.NodeID]*link // outgoing
	rand         *rand.Rand               // latencies to nobody
	proc         *Process                 // nil while down
	incarnations int
	skew         *skew // nil: the clock is right
	disk         *disk
	spare        *call   // those that are over, linked by next
	sending      []*link // those that hold something, in the order in which they began
	look         *kernel.Timer
	lookAt       time.Duration // when look fires; no lease that holds something ends before
	edits        uint64        // of the gate's rules, at the last look
}

// link is one direction between two nodes.
type link struct {
	from *port
	to   *port
	rand *rand.Rand    // latencies
	dice *rand.Rand    // what the gate draws, apart, so that a rule more moves nothing else
	last time.Duration // arrival of the latest message: the next is not earlier
	held []*call
}

func (p *port) link(to *port) *link {
	l := p.links[to.id]
	if l == nil {
		name := string(p.id) + "/" + string(to.id)
		l = &link{from: p, to: to, rand: p.core.stream("network/" + name), dice: p.core.stream("gate/" + name)}
		p.links[to.id] = l
	}
	return l
}

// latency draws that of one hop.
func (c *Core) latency(r *rand.Rand) time.Duration {
	d := c.cfg.Latency
	if j := c.cfg.Jitter; j > 0 {
		d += time.Duration(r.Int64N(int64(j)))
	}
	if c.cfg.HeavyTail && r.IntN(20) == 0 {
		d += time.Millisecond << min(bits.TrailingZeros64(r.Uint64()), 10)
	}
	return d
}

func (l *link) latency() time.Duration { return l.from.core.latency(l.rand) }

// send takes a request or a reply through the gate and puts it on its way.
func (l *link) send(c *call, now time.Duration, quiet bool) {
	g := l.from.core.gate
	if g.Open() && len(l.held) == 0 {
		l.carry(c, now, gate.Verdict{})
		return
	}
	l.from.release(now)
	p := c.passing(now)
	if !quiet {
		g.Listen(p)
	}
	v := g.Judge(p, l.dice)
	switch {
	case v.Refuse:
		c.err = host.ErrUnreachable
		c.reply = true
		l.from.k.Set(&c.timer, now+l.latency(), c)
	case v.Drop:
		c.lost()
	case v.HeldUntil > 0:
		l.hold(c, v)
	default:
		l.carry(c, now, v)
	}
}

// carry puts a message on its way to the other end.
func (l *link) carry(c *call, now time.Duration, v gate.Verdict) {
	at := now + l.latency() + v.Delay
	if !v.Reorder {
		at = max(at, l.last)
		l.last = at
	}
	if v.Duplicate {
		twin := c.twin()
		l.deliver(c, at, now)
		l.deliver(twin, max(at, now+l.latency()+v.Delay), now)
		return
	}
	l.deliver(c, at, now)
}

func (l *link) deliver(c *call, at, now time.Duration) {
	switch {
	case l.to.k == l.from.k:
		l.to.k.Set(&c.timer, at, c)
	case at > now:
		l.to.k.PostSet(&c.timer, at, c)
	default:
		l.to.k.Post(c)
	}
}

// hold keeps a message until the rules let it go on, in order.
func (l *link) hold(c *call, v gate.Verdict) {
	c.verdict = v
	if len(l.held) == 0 {
		l.from.sending = append(l.from.sending, l)
	}
	l.held = append(l.held, c)
	l.from.lookBy(v.HeldUntil)
}

// lookBy has release called at a time, or earlier.
func (p *port) lookBy(at time.Duration) {
	if p.look != nil && p.lookAt <= at {
		return
	}
	p.k.Cancel(p.look)
	p.lookAt = at
	p.look = p.k.At(at, kernel.Func(func() { p.release(p.core.cfg.Now()) }))
}

// reconsider looks at what is held after the rules have changed.
func (p *port) reconsider() { p.release(p.core.cfg.Now()) }

// release sends on what is held no longer. Between the changes of the rules and
// the ends of leases it has nothing to do.
func (p *port) release(now time.Duration) {
	edits := p.core.gate.Edits()
	if len(p.sending) == 0 || edits == p.edits && now < p.lookAt {
		return
	}
	p.edits = edits
	p.k.Cancel(p.look)
	p.look = nil
	still := p.sending[:0]
	for _, l := range p.sending {
		if l.release(now) {
			still = append(still, l)
		}
	}
	clear(p.sending[len(still):])
	p.sending = still
}

// release sends on what the link holds no longer, in order, and reports
// whether anything is left.
func (l *link) release(now time.Duration) bool {
	kept := l.held[:0]
	for _, c := range l.held {
		if until := l.from.core.gate.HeldUntil(c.passing(now)); until > 0 {
			l.from.lookBy(until)
			kept = append(kept, c)
			continue
		}
		l.carry(c, now, c.verdict)
	}
	clear(l.held[len(kept):])
	l.held = kept
	return len(kept) > 0
}
