package real

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

const (
	// zkMaxFrame is more than any server accepts; beyond it the stream is torn.
	zkMaxFrame = 64 << 20
	// zkInjectedXid marks the closeSession that the gate puts into a stream; the
	// library counts its own requests up from 1.
	zkInjectedXid = 0x7ffffffe
)

// zkOpName names an operation for taps, cuts and events.
func zkOpName(op jute.OpCode) string {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		return "create"
	case jute.OpGetData:
		return "get"
	case jute.OpSetData:
		return "set"
	case jute.OpGetChildren, jute.OpGetChildren2:
		return "children"
	default:
		return op.String()
	}
}

// zkWrite is one operation inside a write. A check is a guard, it changes
// nothing.
type zkWrite struct {
	op        jute.OpCode
	path      string
	ephemeral bool // a create of an ephemeral node
}

// zkRequest is a request frame, as far as the gate cares.
type zkRequest struct {
	xid    int32
	op     jute.OpCode
	path   string // of a read or sync
	watch  bool
	writes []zkWrite
	rearm  []zkWatchKey // of setWatches
}

// isWrite tells the requests that make a transaction.
func (q zkRequest) isWrite() bool { return len(q.writes) > 0 || q.op == jute.OpCloseSession }

// isNodeWrite tells the writes that a node means when it writes.
func (q zkRequest) isNodeWrite() bool { return len(q.writes) > 0 }

// isInternal tells the requests that the library makes of its own accord.
func (q zkRequest) isInternal() bool {
	switch q.op {
	case jute.OpPing, jute.OpAuth, jute.OpSetWatches, jute.OpCloseSession:
		return true
	default:
		return false
	}
}

// paths are those that the request reads or writes, guards left out.
func (q zkRequest) paths() []string {
	if q.path != "" {
		return []string{q.path}
	}
	all := []string{}
	for _, w := range q.writes {
		if w.op != jute.OpCheck {
			all = append(all, w.path)
		}
	}
	return all
}

// guard is the path of the first check inside a multi.
func (q zkRequest) guard() string {
	for _, w := range q.writes {
		if w.op == jute.OpCheck {
			return w.path
		}
	}
	return ""
}

// decodeZKRequest reads a request frame without its length.
func decodeZKRequest(frame []byte) (zkRequest, error) {
	d := jute.NewDecoderLimit(frame, zkMaxFrame)
	var h jute.RequestHeader
	h.Decode(d)
	body := jute.NewRequest(h.Op)
	body.Decode(d)
	q := zkRequest{xid: h.Xid, op: h.Op}
	if err := d.Err(); err != nil {
		return q, fmt.Errorf("decode zookeeper request: %w", err)
	}
	switch r := body.(type) {
	case *jute.PathWatchRequest:
		q.path, q.watch = r.Path, r.Watch
	case *jute.PathRequest:
		q.path = r.Path
	case *jute.SetWatchesRequest:
		q.rearm = append(q.rearm, watchKeys(r.Data, zkDataWatch)...)
		q.rearm = append(q.rearm, watchKeys(r.Exist, zkExistWatch)...)
		q.rearm = append(q.rearm, watchKeys(r.Child, zkChildWatch)...)
	case *jute.MultiRequest:
		for _, op := range r.Ops {
			q.writes = append(q.writes, zkWriteOf(op.Op, op.Request))
		}
	case *jute.CreateRequest, *jute.PathVersionRequest, *jute.SetDataRequest, *jute.SetACLRequest:
		q.writes = []zkWrite{zkWriteOf(h.Op, body)}
	}
	return q, nil
}

func watchKeys(paths []string, kind zkWatchKind) []zkWatchKey {
	keys := make([]zkWatchKey, 0, len(paths))
	for _, path := range paths {
		keys = append(keys, zkWatchKey{path, kind})
	}
	return keys
}

func zkWriteOf(op jute.OpCode, body jute.Record) zkWrite {
	w := zkWrite{op: op}
	switch r := body.(type) {
	case *jute.CreateRequest:
		w.path = r.Path
		w.ephemeral = op != jute.OpCreateContainer && op != jute.OpCreateTTL &&
			(r.Flags == jute.FlagEphemeral || r.Flags == jute.FlagEphemeralSequential)
	case *jute.PathVersionRequest:
		w.path = r.Path
	case *jute.SetDataRequest:
		w.path = r.Path
	case *jute.SetACLRequest:
		w.path = r.Path
	}
	return w
}

// zkReply is the header of a reply or of a watch event, and what follows it.
type zkReply struct {
	jute.ReplyHeader
	body []byte
}

func decodeZKReply(frame []byte) (zkReply, error) {
	d := jute.NewDecoderLimit(frame, zkMaxFrame)
	var p zkReply
	p.Decode(d)
	p.body = d.Rest()
	if err := d.Err(); err != nil {
		return p, fmt.Errorf("decode zookeeper reply: %w", err)
	}
	return p, nil
}

// outcome reads the answer to a write: the code of the failing operation (OK if
// it was committed) and the names of the nodes created, one entry for each
// operation of the request.
func (p zkReply) outcome(q zkRequest) (code jute.Code, names []string, err error) {
	if p.Err != jute.OK || q.op == jute.OpCloseSession {
		return p.Err, nil, nil
	}
	response := jute.NewResponse(q.op)
	d := jute.NewDecoderLimit(p.body, zkMaxFrame)
	response.Decode(d)
	if err := d.Err(); err != nil {
		return 0, nil, fmt.Errorf("decode answer to %v: %w", q.op, err)
	}
	multi, ok := response.(*jute.MultiResponse)
	if !ok {
		return jute.OK, []string{nameIn(response)}, nil
	}
	for _, r := range multi.Results {
		if e, failed := r.Response.(*jute.ErrorResponse); failed && code == jute.OK {
			code = e.Err
		}
		names = append(names, nameIn(r.Response))
	}
	return code, names, nil
}

// nameIn is the name of the node that a create made, or "".
func nameIn(response jute.Record) string {
	switch r := response.(type) {
	case *jute.PathResponse:
		return r.Path
	case *jute.Create2Response:
		return r.Path
	default:
		return ""
	}
}

// readZKFrame reads one frame with its length.
func readZKFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err //nolint:wrapcheck // the end of the stream is passed on as it is
	}
	n, err := jute.FrameLen(head, zkMaxFrame)
	if err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	frame := make([]byte, 4+n)
	copy(frame, head[:])
	_, err = io.ReadFull(r, frame[4:])
	return frame, err //nolint:wrapcheck // likewise
}

// frameLen is the length of the frame at the start of b, with its length field;
// 0 if that is not there yet.
func frameLen(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, nil
	}
	if n := binary.BigEndian.Uint32(b); n > zkMaxFrame {
		return 0, jute.FrameError{Len: int(n), Max: zkMaxFrame}
	}
	return 4 + int(binary.BigEndian.Uint32(b)), nil
}

// connectFrame asks for a session: a new one if session is 0.
func connectFrame(timeoutMillis int32, session int64, password []byte) []byte {
	return jute.AppendFrame(nil, &jute.ConnectRequest{TimeOut: timeoutMillis, SessionID: session, Passwd: password})
}

// closeSessionFrame ends the session of the connection it is sent on.
func closeSessionFrame(xid int32) []byte {
	return jute.AppendFrame(nil, &jute.RequestHeader{Xid: xid, Op: jute.OpCloseSession})
}
