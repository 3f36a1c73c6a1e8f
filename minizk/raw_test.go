package minizk_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// start runs a server for one test and checks that nothing of it is left.
func start(tb testing.TB, cfg minizk.Config) *minizk.Server {
	tb.Helper()
	before := goleak.IgnoreCurrent()
	srv, err := minizk.Start(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, srv.Close())
		if tt, ok := tb.(*testing.T); ok {
			goleak.VerifyNone(tt, before)
		}
	})
	return srv
}

// raw is a client that speaks frames.
type raw struct {
	testing.TB
	net.Conn
	id     int64
	passwd []byte
	agreed int32
	xid    int32
	buf    []byte
	out    []byte
	events []jute.WatcherEvent
	lastZ  int64
}

func dialTCP(tb testing.TB, addr string) *raw {
	tb.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	require.NoError(tb, c.SetDeadline(time.Now().Add(time.Minute)))
	return &raw{TB: tb, Conn: c}
}

func dialRaw(tb testing.TB, addr string, timeout int32) *raw {
	tb.Helper()
	r := dialTCP(tb, addr)
	require.NoError(tb, r.greet(&jute.ConnectRequest{TimeOut: timeout, Passwd: make([]byte, 16), HasReadOnly: true}))
	require.NotZero(tb, r.id)
	return r
}

// again connects with the session of another connection.
func (r *raw) again(addr string) *raw {
	r.Helper()
	n := dialTCP(r.TB, addr)
	require.NoError(r, n.greet(&jute.ConnectRequest{TimeOut: r.agreed, SessionID: r.id, Passwd: r.passwd, LastZxidSeen: r.lastZ}))
	return n
}

func (r *raw) greet(req *jute.ConnectRequest) error {
	if _, err := r.Write(jute.AppendFrame(nil, req)); err != nil {
		return err
	}
	frame, err := jute.ReadFrame(r.Conn, nil, 1<<20)
	if err != nil {
		return err
	}
	var res jute.ConnectResponse
	if err := jute.Unmarshal(frame, &res); err != nil {
		return err
	}
	r.id, r.passwd, r.agreed = res.SessionID, res.Passwd, res.TimeOut
	return nil
}

// send writes a request and gives its xid.
func (r *raw) send(op jute.OpCode, req jute.Record) int32 {
	r.xid++
	h := jute.RequestHeader{Xid: r.xid, Op: op}
	if op == jute.OpPing {
		h.Xid = jute.XidPing
	}
	r.out = jute.AppendFrame(r.out[:0], &h, req)
	_, _ = r.Write(r.out) // the answer tells
	return h.Xid
}

// receive reads the next reply, past watch events, which are kept.
func (r *raw) receive() (jute.ReplyHeader, *jute.Decoder, error) {
	for {
		frame, err := jute.ReadFrame(r.Conn, r.buf, 4<<20)
		if err != nil {
			return jute.ReplyHeader{}, nil, err
		}
		r.buf = frame[:0]
		d := jute.NewDecoder(frame)
		var h jute.ReplyHeader
		h.Decode(d)
		if h.Xid != jute.XidNotification {
			r.lastZ = max(r.lastZ, h.Zxid)
			return h, d, d.Err()
		}
		var e jute.WatcherEvent
		e.Decode(d)
		r.events = append(r.events, e)
	}
}

// do sends one request and decodes its answer.
func (r *raw) do(op jute.OpCode, req jute.Record) (jute.Record, jute.ReplyHeader, error) {
	xid := r.send(op, req)
	h, d, err := r.receive()
	if err != nil {
		return nil, h, err
	}
	require.Equal(r, xid, h.Xid)
	if h.Err != jute.OK {
		return nil, h, nil //nolint:nilerr // the code is in the header
	}
	body := jute.NewResponse(op)
	body.Decode(d)
	return body, h, d.Err()
}

func (r *raw) ok(op jute.OpCode, req jute.Record) jute.Record {
	r.Helper()
	body, h, err := r.do(op, req)
	require.NoError(r, err)
	require.Equal(r, jute.OK, h.Err)
	return body
}

func (r *raw) code(op jute.OpCode, req jute.Record) jute.Code {
	r.Helper()
	_, h, err := r.do(op, req)
	require.NoError(r, err)
	return h.Err
}

