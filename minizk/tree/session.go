package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// conn is a connection that has, or had, a session. Watches and identities
// belong to it, not to the session: a client brings them along again.
type conn struct {
	id      Conn
	session int64
	auth    []jute.ID
}

type session struct {
	id         int64
	timeout    int64 // milliseconds
	expires    int64 // the end of its bucket
	conn       Conn  // 0 while nobody is connected
	ephemerals []string
}

// ConnectResult is the outcome of a ConnectRequest.
type ConnectResult struct {
	Response jute.ConnectResponse
	// OK: the session is established. Otherwise the response says that it is
	// expired, and the connection is to be closed after it.
	OK bool
	// Refused: close without any answer, since the client has seen a zxid that
	// this server has not reached.
	Refused bool
	// Displaced is the connection that the session had until now, 0 if none. It
	// is to be closed; its watches are gone.
	Displaced Conn
	// Txn is that of a new session.
	Txn Txn
}

// Connect opens or resumes a session on a new connection. IP is the client's
// address, its first identity; "" = none.
//
// As in the real server a wrong password still displaces the connection that
// the session has.
func (t *Tree) Connect(now int64, c Conn, ip string, req *jute.ConnectRequest) ConnectResult {
	t.events = t.events[:0]
	if req.LastZxidSeen > t.zxid {
		return ConnectResult{Refused: true}
	}
	cn := &conn{id: c}
	if ip != "" {
		cn.auth = []jute.ID{{Scheme: "ip", ID: ip}}
	}
	timeout := min(max(int64(req.TimeOut), t.opts.MinSessionTimeout), t.opts.MaxSessionTimeout)
	var res ConnectResult
	var s *session
	if req.SessionID == 0 {
		s = t.open(timeout)
		res.Txn = Txn{Zxid: t.zxid, Session: s.id, Time: now, Op: jute.OpCreateSession}
	} else {
		s = t.sessions[req.SessionID]
		if s != nil && s.conn != 0 {
			res.Displaced = s.conn
			t.Disconnect(s.conn)
		}
		if s == nil || !bytes.Equal(req.Passwd, t.password(s.id)) {
			res.Response = jute.ConnectResponse{Passwd: make([]byte, 16), HasReadOnly: req.HasReadOnly}
			return res
		}
		s.timeout = timeout
	}
	t.touch(now, s)
	s.conn, cn.session = c, s.id
	t.conns[c] = cn
	res.OK = true
	res.Response = jute.ConnectResponse{
		TimeOut: int32(timeout), SessionID: s.id, Passwd: t.password(s.id), HasReadOnly: req.HasReadOnly,
	}
	return res
}

// open makes a session, which is a transaction.
func (t *Tree) open(timeout int64) *session {
	s := &session{id: t.nextSession, timeout: timeout}
	t.nextSession++
	t.sessions[s.id] = s
	t.next()
	return s
}

// Disconnect forgets a connection, its watches and identities. The session
// lives on until it expires.
func (t *Tree) Disconnect(c Conn) {
	cn := t.conns[c]
	if cn == nil {
		return
	}
	t.data.drop(c)
	t.child.drop(c)
	delete(t.conns, c)
	if s := t.sessions[cn.session]; s != nil && s.conn == c {
		s.conn = 0
	}
}

// password is derived from the id, so that it needs no memory.
func (t *Tree) password(id int64) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], t.opts.Secret)
	binary.BigEndian.PutUint64(b[8:], uint64(id))
	sum := sha256.Sum256(b[:])
	return sum[:16]
}

// touch moves the session into the bucket of its next expiry: the time-out
// counted from now, rounded up to the next tick.
func (t *Tree) touch(now int64, s *session) {
	at := ((now+s.timeout)/t.opts.Tick + 1) * t.opts.Tick
	if at == s.expires {
		return
	}
	t.untrack(s)
	s.expires = at
	bucket := t.buckets[at]
	if bucket == nil {
		bucket = make(map[int64]*session)
		t.buckets[at] = bucket
	}
	bucket[s.id] = s
}

func (t *Tree) untrack(s *session) {
	bucket := t.buckets[s.expires]
	delete(bucket, s.id)
	if len(bucket) == 0 {
		delete(t.buckets, s.expires)
	}
}

// Touch says that the connection has been heard of.
func (t *Tree) Touch(now int64, c Conn) {
	if cn := t.conns[c]; cn != nil {
		if s := t.sessions[cn.session]; s != nil && s.conn == c {
			t.touch(now, s)
		}
	}
}

// NextExpiry is the time of the earliest expiry if nobody is heard of until
// then; ok is false if there is no session.
func (t *Tree) NextExpiry() (at int64, ok bool) {
	for b := range t.buckets { // a minimum does not depend on the order
		if !ok || b < at {
			at, ok = b, true
		}
	}
	return at, ok
}

// Ended is a session that has come to its end without its client's doing.
type Ended struct {
	Session int64
	Conn    Conn // its connection, to be closed; 0 if none
	Events  []Event
	Txn     Txn
}

// Expire ends every session whose time is up, in the order of their times and
// ids.
func (t *Tree) Expire(now int64) []Ended {
	var ended []Ended
	for {
		at, ok := t.NextExpiry()
		if !ok || at > now {
			return ended
		}
		for _, id := range slices.Sorted(maps.Keys(t.buckets[at])) {
			e, _ := t.CloseSession(now, id)
			ended = append(ended, e)
		}
	}
}

// CloseSession ends a session by order of the server. Its connection hears
// nothing of it but the end of the stream.
func (t *Tree) CloseSession(now, id int64) (Ended, bool) {
	s := t.sessions[id]
	if s == nil {
		return Ended{}, false
	}
	t.events = t.events[:0]
	e := Ended{Session: id, Conn: s.conn, Txn: t.endSession(now, s)}
	e.Events = slices.Clone(t.events)
	return e, true
}

// endSession removes the session and its ephemerals in one transaction. The
// connection stays known until Disconnect: it still gets events and a reply.
func (t *Tree) endSession(now int64, s *session) Txn {
	r := &request{now: now, zxid: t.next(), session: s}
	paths := s.ephemerals
	s.ephemerals = nil
	for _, path := range paths {
		parent, name, _ := split(path)
		t.unlink(r, path, name, t.node(parent), t.nodes[path])
	}
	t.run(r)
	t.untrack(s)
	delete(t.sessions, s.id)
	return Txn{
		Zxid: r.zxid, Session: s.id, Time: now, Op: jute.OpCloseSession,
		Paths: paths, Ephemeral: true,
	}
}

// Restart is what a server does that comes back with its state: connections
// are gone, and every session has its whole time-out again.
func (t *Tree) Restart(now int64) {
	for _, c := range slices.Sorted(maps.Keys(t.conns)) {
		t.Disconnect(c)
	}
	for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
		t.touch(now, t.sessions[id])
	}
}
