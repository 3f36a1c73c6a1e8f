package node

import (
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
	rand         *rand.Rand               // latencies, and what gates draw
	proc         *Process                 // nil while down
	incarnations int
	skew         time.Duration
	disk         *disk
	sending      []*link // those that hold something, in the order in which they began
}

// link is one direction between two nodes.
type link struct {
	from *port
	to   *port
	last time.Duration // arrival of the latest message: the next is not earlier
	held []*call
}

func (p *port) link(to *port) *link {
	l := p.links[to.id]
	if l == nil {
		l = &link{from: p, to: to}
		p.links[to.id] = l
	}
	return l
}

func (p *port) latency() time.Duration {
	d := p.core.cfg.Latency
	if j := p.core.cfg.Jitter; j > 0 {
		d += time.Duration(p.rand.Int64N(int64(j)))
	}
	return d
}

// send takes a request or a reply through the gate and puts it on its way.
func (l *link) send(c *call, now time.Duration, quiet bool) {
	g := l.from.core.gate
	if g.Open() && len(l.held) == 0 {
		l.carry(c, now, gate.Verdict{})
		return
	}
	l.from.release()
	p := c.passing(now)
	if !quiet {
		g.Listen(p)
	}
	v := g.Judge(p, l.from.rand)
	switch {
	case v.Refuse:
		c.err = host.ErrUnreachable
		c.reply = true
		l.from.k.At(now+l.from.latency(), c)
	case v.Drop:
		c.lost()
	case v.HeldUntil > 0:
		l.hold(c, v, now)
	default:
		l.carry(c, now, v)
	}
}

// carry puts a message on its way to the other end.
func (l *link) carry(c *call, now time.Duration, v gate.Verdict) {
	at := now + l.from.latency() + v.Delay
	if !v.Reorder {
		at = max(at, l.last)
		l.last = at
	}
	if v.Duplicate {
		twin := c.twin()
		l.deliver(c, at, now)
		l.deliver(twin, max(at, now+l.from.latency()+v.Delay), now)
		return
	}
	l.deliver(c, at, now)
}

func (l *link) deliver(c *call, at, now time.Duration) {
	switch {
	case l.to.k == l.from.k:
		l.to.k.At(at, c)
	case at > now:
		l.to.k.PostAt(at, c)
	default:
		l.to.k.Post(c)
	}
}

// hold keeps a message until the rules let it go on, in order.
func (l *link) hold(c *call, v gate.Verdict, now time.Duration) {
	c.verdict = v
	if len(l.held) == 0 {
		l.from.sending = append(l.from.sending, l)
	}
	l.held = append(l.held, c)
	l.from.k.At(max(v.HeldUntil, now), kernel.Func(l.from.release))
}

// release sends on what is held no longer.
func (p *port) release() {
	now := p.core.cfg.Now()
	still := p.sending[:0]
	for _, l := range p.sending {
		kept := l.held[:0]
		for _, c := range l.held {
			if until := p.core.gate.HeldUntil(c.passing(now)); until > 0 {
				if until > c.verdict.HeldUntil {
					c.verdict.HeldUntil = until
					p.k.At(until, kernel.Func(p.release))
				}
				kept = append(kept, c)
				continue
			}
			c.verdict.HeldUntil = 0
			l.carry(c, now, c.verdict)
		}
		clear(l.held[len(kept):])
		l.held = kept
		if len(kept) > 0 {
			still = append(still, l)
		}
	}
	clear(p.sending[len(still):])
	p.sending = still
}
