package real

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// zkDoor is one session's way through the gate: its identity, its connections
// and its calls. It makes a session what PROTOCOL 4 asks for:
//
//   - expired is final: the door shuts inside the library's own callback, before
//     the library can dial, so it never opens the new session that it wants;
//   - calls fail at once while not connected, and connected means that the
//     watches are renewed, so no call can overtake their renewal;
//   - one call at a time is between the library's queue and the stream, so the
//     next frame written is known to be that call's.
//
// All fields below mu are guarded by it, those of its connections and calls
// too. What others are told (events, the node's states, watches and answers)
// goes through the gate's outbox, in order and under no lock.
type zkDoor struct {
	gate    *zkGate
	post    func(func())
	onNew   func(host.SessionState, int64) // on the node's loop, by post
	library *zkLibrary
	// closeLibrary blocks until the library is closed.
	closeLibrary func()
	shutC        chan struct{}
	// refused is poked when a dial was refused: the library is then where a
	// close takes no time.
	refused chan struct{}

	mu         sync.Mutex
	state      host.SessionState
	shut       bool
	killed     bool
	leaving    bool // a close in good order has begun
	id         int64
	password   []byte
	timeout    int32 // milliseconds, as agreed
	conns      map[*zkConn]struct{}
	dials      int
	live       *zkConn       // the one that carries the session
	greeted    chan struct{} // closed, and replaced, when there is a new one
	queue      []*zkCall
	unwritten  *zkCall // in the library's queue, its frame not yet seen
	watches    zkWatches
	renewing   map[zkWatchKey]struct{} // watches to be renewed before any call
	ephemerals map[string]struct{}     // nodes that this session is known to own
}

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

func newZKDoor(g *zkGate, post func(func()), onNew func(host.SessionState, int64)) *zkDoor {
	d := &zkDoor{
		gate: g, closeLibrary: func() {}, post: post, onNew: onNew, shutC: make(chan struct{}), refused: make(chan struct{}, 1), greeted: make(chan struct{}),
		conns:      map[*zkConn]struct{}{},
		renewing:   map[zkWatchKey]struct{}{},
		ephemerals: map[string]struct{}{},
	}
	d.watches = zkWatches{tell: d.tell, armed: map[zkWatchKey][]*zkWatch{}}
	return d
}

func (d *zkDoor) lock() { d.mu.Lock() }

// unlock also sends what was put into the outbox meanwhile.
func (d *zkDoor) unlock() {
	d.mu.Unlock()
	d.gate.outbox.flush()
}

// tell puts something for the node's loop into the outbox.
func (d *zkDoor) tell(f func()) { d.gate.outbox.put(func() { d.post(f) }) }

// final reports whether a state is the last one.
func final(s host.SessionState) bool { return s == host.Expired || s == host.Closed }

// identity is the session's id, and whether the session may still be alive for
// this node.
func (d *zkDoor) identity() (id int64, alive bool) {
	d.lock()
	defer d.unlock()
	return d.id, !final(d.state) && !d.killed
}

func (d *zkDoor) isShut() bool {
	d.lock()
	defer d.unlock()
	return d.shut
}

// setState moves to a state, reports it, and tells the node. Final states stay.
func (d *zkDoor) setState(s host.SessionState) {
	if final(d.state) || s == d.state {
		return
	}
	d.state = s
	id := d.id
	names := map[host.SessionState]string{
		host.Connected: history.SessionConnected, host.Disconnected: history.SessionSuspended,
		host.Expired: history.SessionExpired, host.Closed: history.SessionClosed,
	}
	if id != 0 {
		d.gate.report(history.Session{Node: string(d.gate.node), ID: id, State: names[s]})
	}
	d.tell(func() { d.onNew(s, id) })
	if s != host.Connected {
		d.failQueue(s)
	}
	if final(s) {
		d.watches.end()
	}
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

// zkError is the host's error for a code of a reply. Codes of the system range
// leave open what the server did.
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
	default:
		if code <= jute.APIError {
			return cluster.Definite(code)
		}
		return code
	}
}

// handshaken takes the server's answer to a connect, as it is handed over.
func (d *zkDoor) handshaken(c *zkConn, h jute.ConnectResponse) {
	if h.SessionID == 0 {
		return // expired: the library's callback comes next
	}
	d.id, d.password, d.timeout = h.SessionID, h.Passwd, h.TimeOut
	d.live = c
	close(d.greeted)
	d.greeted = make(chan struct{})
	clear(d.renewing)
	for key := range d.watches.armed {
		d.renewing[key] = struct{}{}
	}
}

