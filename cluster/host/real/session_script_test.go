package real

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// script is a ZooKeeper that does as it is told, at the far end of a pipe, and
// a client that writes and reads frames at the near end of the gate.
type script struct {
	t    *testing.T
	gate *zkGate
	door *zkDoor

	mu     sync.Mutex
	events []history.Event
	states []host.SessionState
	peers  chan net.Conn
}

const testSession = 0x1234

func newScript(t *testing.T) *script {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	s := &script{t: t, peers: make(chan net.Conn, 8)}
	s.gate = newZKGate("coordinator-0", func(e history.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}, zaptest.NewLogger(t))
	s.gate.connect = func(string, string, time.Duration) (net.Conn, error) {
		near, far := net.Pipe()
		s.peers <- far
		return near, nil
	}
	s.door = newZKDoor(s.gate, func(f func()) { f() }, func(st host.SessionState, _ int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.states = append(s.states, st)
	})
	require.True(t, s.gate.enter(s.door))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.gate.shut()
		require.NoError(t, s.gate.await(ctx))
	})
	return s
}

// saw waits until the node has been told exactly these states. Whoever changes
// a state delivers it after letting go of the door, so it may come a moment
// after the call that caused it returned.
func (s *script) saw(want ...host.SessionState) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Equal(want, s.states)
	}, 5*time.Second, time.Millisecond, "want the states %v", want)
}

// reports waits until the last event reported is this one.
func (s *script) reports(want history.Event) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.events) > 0 && s.events[len(s.events)-1] == want
	}, 5*time.Second, time.Millisecond, "want the event %v last", want)
}

// open dials and shakes hands.
func (s *script) open() (client net.Conn, server *peer) {
	s.t.Helper()
	client, err := s.door.dial("tcp", "server", time.Second)
	require.NoError(s.t, err)
	server = &peer{s.t, <-s.peers}
	s.t.Cleanup(func() { _ = server.conn.Close() })
	s.shake(client, server)
	return client, server
}

func (s *script) shake(client net.Conn, server *peer) {
	s.t.Helper()
	s.write(client, connectFrame(4000, 0, make([]byte, 16)))
	server.read()
	server.write(jute.AppendFrame(nil, &jute.ConnectResponse{TimeOut: 4000, SessionID: testSession, Passwd: make([]byte, 16)}))
	s.read(client)
	s.door.established()
}

func (s *script) write(c net.Conn, frame []byte) {
	s.t.Helper()
	n, err := c.Write(frame)
	require.NoError(s.t, err)
	require.Equal(s.t, len(frame), n)
}

// read reads one frame the way the library does: the length, then the rest.
func (s *script) read(c net.Conn) []byte {
	s.t.Helper()
	require.NoError(s.t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
	frame, err := readZKFrame(c)
	require.NoError(s.t, err)
	return frame[4:]
}

// call submits a request whose library writes the frame and reads the reply.
func (s *script) call(c net.Conn, frame []byte) <-chan zkResult {
	done := make(chan zkResult, 1)
	s.door.submit(&zkCall{
		complete: func(v any) { done <- v.(zkResult) },
		run: func() (any, error) {
			if _, err := c.Write(frame); err != nil {
				return nil, err
			}
			frame, err := readZKFrame(c)
			if err != nil {
				return nil, err
			}
			reply, err := decodeZKReply(frame[4:])
			if err == nil && reply.Err != jute.OK {
				err = reply.Err
			}
			return frame, err
		},
	})
	return done
}

// txns are the transactions reported so far.
func (s *script) txns() []history.Txn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []history.Txn
	for _, e := range s.events {
		if txn, ok := e.(history.Txn); ok {
			all = append(all, txn)
		}
	}
	return all
}

// peer is the server's end.
type peer struct {
	t    *testing.T
	conn net.Conn
}

func (p *peer) read() []byte {
	p.t.Helper()
	require.NoError(p.t, p.conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	frame, err := readZKFrame(p.conn)
	require.NoError(p.t, err)
	return frame[4:]
}

func (p *peer) write(frame []byte) {
	p.t.Helper()
	require.NoError(p.t, p.conn.SetWriteDeadline(time.Now().Add(5*time.Second)))
	_, err := p.conn.Write(frame)
	require.NoError(p.t, err)
}

// silent requires that nothing comes for a while.
func (p *peer) silent(d time.Duration) {
	p.t.Helper()
	require.NoError(p.t, p.conn.SetReadDeadline(time.Now().Add(d)))
	_, err := p.conn.Read(make([]byte, 1))
	require.Error(p.t, err)
}

// gone requires that the connection ends before anything more comes.
func (p *peer) gone() {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(5 * time.Second)) // fails if it has ended
	_, err := p.conn.Read(make([]byte, 1))
	require.ErrorIs(p.t, err, io.EOF)
}

func createReq(xid int32, name string, flags int32) []byte {
	return requestFrame(xid, jute.OpCreate, &jute.CreateRequest{Path: name, Data: []byte("data"), Flags: flags})
}

func getReq(xid int32, name string, watch bool) []byte {
	return requestFrame(xid, jute.OpGetData, &jute.PathWatchRequest{Path: name, Watch: watch})
}

func requestFrame(xid int32, op jute.OpCode, body jute.Record) []byte {
	return jute.AppendFrame(nil, &jute.RequestHeader{Xid: xid, Op: op}, body)
}

func replyFrame(xid int32, zxid int64, code jute.Code, body jute.Record) []byte {
	return jute.AppendFrame(nil, &jute.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}, body)
}

func eventFrame(kind jute.EventType, name string) []byte {
	return replyFrame(jute.XidNotification, -1, jute.OK, &jute.WatcherEvent{Type: kind, State: 3, Path: name})
}

func xidOf(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame)) }
