package sim

import (
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// zkRetry is what the library waits before every try to connect but the first
// after a loss.
const zkRetry = time.Second

// zkClient is one session, seen from its client: the library of a real node,
// with its faults tamed (docs/protocol.md 4).
//
//	Disconnected ─granted─▶ Connected ─stream breaks─▶ Disconnected ─▶ …
//	      └─ the server knows the session no more ─▶ Expired
//
// Expired and Closed are final.
type zkClient struct {
	zk      *zkSim
	gate    *zkGate
	group   *kernel.Group
	changed *kernel.Cond
	state   host.SessionState
	asked   time.Duration // the session time-out asked for
	agreed  time.Duration // and granted
	id      int64
	passwd  []byte
	leaving bool // a close in good order has begun
	dead    bool // the process was killed

	lastZxid int64
	tries    int  // to connect since the last success
	waiting  bool // for the gate to let it dial
	link     *zkLink
	xid      int32
	pending  []*zkCall // sent, in order: replies come in that order
	watches  zkWatches

	retry, shake, ping, read *kernel.Timer
	lastRead                 time.Duration
}

// zkCall is a request of the node that awaits its answer.
type zkCall struct {
	op       jute.OpCode
	req      jute.Record
	watch    *zkWatch
	complete func(any) // with a zkAnswer
}

// zkAnswer is how a call ended.
type zkAnswer struct {
	body jute.Record
	zxid int64
	code jute.Code
	err  error
}

func zkFinal(s host.SessionState) bool { return s == host.Expired || s == host.Closed }

// over: nothing more is to be done for this session.
func (c *zkClient) over() bool { return c.dead || zkFinal(c.state) }

// connect tries to get a connection: at once, or a second after a failure.
func (c *zkClient) connect() {
	c.tries++
	if c.tries == 1 {
		c.dial()
		return
	}
	c.retry = c.zk.k.After(zkRetry, kernel.Func(c.dial))
}

// dial opens a connection when the gate lets it: one round trip, then the
// greeting.
func (c *zkClient) dial() {
	c.waiting = false
	if c.over() {
		return
	}
	v := c.gate.view()
	if v.dialsHeld {
		c.waiting = true
		return
	}
	if v.refuse {
		c.connect()
		return
	}
	c.retry = c.zk.k.After(2*c.zk.hop(), kernel.Func(func() {
		l := &zkLink{zk: c.zk, gate: c.gate, client: c}
		if c.over() {
			return
		}
		if c.gate.view().dialsHeld {
			c.waiting = true
			return
		}
		if !c.zk.server.accept(l) {
			c.connect()
			return
		}
		c.link = l
		patience := 10 * c.readTimeout()
		c.shake = c.zk.k.After(patience, kernel.Func(l.fail))
		l.send(&zkFrame{kind: zkGreeting, connect: &jute.ConnectRequest{
			LastZxidSeen: c.lastZxid, TimeOut: int32(c.asked.Milliseconds()), SessionID: c.id, Passwd: c.passwd,
		}})
	}))
}

// readTimeout is how long the client waits for bytes: two thirds of the session
// time-out. It pings in half that time.
func (c *zkClient) readTimeout() time.Duration {
	if c.agreed > 0 {
		return c.agreed * 2 / 3
	}
	return c.asked * 2 / 3
}

// receive takes a frame of the server.
func (c *zkClient) receive(l *zkLink, f *zkFrame) {
	if c.dead || c.link != l {
		return
	}
	c.lastRead = c.zk.k.Now()
	switch f.kind {
	case zkGreeting:
		c.greeted(l, f.greeted)
	case zkRequest:
		c.answered(f)
	case zkEvent:
		c.watches.fire(host.WatchType(f.event.Type), f.event.Path)
	case zkEOF:
		l.fail()
	case zkPing, zkInjected:
	}
}

func (c *zkClient) greeted(l *zkLink, r *jute.ConnectResponse) {
	c.zk.k.Cancel(c.shake)
	if r.SessionID == 0 {
		l.close()
		c.finish(host.Expired)
		return
	}
	c.id, c.passwd = r.SessionID, r.Passwd
	c.agreed = time.Duration(r.TimeOut) * time.Millisecond
	c.tries = 0
	c.ping = c.zk.k.After(c.readTimeout()/2, kernel.Func(func() { c.sendPing(l) }))
	c.read = c.zk.k.After(c.readTimeout(), kernel.Func(func() { c.checkRead(l) }))
	if req := c.watches.renewal(c.lastZxid); req != nil {
		c.send(&zkCall{op: jute.OpSetWatches, req: req, complete: func(any) {}})
	}
	c.setState(host.Connected)
}

func (c *zkClient) sendPing(l *zkLink) {
	if c.link != l || l.broken {
		return
	}
	c.ping = c.zk.k.After(c.readTimeout()/2, kernel.Func(func() { c.sendPing(l) }))
	l.send(&zkFrame{kind: zkPing, xid: jute.XidPing, op: jute.OpPing})
}

// checkRead breaks a connection on which nothing was read for too long.
func (c *zkClient) checkRead(l *zkLink) {
	if c.link != l || l.broken {
		return
	}
	if until := c.lastRead + c.readTimeout(); until > c.zk.k.Now() {
		c.read = c.zk.k.At(until, kernel.Func(func() { c.checkRead(l) }))
		return
	}
	l.fail()
}

// send puts a request on the stream.
func (c *zkClient) send(call *zkCall) {
	c.xid++
	c.pending = append(c.pending, call)
	c.link.send(&zkFrame{kind: zkRequest, xid: c.xid, op: call.op, req: call.req})
}

// answered takes a reply: those of one stream come in the order of the
// requests. A watch is armed as its reply is read, so no event from before it
// can fire it.
func (c *zkClient) answered(f *zkFrame) {
	call := c.pending[0]
	c.pending = c.pending[1:]
	if f.reply.Header.Zxid > 0 {
		c.lastZxid = f.reply.Header.Zxid
	}
	if call.watch != nil {
		c.watches.arm(call.watch, call.op, f.code)
	}
	call.complete(zkAnswer{body: f.reply.Body, zxid: f.reply.Header.Zxid, code: f.code, err: zkError(f.code)})
}

// lost takes note that the connection is gone: what was sent on it is unknown.
func (c *zkClient) lost(l *zkLink) {
	if c.link != l {
		return
	}
	c.link = nil
	c.stopTimers()
	if !c.leaving {
		c.setState(host.Disconnected)
	}
	c.failPending()
	if !c.over() && !c.leaving {
		c.connect()
	}
}

func (c *zkClient) failPending() {
	pending := c.pending
	c.pending = nil
	for _, call := range pending {
		call.complete(zkAnswer{err: host.ErrConnectionLoss})
	}
}

func (c *zkClient) stopTimers() {
	for _, t := range []*kernel.Timer{c.retry, c.shake, c.ping, c.read} {
		c.zk.k.Cancel(t)
	}
}

// setState moves to a state, reports it, and tells the node. Final states stay.
func (c *zkClient) setState(s host.SessionState) {
	if c.over() || s == c.state {
		return
	}
	c.state = s
	if c.id != 0 {
		c.zk.env.Observe(c.gate.node, history.Session{Node: string(c.gate.node), ID: c.id, State: zkStateName(s)})
	}
	if zkFinal(s) {
		c.watches.fireAll()
	}
	c.changed.Broadcast()
}

func zkStateName(s host.SessionState) string {
	switch s {
	case host.Connected:
		return history.SessionConnected
	case host.Expired:
		return history.SessionExpired
	case host.Closed:
		return history.SessionClosed
	default:
		return history.SessionSuspended
	}
}

// finish ends the session for this client.
func (c *zkClient) finish(s host.SessionState) {
	l := c.link
	c.link = nil
	if l != nil {
		l.close()
	}
	c.stopTimers()
	c.setState(s)
	c.failPending()
	c.leave()
}

func (c *zkClient) leave() {
	c.gate.clients = slices.DeleteFunc(c.gate.clients, func(o *zkClient) bool { return o == c })
}

// kill is the end of the process: its sockets are closed, and the server keeps
// the session until it times out.
func (c *zkClient) kill() {
	c.dead = true
	c.stopTimers()
	if c.link != nil {
		c.link.close()
		c.link = nil
	}
	c.leave()
}
