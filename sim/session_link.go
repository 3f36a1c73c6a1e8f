package sim

import (
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// zkKind is what a frame is.
type zkKind uint8

const (
	zkGreeting zkKind = iota // the connect request, or the answer to it
	zkRequest                // a request, or the reply to it
	zkPing
	zkInjected // a closeSession that the gate has put into the stream
	zkEvent    // a watch event
	zkEOF      // the end of the server's stream
)

// zkFrame is a message of a stream.
type zkFrame struct {
	kind    zkKind
	at      time.Duration // arrival at the gate
	xid     int32
	op      jute.OpCode
	req     jute.Record
	connect *jute.ConnectRequest
	greeted *jute.ConnectResponse
	reply   tree.Reply
	code    jute.Code
	event   tree.Event
}

// zkLink is one connection: two streams with the gate at the client's end.
// Inside a stream nothing is lost, doubled or overtaken; a stream that breaks
// loses what is under way to its client.
//
//	client ─▶ out ─gate─▶ wire ─▶ server ─▶ wire ─▶ in ─gate─▶ client
type zkLink struct {
	zk       *zkSim
	gate     *zkGate
	client   *zkClient
	conn     tree.Conn
	broken   bool // at the client's end
	out, in  []*zkFrame
	outTimer *kernel.Timer
	inTimer  *kernel.Timer
	// The arrival of the last frame of each direction: later ones come later.
	lastUp, lastDown time.Duration
	injected         func(error) // told when an injected closeSession is answered
}

func (l *zkLink) owner() cluster.NodeID { return l.gate.node }

// send queues a frame of the client at the gate.
func (l *zkLink) send(f *zkFrame) {
	if l.broken {
		return
	}
	f.at = l.zk.k.Now()
	if f.kind == zkRequest {
		l.gate.tap(f, false)
	}
	l.out = append(l.out, f)
	l.pumpOut()
}

// pumpOut lets out what the rules allow.
func (l *zkLink) pumpOut() {
	for !l.broken && len(l.out) > 0 {
		f := l.out[0]
		v := l.gate.view()
		if v.held {
			return
		}
		now := l.zk.k.Now()
		if due := f.at + v.delay; due > now {
			l.zk.k.Cancel(l.outTimer)
			l.outTimer = l.zk.k.At(due, kernel.Func(l.pumpOut))
			return
		}
		if f.kind == zkRequest && l.gate.takeCut(true, f) {
			l.fail()
			return
		}
		l.out = l.out[1:]
		l.lastUp = max(l.lastUp, now+l.zk.hop())
		l.zk.k.At(l.lastUp, kernel.Func(func() { l.zk.server.take(l, f) }))
	}
}

// down puts a frame of the server on the wire; extra is what it takes there.
func (l *zkLink) down(f *zkFrame, extra time.Duration) {
	l.lastDown = max(l.lastDown, l.zk.k.Now()+l.zk.hop()+extra)
	l.zk.k.At(l.lastDown, kernel.Func(func() { l.arrive(f) }))
}

// arrive takes a frame of the server at the gate.
func (l *zkLink) arrive(f *zkFrame) {
	if l.broken {
		return
	}
	f.at = l.zk.k.Now()
	switch f.kind {
	case zkInjected:
		if l.injected != nil {
			l.injected(zkError(f.code))
			l.injected = nil
		}
		return
	case zkRequest:
		l.gate.tap(f, true)
		if l.broken { // a tap may cut
			return
		}
		if f.code == jute.OK && l.gate.takeCut(false, f) {
			l.fail()
			return
		}
	default:
	}
	l.in = append(l.in, f)
	l.pumpIn()
}

// pumpIn hands over what the rules let through.
func (l *zkLink) pumpIn() {
	for !l.broken && len(l.in) > 0 {
		f := l.in[0]
		v := l.gate.view()
		if v.held {
			return
		}
		due := f.at + v.delay
		if f.kind == zkEvent {
			due += v.watchDelay
		}
		if due > l.zk.k.Now() {
			l.zk.k.Cancel(l.inTimer)
			l.inTimer = l.zk.k.At(due, kernel.Func(l.pumpIn))
			return
		}
		l.in = l.in[1:]
		l.client.receive(l, f)
	}
}

// fail breaks the connection and tells the client.
func (l *zkLink) fail() {
	if l.broken {
		return
	}
	l.close()
	l.client.lost(l)
}

// close ends the client's side. The server hears of it behind what was sent.
func (l *zkLink) close() {
	if l.broken {
		return
	}
	l.broken = true
	for _, f := range l.out {
		l.notDone(f)
	}
	l.out, l.in = nil, nil
	l.zk.k.Cancel(l.outTimer)
	l.zk.k.Cancel(l.inTimer)
	if l.injected != nil {
		l.injected(errZKBroke)
		l.injected = nil
	}
	l.lastUp = max(l.lastUp, l.zk.k.Now()+l.zk.hop())
	l.zk.k.At(l.lastUp, kernel.Func(func() { l.zk.server.hungUp(l) }))
}

// notDone tells the history of a write that never reached the server.
func (l *zkLink) notDone(f *zkFrame) {
	if f.kind != zkRequest || !f.op.IsWrite() {
		return
	}
	txn := history.Txn{
		Node: string(l.gate.node), Op: zkOpName(f.op), Paths: zkPaths(f.req), Guard: zkGuard(f.req), Error: zkNotDone,
	}
	if l.client != nil {
		txn.Session = l.client.id
	}
	l.zk.env.Observe(l.gate.node, txn)
}

// zkNotDone is the error of a history.Txn that never reached the server.
const zkNotDone = "not sent"

// zkGuard is the path of the first check of a multi.
func zkGuard(req jute.Record) string {
	if m, ok := req.(*jute.MultiRequest); ok {
		for _, o := range m.Ops {
			if o.Op == jute.OpCheck {
				return jute.Paths(o.Request)[0]
			}
		}
	}
	return ""
}
