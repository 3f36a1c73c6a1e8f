package tree

import (
	"errors"
	"fmt"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// EntryKind tells the entries of a journal apart.
type EntryKind int32

// The kinds of entries: what changes nodes or sessions.
const (
	EntryOpen    EntryKind = iota + 1 // a session is opened
	EntryResume                       // its time-out changes, as it is resumed
	EntryRequest                      // a client's write, failed ones included
	EntryClose                        // the server ends a session
	EntrySweep                        // the server removes a container or TTL node
)

// Entry is one transition, to be made again. Since a Tree is a function of its
// transitions, a list of entries is a journal of it.
type Entry struct {
	Kind    EntryKind
	Now     int64
	Session int64
	Timeout int64     // of Open and Resume, in milliseconds
	Auth    []jute.ID // of Request: the identities of its connection
	Op      jute.OpCode
	Body    []byte // of Request, as it came: it may be one that does not decode
	Path    string // of Sweep
	Zxid    int64  // after it
}

// ErrRedo says that a journal does not fit the tree that it is applied to.
var ErrRedo = errors.New("journal does not fit the state")

// Redo makes a transition again. Decode reads a request's body as it was read
// at first.
func (t *Tree) Redo(e Entry, decode func(jute.OpCode, []byte) jute.Record) error {
	t.events = t.events[:0]
	s := t.sessions[e.Session]
	if s == nil && e.Kind != EntryOpen && e.Kind != EntrySweep {
		return fmt.Errorf("%w: no session %#x", ErrRedo, e.Session)
	}
	switch e.Kind {
	case EntryOpen:
		if s = t.open(e.Timeout); s.id != e.Session {
			return fmt.Errorf("%w: session %#x in place of %#x", ErrRedo, s.id, e.Session)
		}
		t.touch(e.Now, s)
	case EntryResume:
		s.timeout = e.Timeout
	case EntryRequest:
		r := &request{now: e.Now, conn: &conn{auth: e.Auth}, session: s}
		t.perform(r, e.Op, decode(e.Op, e.Body))
	case EntryClose:
		t.CloseSession(e.Now, e.Session)
	case EntrySweep:
		t.sweepOne(e.Now, e.Path)
	default:
		return fmt.Errorf("%w: entry of kind %d", ErrRedo, e.Kind)
	}
	if t.zxid != e.Zxid {
		return fmt.Errorf("%w: at zxid %#x in place of %#x", ErrRedo, t.zxid, e.Zxid)
	}
	return nil
}

// Identities are those of a connection.
func (t *Tree) Identities(c Conn) []jute.ID {
	if cn := t.conns[c]; cn != nil {
		return cn.auth
	}
	return nil
}

// Encode writes the record.
func (e *Entry) Encode(x *jute.Encoder) {
	x.Int32(int32(e.Kind))
	x.Int64(e.Now)
	x.Int64(e.Session)
	x.Int64(e.Timeout)
	x.Int32(int32(len(e.Auth)))
	for _, id := range e.Auth {
		x.String(id.Scheme)
		x.String(id.ID)
	}
	x.Int32(int32(e.Op))
	x.Buffer(e.Body)
	x.String(e.Path)
	x.Int64(e.Zxid)
}

// Decode reads the record.
func (e *Entry) Decode(d *jute.Decoder) {
	e.Kind = EntryKind(d.Int32())
	e.Now = d.Int64()
	e.Session = d.Int64()
	e.Timeout = d.Int64()
	e.Auth = nil
	for range max(d.Count(8), 0) {
		e.Auth = append(e.Auth, jute.ID{Scheme: d.String(), ID: d.String()})
	}
	e.Op = jute.OpCode(d.Int32())
	e.Body = d.Buffer()
	e.Path = d.String()
	e.Zxid = d.Int64()
}
