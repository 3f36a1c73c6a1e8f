package real

import (
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// zkCall is one request of the node.
type zkCall struct {
	run       func() (any, error) // blocks in the library
	complete  func(any)           // called once, with a zkResult
	watch     *zkWatch
	revoked   bool // answered "not sent": its frame must not pass
	answered  bool
	written   bool      // its frame was accepted by the gate
	delivered bool      // its reply was handed to the library
	zxid      int64     // of the reply
	code      jute.Code // of the reply; in a multi, of the failing operation
}

// zkResult is a call's answer.
type zkResult struct {
	value any
	zxid  int64
	err   error
}

// submit takes a call; calls go out in the order in which they came.
func (d *zkDoor) submit(c *zkCall) {
	d.lock()
	defer d.unlock()
	if d.state != host.Connected || d.shut {
		d.answer(c, nil, notSent(d.state))
		return
	}
	d.queue = append(d.queue, c)
	d.next()
}

// next hands the first call to the library, if the last one is written.
func (d *zkDoor) next() {
	if d.unwritten != nil || len(d.queue) == 0 {
		return
	}
	c := d.queue[0]
	d.queue = d.queue[1:]
	d.unwritten = c
	spawned := d.gate.spawn(func() {
		v, err := c.run()
		d.returned(c, v, err)
	})
	if !spawned {
		d.unwritten = nil
		d.answer(c, nil, host.ErrNotSent)
	}
}

// returned takes what the library said to a call.
func (d *zkDoor) returned(c *zkCall, v any, err error) {
	d.lock()
	defer d.unlock()
	if d.unwritten == c {
		d.unwritten = nil
		d.next()
	}
	d.answer(c, v, d.classify(c, err))
}

// classify says what an error means for the node. What counts is what the gate
// saw: a frame that it did not accept was never sent; an answer that it handed
// over was an answer; anything between is unknown, whatever the library says.
func (d *zkDoor) classify(c *zkCall, err error) error {
	switch {
	case err == nil:
		return nil
	case c.delivered && c.code != jute.OK:
		return zkError(c.code)
	case c.written:
		return fmt.Errorf("%w: %v", host.ErrConnectionLoss, err) //nolint:errorlint // the cause is for reading only
	case isRefusedArgument(err):
		return fmt.Errorf("%w: %v", host.ErrBadArguments, err) //nolint:errorlint // likewise
	default:
		return notSent(d.state)
	}
}

// answer completes a call, once.
func (d *zkDoor) answer(c *zkCall, v any, err error) {
	if c.answered {
		return
	}
	c.answered = true
	result := zkResult{value: v, zxid: c.zxid, err: err}
	d.gate.outbox.put(func() { c.complete(result) })
}

// failQueue answers the calls that have not reached the stream. The one inside
// the library's queue is revoked: its frame is refused if it ever comes.
func (d *zkDoor) failQueue(s host.SessionState) {
	for _, c := range d.queue {
		d.answer(c, nil, notSent(s))
	}
	d.queue = nil
	if c := d.unwritten; c != nil {
		c.revoked = true
		d.answer(c, nil, notSent(s))
	}
}

// notSent is the answer to a call that a session in state s did not send.
func notSent(s host.SessionState) error {
	switch s {
	case host.Expired:
		return host.ErrExpired
	case host.Closed:
		return host.ErrClosed
	default:
		return host.ErrNotSent
	}
}

// zkError is the host's error for a code of a reply. Codes of the system range,
// and time-outs inside the server, leave open what was done.
func zkError(code jute.Code) error {
	switch code {
	case jute.NoNode:
		return host.ErrNoNode
	case jute.NodeExists:
		return host.ErrNodeExists
	case jute.BadVersion:
		return host.ErrBadVersion
	case jute.NotEmpty:
		return host.ErrNotEmpty
	case jute.NoChildrenForEphemerals:
		return host.ErrNoChildrenForEphemerals
	case jute.SessionExpired:
		return host.ErrExpired
	case jute.BadArguments:
		return host.ErrBadArguments
	case jute.RequestTimeout:
		return code
	default:
		if code <= jute.APIError {
			return cluster.Definite(code)
		}
		return code
	}
}
