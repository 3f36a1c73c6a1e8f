package real

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// The texts of a history.Txn's Error that are not the server's. Unknown says
// that the request may have been executed, not sent that it never will be.
const (
	txnUnknown = "unknown"
	txnNotSent = "not sent"
)

// sendAll moves frames to the wire until the stream is closed and empty.
func (c *zkConn) sendAll() {
	defer c.left()
	for {
		v := c.door.gate.view()
		o, state, until := c.nextOut(v, time.Now())
		switch state {
		case outWait:
			awaitAny(c.sendable, v.changed, until)
		case outEnd:
			return
		case outReady:
			q := o.request
			if !o.greets && !o.silent && c.door.gate.takeCut(true, zkOpName(q.op), q.isNodeWrite()) {
				_ = c.breakOff(errZKCut)
				return
			}
			if !c.send(o) {
				return
			}
		}
	}
}

type outState uint8

const (
	outWait outState = iota
	outReady
	outEnd
)

// nextOut looks at the first frame in the queue; it stays there until sent.
func (c *zkConn) nextOut(v zkView, now time.Time) (zkOut, outState, time.Time) {
	c.door.lock()
	defer c.door.unlock()
	if len(c.out) == 0 {
		if c.closed {
			_ = c.raw.Close() // the other goroutine ends by it
			return zkOut{}, outEnd, time.Time{}
		}
		return zkOut{}, outWait, time.Time{}
	}
	wait, held := v.wait(c.out[0].at, now, false)
	switch {
	case held:
		return zkOut{}, outWait, time.Time{}
	case wait > 0:
		return zkOut{}, outWait, now.Add(wait)
	default:
		return c.out[0], outReady, time.Time{}
	}
}

// send writes one frame to the wire; false if the stream is broken.
func (c *zkConn) send(o zkOut) bool {
	c.door.lock()
	if len(c.out) == 0 { // broken meanwhile
		c.door.unlock()
		return true
	}
	c.out = c.out[1:]
	c.outBytes -= len(o.frame)
	if p := c.pending[o.request.xid]; p != nil && !o.greets {
		p.sent = true
	}
	poke(c.room)
	c.door.unlock()
	if _, err := c.raw.Write(o.frame); err != nil {
		_ = c.breakOff(fmt.Errorf("write to zookeeper: %w", err))
		return false
	}
	return true
}

// receiveAll takes frames off the wire until it ends.
func (c *zkConn) receiveAll() {
	defer c.left()
	for greets := true; ; greets = false {
		frame, err := readZKFrame(c.raw)
		if err == nil {
			err = c.arrived(frame, greets)
		}
		if err != nil {
			c.pushIn(zkIn{eof: err, at: time.Now()})
			return
		}
	}
}

func (c *zkConn) pushIn(in zkIn) {
	c.door.lock()
	defer c.door.unlock()
	if c.err == nil {
		c.in = append(c.in, in)
		poke(c.readable)
	}
}

// arrived takes one frame off the wire: reports what it says of transactions,
// shows it to the taps, and queues it for the library.
func (c *zkConn) arrived(frame []byte, greets bool) error {
	in := zkIn{frame: frame, whole: frame, at: time.Now(), greets: greets}
	if greets {
		var h jute.ConnectResponse
		if err := jute.Unmarshal(frame[4:], &h); err != nil {
			return fmt.Errorf("decode handshake: %w", err)
		}
		c.door.lock()
		c.session = h.SessionID
		c.door.unlock()
		c.pushIn(in)
		return nil
	}
	reply, err := decodeZKReply(frame[4:])
	if err != nil {
		return err
	}
	if reply.Xid == jute.XidNotification {
		in.watch = true
	}
	if reply.Xid < 0 {
		c.pushIn(in)
		return nil
	}
	return c.answered(in, reply)
}

// answered takes the reply to a request.
func (c *zkConn) answered(in zkIn, reply zkReply) error {
	c.door.lock()
	p := c.pending[reply.Xid]
	delete(c.pending, reply.Xid)
	c.door.unlock()
	if p == nil {
		return fmt.Errorf("zookeeper answers xid %d, which was not asked", reply.Xid)
	}
	in.pending = p
	q := p.request
	paths := q.paths()
	in.code = reply.Err
	if q.isWrite() {
		code, names, err := reply.outcome(q)
		if err != nil {
			return err
		}
		in.code = code
		paths = committed(q, code, names)
	}
	c.door.lock()
	if p.call != nil {
		p.call.zxid, p.call.code = reply.Zxid, in.code
	}
	c.door.unlock()
	c.report(q, paths, reply.Zxid, in.code)
	if p.injected != nil {
		p.injected <- nil
	}
	if p.silent {
		return nil
	}
	c.door.gate.tap(host.ZKPassing{Op: zkOpName(q.op), Paths: paths, Reply: true, Zxid: reply.Zxid, Err: int32(in.code)})
	if in.code == jute.OK && c.door.gate.takeCut(false, zkOpName(q.op), q.isNodeWrite()) {
		return c.breakOff(errZKCut)
	}
	if p.injected == nil {
		c.pushIn(in)
	}
	return nil
}

