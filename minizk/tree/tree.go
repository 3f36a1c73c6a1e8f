// Package tree is ZooKeeper's state machine: znodes, sessions, connections and
// watches, and nothing else. It has no clock, no goroutine and no socket: every
// transition is a function of the state, the request, and the time given in,
// so the same calls give the same answers, byte for byte. The server in package
// minizk feeds it from sockets; a simulation can feed it from a virtual clock.
//
// Times are milliseconds since 1970 and must never go back. A Tree is not safe
// for concurrent use: transitions of one ensemble are one sequence anyway.
//
// A transition returns its reply together with the watch events that it set
// off. Whoever delivers them keeps the guarantee of ZooKeeper: the events go
// out before the reply, and all replies and events of a connection in the order
// of the calls.
//
// It behaves as a standalone ZooKeeper 3.9.5 does, in its error codes, the
// order of its checks, its versions and its zxids. The differential test of
// package minizk holds it to that. Quotas are not kept: nodes under
// /zookeeper/quota are ordinary nodes.
package tree

import (
	"fmt"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Conn is a handle of one connection, chosen by the caller and never reused.
// Zero means none.
type Conn int64

// Options are fixed when a Tree is made. The zero value is that of a server
// with default settings.
type Options struct {
	// Tick is the granularity of session expiry in milliseconds; 0 = 2000.
	Tick int64
	// MinSessionTimeout and MaxSessionTimeout bound what clients ask for, in
	// milliseconds; 0 = 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout int64
	// ExtendedTypes allows TTL nodes, as zookeeper.extendedTypesEnabled does.
	ExtendedTypes bool
	// ContainerNeverUsed is the age in milliseconds at which a container that
	// never had a child is removed; 0 = never.
	ContainerNeverUsed int64
	// SkipACL turns the enforcement of ACLs off.
	SkipACL bool
	// SuperDigest is a digest id (user:hash) that may do anything; "" = none.
	SuperDigest string
	// Secret makes the session passwords unguessable.
	Secret uint64
	// FirstSession is the id of the first session; 0 = derived from the time.
	FirstSession int64
}

// Tree is the state. See the package documentation.
type Tree struct {
	opts     Options
	nodes    map[string]*node
	root     *node
	dataSize int64
	zxid     int64

	data, child watchTable

	conns       map[Conn]*conn
	sessions    map[int64]*session
	nextSession int64
	buckets     map[int64]map[int64]*session // expiry time -> session id -> session

	ephemerals int
	// Containers and TTL nodes are swept by age; both are looked through in
	// sorted order.
	containers, ttls map[string]struct{}

	events []Event // of the transition under way
}

// Event is a watch event to be sent to a connection.
type Event struct {
	Conn Conn
	Type jute.EventType
	Path string
	// Zxid is that of the transaction that set it off, -1 if the event was found
	// while watches were set again.
	Zxid int64
}

// Record is the event's body on the wire.
func (e Event) Record() *jute.WatcherEvent {
	return &jute.WatcherEvent{Type: e.Type, State: jute.StateSyncConnected, Path: e.Path}
}

// Reply is the outcome of a request.
type Reply struct {
	Header jute.ReplyHeader
	Body   jute.Record // nil where the header says it all
	// Events go out before the reply. They are valid until the next transition.
	Events []Event
	// Silent: there is no reply, because the session is no more.
	Silent bool
	// Close: the connection is to be closed, after the reply if there is one.
	Close bool
	// Txn is the transaction, Zxid 0 for a request that made none.
	Txn Txn
}

// Txn is a transaction: a write that got a zxid. Failed ones get one too.
type Txn struct {
	Zxid, Session int64
	Xid           int32
	Time          int64
	Op            jute.OpCode
	// Paths are those written, or those that would have been; sequential names
	// in full. A closeSession lists the ephemerals that went with it.
	Paths []string
	// Guard is the path of the first check of a multi.
	Guard string
	Err   jute.Code // OK if it was done
	// Ephemeral: every path is an ephemeral node of the session.
	Ephemeral bool
}

// New returns the tree of a fresh server.
func New(o Options, now int64) *Tree {
	if o.Tick <= 0 {
		o.Tick = 2000
	}
	if o.MinSessionTimeout <= 0 {
		o.MinSessionTimeout = 2 * o.Tick
	}
	if o.MaxSessionTimeout <= 0 {
		o.MaxSessionTimeout = 20 * o.Tick
	}
	if o.FirstSession == 0 {
		o.FirstSession = int64(uint64(now) << 24 >> 8)
	}
	t := &Tree{
		opts:        o,
		nodes:       make(map[string]*node),
		data:        newWatchTable(),
		child:       newWatchTable(),
		conns:       make(map[Conn]*conn),
		sessions:    make(map[int64]*session),
		nextSession: o.FirstSession,
		buckets:     make(map[int64]map[int64]*session),
		containers:  make(map[string]struct{}),
		ttls:        make(map[string]struct{}),
	}
	open := jute.OpenACL()
	t.root = &node{data: []byte{}, acl: open, children: []string{"zookeeper"}}
	t.nodes["/"] = t.root
	t.nodes["/zookeeper"] = &node{data: []byte{}, acl: open, children: []string{"config", "quota"}}
	t.nodes["/zookeeper/quota"] = &node{data: []byte{}, acl: open}
	t.nodes["/zookeeper/config"] = &node{
		data: []byte{}, aversion: -1,
		acl: []jute.ACL{{Perms: jute.PermRead, ID: jute.ID{Scheme: "world", ID: "anyone"}}},
	}
	return t
}

// Zxid is that of the last transaction.
func (t *Tree) Zxid() int64 { return t.zxid }

// request is a transition under way.
type request struct {
	now     int64
	zxid    int64
	conn    *conn
	session *session
	xid     int32

	// Triggers are run once the whole transaction stands; undo takes back what a
	// failing multi has done so far.
	triggers []trigger
	multi    bool
	undo     []func()
	notOwn   bool // something written was not an ephemeral of the session
}

// Do carries out a request of a connection. Req is nil if its bytes could not
// be decoded. The time is that at which the server looks at the request.
func (t *Tree) Do(now int64, c Conn, xid int32, op jute.OpCode, req jute.Record) Reply {
	t.events = t.events[:0]
	cn := t.conns[c]
	if cn == nil {
		return Reply{Silent: true, Close: true}
	}
	r := &request{now: now, conn: cn, xid: xid, session: t.sessions[cn.session]}
	switch op {
	case jute.OpAuth:
		return t.auth(r, req)
	case jute.OpSASL:
		return Reply{Header: jute.ReplyHeader{Xid: xid}, Body: &jute.SASLRequest{}}
	default:
	}
	if r.session == nil {
		// The real server drops requests of a session that it no longer tracks.
		return Reply{Silent: true}
	}
	if r.session.conn != c {
		return Reply{Silent: true, Close: true} // the session has moved on
	}
	t.touch(now, r.session)
	if !known(op) {
		return Reply{Header: jute.ReplyHeader{Xid: xid, Zxid: -1, Err: jute.Unimplemented}, Close: true}
	}
	rep := t.perform(r, op, req)
	rep.Header.Xid = xid
	if op == jute.OpPing {
		rep.Header.Xid = jute.XidPing
	}
	if rep.Txn.Zxid != 0 {
		rep.Txn.Session, rep.Txn.Xid, rep.Txn.Time, rep.Txn.Op = r.session.id, xid, now, op
		rep.Txn.Ephemeral = !r.notOwn && rep.Txn.Err == jute.OK && len(rep.Txn.Paths) > 0
	}
	rep.Header.Zxid = t.zxid
	rep.Events = t.events
	return rep
}

func (t *Tree) perform(r *request, op jute.OpCode, req jute.Record) Reply {
	if op == jute.OpPing {
		return Reply{}
	}
	if op == jute.OpCloseSession {
		ended := t.endSession(r.now, r.session)
		return Reply{Close: true, Txn: ended}
	}
	if op.IsWrite() {
		return t.write(r, op, req)
	}
	if req == nil {
		return failed(jute.MarshallingError)
	}
	return t.read(r, op, req)
}

func failed(code jute.Code) Reply { return Reply{Header: jute.ReplyHeader{Err: code}} }

// known lists what a client may send: a check alone is no request, and
// createSession is what a ConnectRequest becomes.
func known(op jute.OpCode) bool {
	switch op {
	case jute.OpCheck, jute.OpNotification, jute.OpCreateSession, jute.OpError:
		return false
	default:
		return jute.NewRequest(op) != nil
	}
}

// next takes the next zxid. Failed transactions use one up too.
func (t *Tree) next() int64 {
	t.zxid++
	return t.zxid
}

func (t *Tree) node(path string) *node {
	if path == "" { // the real tree holds its root under both names
		return t.root
	}
	return t.nodes[path]
}

// String is for debugging.
func (t *Tree) String() string {
	return fmt.Sprintf("tree at zxid %#x: %d nodes, %d sessions", t.zxid, len(t.nodes), len(t.sessions))
}
