package minizk_test

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// twin runs a program's steps against one server and tells what it saw, in
// words that two servers can be compared by: zxids relative to the first one
// seen, sessions by their order of opening, no times, no addresses.
type twin struct {
	t       testing.TB
	addr    string
	base    int64
	conns   []*raw
	ordinal map[int64]int  // of sessions
	closed  map[int64]bool // the zxids at which sessions were closed
	log     strings.Builder
}

func newTwin(tb testing.TB, addr string) *twin {
	tb.Helper()
	w := &twin{t: tb, addr: addr, ordinal: map[int64]int{}, closed: map[int64]bool{}}
	c := dialRaw(tb, addr, 10000)
	h := w.one(c, call{jute.OpPing, &jute.NoBody{}})
	w.base = h.Zxid
	w.finish(c)
	w.log.Reset()
	return w
}

// finish closes the session of a connection.
func (w *twin) finish(c *raw) {
	c.send(jute.OpCloseSession, &jute.NoBody{})
	w.reply(c, call{jute.OpCloseSession, nil}, c.xid)
	c.ended()
	require.NoError(w.t, c.Close())
}

func (w *twin) say(format string, args ...any) { fmt.Fprintf(&w.log, format+"\n", args...) }

// took gives what was said since the last call.
func (w *twin) took() string {
	s := w.log.String()
	w.log.Reset()
	return s
}

// open opens the sessions of a program.
func (w *twin) open(n int) {
	for range n {
		w.conns = append(w.conns, w.dial())
	}
}

func (w *twin) dial() *raw {
	c := dialRaw(w.t, w.addr, 10000)
	w.ordinal[c.id] = len(w.ordinal) + 1
	return c
}

// run does one step.
func (w *twin) run(s step) {
	c := w.conns[s.session]
	w.say("session %d kind %d", s.session, s.kind)
	switch s.kind {
	case stepRequest, stepPipeline:
		w.calls(s.session, s.calls)
	case stepTorn:
		w.torn(c, s)
	case stepDrop:
		w.drop(c)
		w.conns[s.session] = w.resume(c)
	case stepDisplace:
		w.conns[s.session] = w.resume(c)
		w.drain(c)
	case stepForget:
		wrong := *c
		wrong.passwd = []byte("0123456789abcdef")
		w.drain(w.resume(&wrong))
		w.drain(c)
		w.conns[s.session] = w.resume(c)
	case stepClose:
		w.calls(s.session, []call{{jute.OpCloseSession, &jute.NoBody{}}})
		w.drain(c)
		w.conns[s.session] = w.dial()
	case stepGarbage:
		w.calls(s.session, s.calls)
		w.drain(c)
		w.conns[s.session] = w.resume(c)
	case stepSetWatch:
		w.drop(c)
		c = w.resume(c)
		w.conns[s.session] = c
		k := s.calls[0]
		req := *k.req.(*jute.SetWatchesRequest)
		req.RelativeZxid = max(c.lastZ-s.back, w.base)
		h := w.one(c, call{k.op, &req})
		require.Equal(w.t, jute.OK, h.Err)
	case stepAheadOf:
		ahead := *c
		ahead.lastZ = 1 << 60
		w.drain(w.resume(&ahead)) // refused before anything moves
	case stepGreet:
		odd := dialRaw(w.t, w.addr, int32(s.back))
		w.ordinal[odd.id] = len(w.ordinal) + 1
		w.say("asked for %d, agreed %d", s.back, odd.agreed)
		w.finish(odd)
	case stepTakenOver:
		thief := w.resume(c)
		w.drain(c)
		w.finish(thief)
		w.drain(w.resume(c))
		w.conns[s.session] = w.dial()
	}
}