// committed gives the paths of a write with the names that the server chose.
func committed(q zkRequest, code jute.Code, names []string) []string {
	paths := []string{}
	for i, w := range q.writes {
		if w.op == jute.OpCheck {
			continue
		}
		path := w.path
		if code == jute.OK && i < len(names) && names[i] != "" {
			path = names[i]
		}
		paths = append(paths, path)
	}
	return paths
}

// report emits the txn event of an answered write, and keeps the list of the
// session's own ephemeral nodes.
func (c *zkConn) report(q zkRequest, paths []string, zxid int64, code jute.Code) {
	if !q.isWrite() {
		return
	}
	text := ""
	if code != jute.OK {
		text = code.String()
	}
	c.emit(q, paths, zxid, text)
}

// emit sends the txn event of a write.
func (c *zkConn) emit(q zkRequest, paths []string, zxid int64, text string) {
	d := c.door
	d.lock()
	event := history.Txn{
		Node: string(d.gate.node), Session: c.session, Zxid: zxid, Op: zkOpName(q.op), Paths: paths,
		Guard: q.guard(), Error: text, Ephemeral: len(paths) > 0,
	}
	i := 0
	for _, w := range q.writes {
		if w.op == jute.OpCheck {
			continue
		}
		_, own := d.ephemerals[paths[i]]
		event.Ephemeral = event.Ephemeral && (own || w.ephemeral)
		if text == "" {
			if w.ephemeral {
				d.ephemerals[paths[i]] = struct{}{}
			} else if w.op == jute.OpDelete {
				delete(d.ephemerals, paths[i])
			}
		}
		i++
	}
	d.gate.report(event)
	d.unlock()
}

// handOver notes that the library has all of a frame now. Door.mu is held.
func (c *zkConn) handOver() {
	in := c.reading
	c.reading = zkIn{}
	body := in.whole[4:]
	switch {
	case in.greets:
		var h jute.ConnectResponse
		if jute.Unmarshal(body, &h) == nil {
			c.door.handshaken(c, h)
		}
	case in.watch:
		var h jute.ReplyHeader
		var e jute.WatcherEvent
		d := jute.NewDecoder(body)
		h.Decode(d)
		e.Decode(d)
		if d.Err() == nil {
			c.door.watches.fire(host.WatchEvent{Type: host.WatchType(e.Type), Path: e.Path})
		}
	case in.pending != nil && in.pending.call != nil:
		call := in.pending.call
		call.delivered = true
		if call.watch != nil {
			c.door.watches.arm(call.watch, in.pending.request.op, in.code, in.pending.request.path)
		}
	}
}

// left ends one of the two goroutines; the last one settles the accounts.
func (c *zkConn) left() {
	if c.readers.Add(-1) > 0 {
		return
	}
	c.door.lock()
	pending := c.pending
	c.pending = map[int32]*zkPending{}
	delete(c.door.conns, c)
	c.door.unlock()
	for _, xid := range slices.Sorted(maps.Keys(pending)) {
		p := pending[xid]
		if p.injected != nil {
			p.injected <- errors.New("connection broke before the session was closed")
			continue
		}
		if q := p.request; q.isWrite() {
			text := txnUnknown
			if !p.sent {
				text = txnNotSent
			}
			c.emit(q, q.paths(), 0, text)
		}
	}
}

// inject puts a closeSession into the stream, behind what is queued there; its
// reply is kept from the library. The channel tells when the server has done
// it, or that the stream broke. Silent is the harness's own, which no tap sees
// and no cut is meant for.
func (c *zkConn) inject(silent bool) (<-chan error, error) {
	if !silent {
		c.door.gate.tap(host.ZKPassing{Op: zkOpName(jute.OpCloseSession), Paths: []string{}})
	}
	c.door.lock()
	defer c.door.unlock()
	if c.err != nil {
		return nil, c.err
	}
	q := zkRequest{xid: zkInjectedXid, op: jute.OpCloseSession}
	done := make(chan error, 1)
	if _, twice := c.pending[q.xid]; twice {
		return nil, errors.New("session is being closed already")
	}
	c.pending[q.xid] = &zkPending{request: q, injected: done, silent: silent}
	frame := closeSessionFrame(q.xid)
	c.out = append(c.out, zkOut{frame: frame, at: time.Now(), request: q, silent: silent})
	c.outBytes += len(frame)
	poke(c.sendable)
	return done, nil
}
