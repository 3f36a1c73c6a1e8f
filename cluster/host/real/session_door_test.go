package real

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// noCond is a condition that nobody waits on.
type noCond struct{ host.Cond }

func (noCond) Broadcast() {}

// watched sets a watch by a get, and leaves it armed.
func watched(t *testing.T, s *script) (w *zkWatch) {
	t.Helper()
	client, server := s.open()
	w = &zkWatch{path: "/a", cond: noCond{}}
	done := make(chan zkResult, 1)
	s.door.submit(&zkCall{
		watch:    w,
		complete: func(v any) { done <- v.(zkResult) },
		run: func() (any, error) {
			if _, err := client.Write(getReq(1, "/a", true)); err != nil {
				return nil, err
			}
			return readZKFrame(client)
		},
	})
	server.read()
	// An event from before the watch was set does not fire it.
	server.write(replyFrame(1, 5, jute.OK, &jute.GetDataResponse{}))
	require.NoError(t, (<-done).err)
	require.NoError(t, client.Close())
	return w
}

func TestConnectedMeansThatWatchesAreRenewed(t *testing.T) {
	s := newScript(t)
	w := watched(t, s)
	client, server := s.open()
	s.saw(host.Connected, host.Disconnected) // the handshake is not enough
	s.write(client, requestFrame(2, jute.OpSetWatches, &jute.SetWatchesRequest{Data: []string{"/a"}}))
	s.saw(host.Connected, host.Disconnected, host.Connected)
	server.read()
	server.write(eventFrame(jute.EventNodeChildrenChanged, "/a"))
	s.read(client)
	require.False(t, w.Fired(), "a data watch does not see children")
	server.write(eventFrame(jute.EventNodeDataChanged, "/a"))
	s.read(client)
	require.True(t, w.Fired())
}

func TestWhatOvertakesTheRenewalBreaksTheConnection(t *testing.T) {
	s := newScript(t)
	watched(t, s)
	client, server := s.open()
	s.write(client, requestFrame(jute.XidPing, jute.OpAuth, &jute.AuthPacket{}))
	server.read()
	s.write(client, getReq(2, "/a", false))
	server.gone()
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, errZKStrict)
}

func TestCallsFailFastWhileDisconnected(t *testing.T) {
	s := newScript(t)
	result := func() error {
		r := <-s.call(nil, nil)
		return r.err
	}
	require.ErrorIs(t, result(), host.ErrNotSent)
	client, _ := s.open()
	require.NoError(t, client.Close())
	require.ErrorIs(t, result(), host.ErrNotSent)
	s.door.expired()
	require.ErrorIs(t, result(), host.ErrExpired)
	_, err := s.door.dial("tcp", "server", time.Second)
	require.ErrorIs(t, err, errZKShut, "no new session comes after the old one")
	s.reports(history.Session{Node: "coordinator-0", ID: testSession, State: history.SessionExpired})
}

// A call that is in the library's queue when the connection breaks is answered
// "not sent", and that stays true: its frame is refused on the next connection.
func TestAnUnwrittenCallIsRevoked(t *testing.T) {
	s := newScript(t)
	first, _ := s.open()
	writeNow := make(chan struct{})
	written := make(chan error, 1)
	done := make(chan zkResult, 1)
	s.door.submit(&zkCall{
		complete: func(v any) { done <- v.(zkResult) },
		run: func() (any, error) {
			<-writeNow
			client, _ := s.open()
			if _, err := client.Write(createReq(1, "/a", 0)); err != nil {
				return nil, err
			}
			_, err := client.Read(make([]byte, 1))
			written <- err
			return nil, err
		},
	})
	behind := s.call(first, createReq(2, "/b", 0))
	require.NoError(t, first.Close())
	require.ErrorIs(t, (<-done).err, host.ErrNotSent)
	require.ErrorIs(t, (<-behind).err, host.ErrNotSent)
	close(writeNow)
	require.ErrorIs(t, <-written, errZKStrict)
	require.Empty(t, s.txns())
}

func TestErrorsHaveThreeClasses(t *testing.T) {
	d := newZKDoor(newZKGate("n", func(history.Event) {}, nil), func(f func()) { f() }, func(host.SessionState, int64) {})
	library := errors.New("zk: connection closed")
	cases := []struct {
		name string
		call zkCall
		want error
	}{
		{"never written", zkCall{}, host.ErrNotSent},
		{"written, no answer", zkCall{written: true}, host.ErrConnectionLoss},
		{"answered, but cut before delivery", zkCall{written: true, code: jute.NodeExists}, host.ErrConnectionLoss},
		{"refused by the server", zkCall{written: true, delivered: true, code: jute.BadVersion}, host.ErrBadVersion},
		{"too late for the server", zkCall{written: true, delivered: true, code: jute.SessionExpired}, host.ErrExpired},
		{"done, but the library was closed meanwhile", zkCall{written: true, delivered: true}, host.ErrConnectionLoss},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { require.ErrorIs(t, d.classify(&c.call, library), c.want) })
	}
}