// calls sends requests in one go and reads their replies.
func (w *twin) calls(session int, calls []call) {
	c := w.conns[session]
	var out []byte
	xids := make([]int32, len(calls))
	for i, k := range calls {
		c.xid++
		xids[i] = c.xid
		switch k.op {
		case jute.OpPing:
			xids[i] = jute.XidPing
		case jute.OpAuth:
			xids[i] = jute.XidAuth
		default:
		}
		out = jute.AppendFrame(out, &jute.RequestHeader{Xid: xids[i], Op: k.op}, k.req)
	}
	_, err := c.Write(out)
	require.NoError(w.t, err)
	for i, k := range calls {
		w.reply(c, k, xids[i])
	}
}

// one sends a request and says what came of it.
func (w *twin) one(c *raw, k call) jute.ReplyHeader { return w.reply(c, k, c.send(k.op, k.req)) }

// reply reads up to a reply and says what came.
func (w *twin) reply(c *raw, k call, xid int32) jute.ReplyHeader {
	var events []seenEvent
	for {
		frame, err := jute.ReadFrame(c.Conn, nil, 4<<20)
		if err != nil {
			w.say("%v: the stream ends (%s)", k.op, c.RemoteAddr().Network())
			return jute.ReplyHeader{}
		}
		d := jute.NewDecoder(frame)
		var h jute.ReplyHeader
		h.Decode(d)
		if h.Xid == jute.XidNotification {
			events = append(events, w.event(h, d))
			continue
		}
		if k.op == jute.OpCloseSession {
			w.closed[h.Zxid] = true
		}
		w.sayEvents(events)
		require.Equal(w.t, xid, h.Xid)
		c.lastZ = max(c.lastZ, h.Zxid)
		z := h.Zxid
		if z > 0 && w.base > 0 {
			z -= w.base
		}
		if r, ok := k.req.(*jute.SetWatchesRequest); ok {
			r.RelativeZxid -= w.base
		}
		w.say("%v %s -> %v zxid %d %s", k.op, show(k.req), h.Err, z, w.body(k, h, d))
		return h
	}
}

type seenEvent struct {
	zxid int64
	text string
}

// sayEvents says them in their order, but for those of one closing of a
// session: its ephemerals go in the order of a hash table.
func (w *twin) sayEvents(events []seenEvent) {
	for from := 0; from < len(events); {
		to := from + 1
		for to < len(events) && events[to].zxid == events[from].zxid {
			to++
		}
		if w.closed[events[from].zxid] {
			slices.SortFunc(events[from:to], func(a, b seenEvent) int { return cmp.Compare(a.text, b.text) })
		}
		from = to
	}
	for _, e := range events {
		w.say("%s", e.text)
	}
}

func show(r jute.Record) string {
	if m, ok := r.(*jute.MultiRequest); ok {
		var parts []string
		for _, o := range m.Ops {
			parts = append(parts, fmt.Sprintf("%v %s", o.Op, show(o.Request)))
		}
		return "{" + strings.Join(parts, "; ") + "}"
	}
	return fmt.Sprintf("%+q", fmt.Sprintf("%+v", r))
}

func (w *twin) event(h jute.ReplyHeader, d *jute.Decoder) seenEvent {
	var e jute.WatcherEvent
	e.Decode(d)
	require.NoError(w.t, d.Err())
	z := h.Zxid
	if z > 0 {
		z -= w.base
	}
	return seenEvent{h.Zxid, fmt.Sprintf("event %v %q state %d zxid %d", e.Type, e.Path, e.State, z)}
}

func (w *twin) body(k call, h jute.ReplyHeader, d *jute.Decoder) string {
	if h.Err != jute.OK {
		return fmt.Sprintf("%d bytes", d.Left())
	}
	body := jute.NewResponse(k.op)
	body.Decode(d)
	require.NoError(w.t, d.Err(), k.op)
	require.Zero(w.t, d.Left(), k.op)
	return w.plain(body)
}

