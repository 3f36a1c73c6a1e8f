package minizk_test

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
)

// The behaviour of a real client library over minizk: what its users rely on.

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// library connects go-zookeeper and tells of its session states.
type library struct {
	*zk.Conn
	t      *testing.T
	states <-chan zk.Event
	mu     sync.Mutex
	socket net.Conn
}

func connect(t *testing.T, srv *minizk.Server) *library {
	t.Helper()
	l := &library{t: t}
	c, states, err := zk.Connect([]string{srv.Addr()}, 4*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			s, err := net.DialTimeout(network, address, timeout)
			l.mu.Lock()
			l.socket = s
			l.mu.Unlock()
			return s, err
		}))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	l.Conn, l.states = c, states
	l.await(zk.StateHasSession)
	return l
}

func (l *library) await(want zk.State) {
	l.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case e := <-l.states:
			if e.Type == zk.EventSession && e.State == want {
				return
			}
		case <-deadline:
			l.t.Fatalf("no %v in time", want)
		}
	}
}

// cut breaks the client's socket.
func (l *library) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.socket.Close()
}

func open() []zk.ACL { return zk.WorldACL(zk.PermAll) }

func (l *library) make(path string, flags int32) string {
	l.t.Helper()
	name, err := l.Create(path, []byte("x"), flags, open())
	require.NoError(l.t, err)
	return name
}

func TestLibraryRequests(t *testing.T) {
	srv := start(t, minizk.Config{ExtendedTypes: true})
	c := connect(t, srv)
	c.make("/a", 0)
	require.Equal(t, "/a/s0000000000", c.make("/a/s", zk.FlagSequence))
	require.Equal(t, "/a/s0000000001", c.make("/a/s", zk.FlagEphemeralSequential))
	data, stat, err := c.Get("/a")
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	require.EqualValues(t, 2, stat.NumChildren)
	stat, err = c.Set("/a", []byte("y"), 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, stat.Version)
	_, err = c.Set("/a", nil, 0)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	names, _, err := c.Children("/a")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"s0000000000", "s0000000001"}, names)
	require.ErrorIs(t, c.Delete("/a", -1), zk.ErrNotEmpty)
	there, _, err := c.Exists("/none")
	require.NoError(t, err)
	require.False(t, there)
	_, err = c.Sync("/a")
	require.NoError(t, err)
	_, err = c.CreateContainer("/box", nil, zk.FlagContainer, open())
	require.NoError(t, err)
	_, err = c.CreateTTL("/ttl", nil, zk.FlagTTL, open(), time.Minute)
	require.NoError(t, err)
	acl, stat, err := c.GetACL("/a")
	require.NoError(t, err)
	require.Equal(t, open(), acl)
	_, err = c.SetACL("/a", zk.WorldACL(zk.PermRead), stat.Aversion)
	require.NoError(t, err)
	_, err = c.Set("/a", nil, -1)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NoError(t, c.AddAuth("digest", []byte("joe:pw")))
	_, err = c.Create("/mine", nil, 0, zk.AuthACL(zk.PermAll))
	require.NoError(t, err)

	res, err := c.Multi(&zk.CheckVersionRequest{Path: "/a", Version: 1}, &zk.CreateRequest{Path: "/m", Acl: open()})
	require.NoError(t, err)
	require.Equal(t, "/m", res[1].String)
	_, err = c.Multi(&zk.DeleteRequest{Path: "/m", Version: -1}, &zk.CheckVersionRequest{Path: "/a", Version: 7})
	require.ErrorIs(t, err, zk.ErrBadVersion)
	there, _, err = c.Exists("/m")
	require.NoError(t, err)
	require.True(t, there)
}

func TestLibraryKeepsItsSessionOverACut(t *testing.T) {
	srv := start(t, minizk.Config{})
	c, other := connect(t, srv), connect(t, srv)
	id := c.SessionID()
	c.make("/e", zk.FlagEphemeral)
	c.make("/a", 0)
	_, _, changed, err := c.GetW("/a")
	require.NoError(t, err)
	_, _, missed, err := c.ChildrenW("/")
	require.NoError(t, err)
	c.cut()
	c.await(zk.StateDisconnected)
	other.make("/b", 0)
	c.await(zk.StateHasSession)
	require.Equal(t, id, c.SessionID())
	require.Equal(t, zk.EventNodeChildrenChanged, (<-missed).Type, "what was missed is told")
	_, err = other.Set("/a", nil, -1)
	require.NoError(t, err)
	require.Equal(t, zk.EventNodeDataChanged, (<-changed).Type, "watches are armed again")
	_, stat, err := c.Get("/e")
	require.NoError(t, err)
	require.Equal(t, id, stat.EphemeralOwner)
}

func TestLibraryIsToldOfExpiry(t *testing.T) {
	srv := start(t, minizk.Config{})
	c, other := connect(t, srv), connect(t, srv)
	c.make("/e", zk.FlagEphemeral)
	_, _, gone, err := other.ExistsW("/e")
	require.NoError(t, err)
	_, _, own, err := c.GetW("/e")
	require.NoError(t, err)
	require.NoError(t, srv.ExpireSession(c.SessionID()))
	require.Equal(t, zk.EventNodeDeleted, (<-gone).Type)
	require.Contains(t, []zk.EventType{zk.EventNodeDeleted, zk.EventNotWatching}, (<-own).Type)
	c.await(zk.StateExpired)
}

func TestLibraryCannotKnowTheOutcomeOfALostReply(t *testing.T) {
	srv := start(t, minizk.Config{})
	c := connect(t, srv)
	srv.DropReplies(minizk.Match{Path: "/committed"}, 1)
	_, err := c.Create("/committed", nil, 0, open())
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	srv.CloseBefore(minizk.Match{Path: "/never"}, 1)
	c.await(zk.StateHasSession)
	_, err = c.Create("/never", nil, 0, open())
	require.ErrorIs(t, err, zk.ErrConnectionClosed)
	require.Subset(t, srv.Paths(), []string{"/committed"})
	require.NotContains(t, srv.Paths(), "/never")
}

func TestLibraryLock(t *testing.T) {
	srv := start(t, minizk.Config{})
	const clients, rounds = 4, 10
	var mu sync.Mutex
	var order []int
	inside := 0
	var wg sync.WaitGroup
	for i := range clients {
		c := connect(t, srv)
		wg.Go(func() {
			for range rounds {
				lock := zk.NewLock(c.Conn, "/lock", open())
				if err := lock.Lock(); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				if inside != 1 {
					t.Error("two hold the lock")
				}
				order = append(order, i)
				inside--
				mu.Unlock()
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, order, clients*rounds)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(order))), clients)
}

func TestLibraryOverARestart(t *testing.T) {
	srv := start(t, minizk.Config{})
	c := connect(t, srv)
	c.make("/e", zk.FlagEphemeral)
	require.NoError(t, srv.Stop())
	c.await(zk.StateDisconnected)
	require.NoError(t, srv.Restart())
	c.await(zk.StateHasSession)
	_, _, there := srv.Node("/e")
	require.True(t, there)
	require.Len(t, srv.Sessions(), 1)
}
