package real

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// zkDoor is one session's way through the gate: its identity, its connections
// and its calls. It makes a session what docs/protocol.md 4 asks for:
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

func newZKDoor(g *zkGate, post func(func()), onNew func(host.SessionState, int64)) *zkDoor {
	d := &zkDoor{
		gate: g, post: post, onNew: onNew, closeLibrary: func() {},
		shutC: make(chan struct{}), refused: make(chan struct{}, 1), greeted: make(chan struct{}),
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