// established is the library's word that it has a session. The node hears of it
// once the watches are renewed.
func (d *zkDoor) established() {
	d.lock()
	defer d.unlock()
	if d.live != nil && len(d.renewing) == 0 {
		d.setState(host.Connected)
	}
}

// renewed notes a setWatches that passed.
func (d *zkDoor) renewed(keys []zkWatchKey) {
	for _, key := range keys {
		delete(d.renewing, key)
	}
	if len(d.renewing) == 0 {
		d.setState(host.Connected)
	}
}

// expired is the library's word that the server has ended the session, in its
// callback. The door is shut when it returns.
func (d *zkDoor) expired() {
	d.lock()
	if d.leaving {
		d.setState(host.Closed) // the answer to our own goodbye
	}
	d.setState(host.Expired)
	d.unlock()
	d.shutNow()
}

// lost notes that a connection is gone.
func (d *zkDoor) lost(c *zkConn) {
	if d.live == c {
		d.live = nil
		d.suspend()
	}
}

// suspend tells the node that the connection is gone, unless it asked for that.
func (d *zkDoor) suspend() {
	if !d.leaving {
		d.setState(host.Disconnected)
	}
}

// disconnected is the library's word that it has no connection.
func (d *zkDoor) disconnected() {
	d.lock()
	defer d.unlock()
	d.live = nil
	d.suspend()
}

// closing ends the session in good order, with the server's help if it can be
// reached within a second. It blocks.
func (d *zkDoor) closing() {
	d.lock()
	d.leaving = true
	d.unlock()
	d.sayGoodbye()
	d.lock()
	d.setState(host.Closed)
	d.unlock()
	d.shutNow()
}

// goodbyeTimeout is how long a close tries to reach the server.
const goodbyeTimeout = time.Second

// sayGoodbye has the server close the session. The door says it, not the
// library, which would set its transaction number while it renews watches, and
// ask for them from too new a one.
func (d *zkDoor) sayGoodbye() {
	timer := time.NewTimer(goodbyeTimeout)
	defer timer.Stop()
	for {
		d.lock()
		live, greeted := d.live, d.greeted
		d.unlock()
		if live != nil {
			if done, err := live.inject(false); err == nil {
				select {
				case err := <-done:
					if err == nil {
						return
					}
				case <-timer.C:
					return
				}
			}
		}
		select {
		case <-greeted:
		case <-d.shutC:
			return
		case <-timer.C:
			return
		}
	}
}

// kill shuts the door of a dying process: nothing is said to the server.
func (d *zkDoor) kill() {
	d.lock()
	d.killed = true
	d.unlock()
	d.shutNow()
}

// shutNow lets no byte pass any more and has the library closed elsewhere.
func (d *zkDoor) shutNow() {
	d.lock()
	already := d.shut
	if !already {
		d.shut = true
		close(d.shutC)
	}
	d.unlock()
	if already {
		return
	}
	d.breakAll(errZKShut)
	d.gate.leave(d)
	d.gate.spawn(d.closeLibrary)
}

// open starts the library for a new session.
func (d *zkDoor) open(servers []string, timeout time.Duration, log *zap.Logger) error {
	d.lock()
	defer d.unlock()
	library, err := openLibrary(d, servers, timeout, log)
	if err != nil {
		return err
	}
	d.library, d.closeLibrary = library, func() { library.close(d) }
	return nil
}

// abandon gives up a session that its node has no use for.
func (d *zkDoor) abandon() {
	d.gate.spawn(d.closing)
}

// breakAll breaks every connection.
func (d *zkDoor) breakAll(cause error) {
	d.lock()
	defer d.unlock()
	for _, c := range d.sorted() {
		c.fail(cause)
	}
}

// breakStrangers breaks the connections that have not got the session yet.
func (d *zkDoor) breakStrangers(cause error) {
	d.lock()
	defer d.unlock()
	for _, c := range d.sorted() {
		if c != d.live {
			c.fail(cause)
		}
	}
}

func (d *zkDoor) sorted() []*zkConn {
	return slices.SortedFunc(maps.Keys(d.conns), func(a, b *zkConn) int { return a.number - b.number })
}