// plain is a body in comparable words.
func (w *twin) plain(body jute.Record) string {
	switch b := body.(type) {
	case *jute.StatResponse:
		return w.stat(b.Stat)
	case *jute.Create2Response:
		return fmt.Sprintf("%q %s", b.Path, w.stat(b.Stat))
	case *jute.GetDataResponse:
		return fmt.Sprintf("%v null %v %s", b.Data, b.Data == nil, w.stat(b.Stat))
	case *jute.GetACLResponse:
		slices.SortFunc(b.ACL, func(a, b jute.ACL) int { return cmp.Compare(a.ID.Scheme+a.ID.ID, b.ID.Scheme+b.ID.ID) })
		return fmt.Sprintf("%+v %s", b.ACL, w.stat(b.Stat))
	case *jute.ChildrenResponse:
		slices.Sort(b.Children)
		return fmt.Sprint(b.Children)
	case *jute.Children2Response:
		slices.Sort(b.Children)
		return fmt.Sprint(b.Children, w.stat(b.Stat))
	case *jute.EphemeralsResponse:
		slices.Sort(b.Ephemerals)
		return fmt.Sprint(b.Ephemerals)
	case *jute.WhoAmIResponse:
		for i, c := range b.Clients {
			if c.Scheme == "ip" && net.ParseIP(c.User) != nil {
				b.Clients[i].User = "an address"
			}
		}
		// The identities of a connection are in the order of a hash table, and so
		// is what "auth" stands for in an ACL.
		slices.SortFunc(b.Clients, func(a, b jute.ClientInfo) int { return cmp.Compare(a.Scheme+a.User, b.Scheme+b.User) })
		return fmt.Sprint(b.Clients)
	case *jute.MultiResponse:
		var parts []string
		for _, r := range b.Results {
			parts = append(parts, fmt.Sprintf("%v %d %s", r.Op, r.Err, w.plain(r.Response)))
		}
		return strings.Join(parts, "; ")
	default:
		return fmt.Sprintf("%+v", b)
	}
}

func (w *twin) stat(s jute.Stat) string {
	for _, z := range []*int64{&s.Czxid, &s.Mzxid, &s.Pzxid} {
		if *z > 0 {
			*z -= w.base
		}
	}
	if s.EphemeralOwner != 0 {
		s.EphemeralOwner = int64(w.ordinal[s.EphemeralOwner])
	}
	same := s.Ctime == s.Mtime
	// A node that was written later can still have been so in the same
	// millisecond.
	if s.Version == 0 && !same {
		w.say("times differ at version 0")
	}
	s.Ctime, s.Mtime = 0, 0
	return fmt.Sprintf("%+v", s)
}

// torn sends a request whose body ends early.
func (w *twin) torn(c *raw, s step) {
	k := s.calls[0]
	c.xid++
	body := jute.Marshal(k.req)[:s.cut]
	h := jute.RequestHeader{Xid: c.xid, Op: k.op}
	if k.op == jute.OpPing {
		h.Xid = jute.XidPing
	}
	_, err := c.Write(jute.AppendFrame(nil, &h, rawBytes(body)))
	require.NoError(w.t, err)
	w.reply(c, k, h.Xid)
	if k.op == jute.OpAuth { // the server may have hung up on it
		w.drain(c)
		w.conns[s.session] = w.resume(c)
	}
}

// rawBytes is a record that is what it is.
type rawBytes []byte

func (b rawBytes) Encode(e *jute.Encoder) { e.Raw(b) }
func (b rawBytes) Decode(*jute.Decoder)   {}

// resume comes back with the session of a connection.
func (w *twin) resume(old *raw) *raw {
	c := dialTCP(w.t, w.addr)
	c.xid, c.lastZ = old.xid, old.lastZ
	err := c.greet(&jute.ConnectRequest{
		TimeOut: 10000, SessionID: old.id, Passwd: old.passwd, LastZxidSeen: old.lastZ, HasReadOnly: true,
	})
	if err != nil {
		w.say("resume: the stream ends")
		return c
	}
	w.say("resume: %v agreed %d", w.ordinal[c.id], c.agreed)
	c.passwd = old.passwd
	return c
}