// ended reads until the stream ends.
func (r *raw) ended() {
	r.Helper()
	require.NoError(r, r.SetReadDeadline(time.Now().Add(5*time.Second)))
	_, err := io.Copy(io.Discard, r.Conn)
	var ne net.Error
	require.False(r, errors.As(err, &ne) && ne.Timeout(), "the stream goes on")
}

func create(path string, flags int32) *jute.CreateRequest {
	return &jute.CreateRequest{Path: path, Data: []byte("x"), ACL: jute.OpenACL(), Flags: flags}
}

func get(path string) *jute.PathWatchRequest { return &jute.PathWatchRequest{Path: path} }

func watch(path string) *jute.PathWatchRequest {
	return &jute.PathWatchRequest{Path: path, Watch: true}
}

func set(path string) *jute.SetDataRequest {
	return &jute.SetDataRequest{Path: path, Data: []byte("y"), Version: -1}
}

func TestRepliesComeInOrderAndPipelined(t *testing.T) {
	srv := start(t, minizk.Config{})
	r := dialRaw(t, srv.Addr(), 4000)
	r.ok(jute.OpCreate, create("/a", 0))
	const n = 500
	var out []byte
	for i := range n {
		h := jute.RequestHeader{Xid: int32(i + 100), Op: jute.OpSetData}
		out = jute.AppendFrame(out, &h, set("/a"))
	}
	_, err := r.Write(out)
	require.NoError(t, err)
	for i := range n {
		h, _, err := r.receive()
		require.NoError(t, err)
		require.EqualValues(t, i+100, h.Xid)
	}
	_, stat, ok := srv.Node("/a")
	require.True(t, ok)
	require.EqualValues(t, n, stat.Version)
}

func TestEventsPrecedeTheReplyThatShowsTheChange(t *testing.T) {
	srv := start(t, minizk.Config{})
	a, b := dialRaw(t, srv.Addr(), 4000), dialRaw(t, srv.Addr(), 4000)
	a.ok(jute.OpCreate, create("/a", 0))
	for i := range 300 {
		b.events = nil
		b.ok(jute.OpGetData, watch("/a"))
		a.send(jute.OpSetData, set("/a"))
		for {
			now := b.ok(jute.OpGetData, get("/a")).(*jute.GetDataResponse)
			if int(now.Stat.Version) == i+1 {
				require.Len(t, b.events, 1, "the event comes before the data")
				break
			}
			require.Empty(t, b.events, "and not before the change")
		}
		_, _, err := a.receive()
		require.NoError(t, err)
	}
}

func TestFramesThatAreRefused(t *testing.T) {
	srv := start(t, minizk.Config{MaxFrame: 1000})
	r := dialRaw(t, srv.Addr(), 4000)
	_, err := r.Write(binary.BigEndian.AppendUint32(nil, 1001))
	require.NoError(t, err)
	r.ended()

	r = dialRaw(t, srv.Addr(), 4000)
	_, err = r.Write(binary.BigEndian.AppendUint32(nil, 0xffffffff))
	require.NoError(t, err)
	r.ended()

	// A header alone: the body is missing.
	r = dialRaw(t, srv.Addr(), 4000)
	for _, op := range []jute.OpCode{jute.OpCreate, jute.OpGetData, jute.OpMulti, jute.OpSetWatches2} {
		require.Equal(t, jute.MarshallingError, r.code(op, &jute.NoBody{}), op)
	}
	// A null path.
	require.Equal(t, jute.MarshallingError, r.code(jute.OpGetACL, &jute.NumberResponse{Number: -1}))
	// An unknown operation ends the connection after an answer.
	require.Equal(t, jute.Unimplemented, r.code(jute.OpCode(55), &jute.NoBody{}))
	r.ended()

	r = dialRaw(t, srv.Addr(), 4000)
	_, err = r.Write([]byte{0, 0, 0, 3, 1, 2, 3})
	require.NoError(t, err)
	r.ended()
}

func TestLimits(t *testing.T) {
	srv := start(t, minizk.Config{MaxConns: 3, MaxConnsPerIP: 2})
	a := dialRaw(t, srv.Addr(), 4000)
	dialRaw(t, srv.Addr(), 4000)
	dialTCP(t, srv.Addr()).ended()
	require.NoError(t, a.Close())
	require.Eventually(t, func() bool { return srv.Count().Conns == 1 }, 5*time.Second, time.Millisecond)
	dialRaw(t, srv.Addr(), 4000)
}