// drop closes a connection and waits until the server has noticed. Otherwise the
// real server may, as it does, forget the connection that comes after it, and
// leave two connections to one session.
func (w *twin) drop(c *raw) {
	require.NoError(w.t, c.Close())
	want := fmt.Sprintf("Connections: %d\n", len(w.conns)) // without this one, with the word's own
	require.Eventually(w.t, func() bool { return strings.Contains(word(w.t, w.addr, "srvr"), want) }, 10*time.Second, time.Millisecond)
}

// drain reads a connection to its end and closes it.
func (w *twin) drain(c *raw) {
	require.NoError(w.t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	var events []seenEvent
	for {
		frame, err := jute.ReadFrame(c.Conn, nil, 4<<20)
		if err != nil {
			var ne net.Error
			require.False(w.t, errors.As(err, &ne) && ne.Timeout(), "the stream goes on after %s", w.log.String())
			_ = c.Close()
			w.sayEvents(events)
			w.say("ended")
			return
		}
		d := jute.NewDecoder(frame)
		var h jute.ReplyHeader
		h.Decode(d)
		if h.Xid == jute.XidNotification {
			events = append(events, w.event(h, d))
		}
	}
}

// end closes the sessions of a program and removes what is left of it.
func (w *twin) end() {
	for _, c := range w.conns {
		w.finish(c)
	}
	w.conns = nil
	c := w.dial()
	w.reply(c, call{jute.OpAuth, nil}, w.auth(c, "joe:pw"))
	w.reply(c, call{jute.OpAuth, nil}, w.auth(c, "super:secret"))
	w.clear(c, "")
	w.finish(c)
}

func (w *twin) auth(c *raw, credentials string) int32 {
	_, err := c.Write(jute.AppendFrame(nil, &jute.RequestHeader{Xid: jute.XidAuth, Op: jute.OpAuth},
		&jute.AuthPacket{Scheme: "digest", Auth: []byte(credentials)}))
	require.NoError(w.t, err)
	return jute.XidAuth
}

// clear deletes everything below a path.
func (w *twin) clear(c *raw, path string) {
	shown := path
	if shown == "" {
		shown = "/"
	}
	res := c.ok(jute.OpGetChildren, get(shown)).(*jute.ChildrenResponse)
	slices.Sort(res.Children)
	for _, name := range res.Children {
		below := path + "/" + name
		switch below {
		case "/zookeeper/config":
			continue
		case "/zookeeper", "/zookeeper/quota":
			w.clear(c, below)
			continue
		}
		w.clear(c, below)
		k := call{jute.OpDelete, &jute.PathVersionRequest{Path: below, Version: -1}}
		w.one(c, k)
	}
}

// programLength is how many steps one program has.
const programLength = 250

// compare runs one program on both and gives the number of requests made.
func compare(t *testing.T, seed uint64, ours, theirs *twin) int {
	t.Helper()
	p := newProgram(seed)
	ours.open(p.sessions)
	theirs.open(p.sessions)
	calls := 0
	var trail []string
	for i := range programLength {
		s := p.step()
		ours.run(s)
		theirs.run(s)
		calls += max(len(s.calls), 1)
		a, b := ours.took(), theirs.took()
		trail = append(trail, b)
		if a != b {
			for _, line := range trail[max(0, len(trail)-12):] {
				t.Log(line)
			}
			require.Equal(t, b, a, "seed %d step %d (expected is the real server)", seed, i)
		}
	}
	ours.end()
	theirs.end()
	require.Equal(t, theirs.took(), ours.took(), "seed %d: the end", seed)
	return calls
}

// TestTwoServersAgree: the same programs give the same answers twice, and the
// machinery that compares minizk with the real server works.
func TestTwoServersAgree(t *testing.T) {
	cfg := minizk.Config{ExtendedTypes: true, SuperDigest: tree.Digest("super:secret")}
	ours, again := newTwin(t, start(t, cfg).Addr()), newTwin(t, start(t, cfg).Addr())
	for seed := range uint64(8) {
		compare(t, seed, ours, again)
	}
}