func TestSessionsMoveAndResume(t *testing.T) {
	srv := start(t, minizk.Config{})
	a := dialRaw(t, srv.Addr(), 4000)
	require.EqualValues(t, 4000, a.agreed)
	a.ok(jute.OpCreate, create("/e", jute.FlagEphemeral))
	b := a.again(srv.Addr())
	require.Equal(t, a.id, b.id)
	a.ended()
	b.ok(jute.OpGetData, get("/e"))
	b.ok(jute.OpCloseSession, &jute.NoBody{})
	b.ended()
	_, _, there := srv.Node("/e")
	require.False(t, there)
	c := dialTCP(t, srv.Addr())
	require.NoError(t, c.greet(&jute.ConnectRequest{SessionID: a.id, Passwd: a.passwd, TimeOut: 4000}))
	require.Zero(t, c.id, "closed")
	c.ended()
	c = dialTCP(t, srv.Addr())
	require.Error(t, c.greet(&jute.ConnectRequest{LastZxidSeen: 1 << 40, TimeOut: 4000}), "the client is ahead of the server")
}

func TestExpiryOfASilentSession(t *testing.T) {
	srv := start(t, minizk.Config{Tick: 50 * time.Millisecond})
	a, b := dialRaw(t, srv.Addr(), 200), dialRaw(t, srv.Addr(), 1000)
	a.ok(jute.OpCreate, create("/e", jute.FlagEphemeral))
	b.ok(jute.OpExists, watch("/e"))
	from := time.Now()
	a.ended()
	took := time.Since(from)
	require.Greater(t, took, 150*time.Millisecond)
	require.Less(t, took, 600*time.Millisecond)
	b.ok(jute.OpPing, &jute.NoBody{})
	require.Equal(t, []jute.WatcherEvent{{Type: jute.EventNodeDeleted, State: jute.StateSyncConnected, Path: "/e"}}, b.events)
}

func word(tb testing.TB, addr, w string) string {
	tb.Helper()
	c := dialTCP(tb, addr)
	_, err := io.WriteString(c, w)
	require.NoError(tb, err)
	text, err := io.ReadAll(c)
	require.NoError(tb, err)
	return string(text)
}

func TestFourLetterWords(t *testing.T) {
	srv := start(t, minizk.Config{})
	a := dialRaw(t, srv.Addr(), 4000)
	a.ok(jute.OpCreate, create("/e", jute.FlagEphemeral))
	a.ok(jute.OpGetChildren, watch("/"))
	for w, want := range map[string][]string{
		"ruok": {"imok"},
		"srvr": {"Zookeeper version: ", "Mode: standalone", "Node count: 5", "Zxid: 0x2", "Connections: 2"},
		"stat": {"Clients:\n 127.0.0.1", "recved=2"},
		"mntr": {"zk_watch_count\t1\n", "zk_ephemerals_count\t1\n", "zk_znode_count\t5\n"},
		"cons": {"lop=getChildren", "to=4000"},
		"dump": {"Sessions with Ephemerals (1):", "\t/e\n"},
		"wchs": {"1 connections watching 1 paths\nTotal watches:1\n"},
		"wchc": {"\t/\n"},
		"wchp": {"/\n\t0x"},
		"conf": {"tickTime=500", "maxSessionTimeout=10000"},
		"envi": {"zookeeper.version"},
		"isro": {"rw"},
		"srst": {"reset"},
	} {
		got := word(t, srv.Addr(), w)
		for _, part := range want {
			require.Contains(t, got, part, w)
		}
	}
}

func TestClosingAndRestarting(t *testing.T) {
	srv := start(t, minizk.Config{})
	a := dialRaw(t, srv.Addr(), 4000)
	a.ok(jute.OpCreate, create("/e", jute.FlagEphemeral))
	require.NoError(t, srv.Stop())
	a.ended()
	_, err := net.DialTimeout("tcp", srv.Addr(), time.Second)
	require.Error(t, err)
	srv.SkipTime(time.Hour)
	require.NoError(t, srv.Restart())
	b := a.again(srv.Addr())
	require.Equal(t, a.id, b.id)
	b.ok(jute.OpGetData, get("/e"))
	require.NoError(t, srv.Close())
	require.NoError(t, srv.Close())
	b.ended()
	require.ErrorIs(t, srv.Restart(), minizk.ErrClosed)
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []minizk.Config{{Tick: -1}, {Tick: 1}, {MaxFrame: -1}, {Addr: "nowhere:at:all"}} {
		_, err := minizk.Start(cfg)
		require.ErrorContains(t, err, "start minizk: ")
	}
}
