package minizk_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

func TestExpireSession(t *testing.T) {
	srv := start(t, minizk.Config{})
	a := dialRaw(t, srv.Addr(), 4000)
	a.ok(jute.OpCreate, create("/e", jute.FlagEphemeral))
	require.NoError(t, srv.ExpireSession(a.id))
	a.ended()
	_, _, there := srv.Node("/e")
	require.False(t, there)
	require.Zero(t, a.again(srv.Addr()).id)
	require.ErrorIs(t, srv.ExpireSession(a.id), minizk.ErrNoSession)
}

func TestSkipTime(t *testing.T) {
	srv := start(t, minizk.Config{ExtendedTypes: true})
	a := dialRaw(t, srv.Addr(), 4000)
	a.ok(jute.OpCreateTTL, &jute.CreateRequest{Path: "/t", ACL: jute.OpenACL(), Flags: jute.FlagPersistentTTL, TTL: 5000, HasTTL: true})
	srv.SkipTime(3 * time.Second)
	a.ok(jute.OpPing, &jute.NoBody{})
	srv.SkipTime(3 * time.Second)
	_, _, there := srv.Node("/t")
	require.False(t, there)
	require.Len(t, srv.Sessions(), 1, "heard of in time")
	srv.SkipTime(5 * time.Second)
	require.Empty(t, srv.Sessions())
	a.ended()
}

func TestDropReplies(t *testing.T) {
	srv := start(t, minizk.Config{})
	a := dialRaw(t, srv.Addr(), 4000)
	srv.DropReplies(minizk.Match{Path: "/a", Op: jute.OpCreate}, 1)
	a.ok(jute.OpCreate, create("/b", 0))
	_, _, err := a.do(jute.OpCreate, create("/a", 0))
	require.Error(t, err)
	_, _, there := srv.Node("/a")
	require.True(t, there, "committed, and nobody told")
	a = a.again(srv.Addr())
	require.Equal(t, jute.NodeExists, a.code(jute.OpCreate, create("/a", 0)), "it strikes once")
}

func TestCloseBefore(t *testing.T) {
	srv := start(t, minizk.Config{})
	a := dialRaw(t, srv.Addr(), 4000)
	undo := srv.CloseBefore(minizk.Match{Path: "/q/*"}, -1)
	a.ok(jute.OpPing, &jute.NoBody{})
	_, _, err := a.do(jute.OpCreate, create("/q/x", 0))
	require.Error(t, err)
	_, _, there := srv.Node("/q/x")
	require.False(t, there)
	undo()
	require.Equal(t, jute.NoNode, a.again(srv.Addr()).code(jute.OpCreate, create("/q/x", 0)))
}

func TestStall(t *testing.T) {
	srv := start(t, minizk.Config{})
	a, b := dialRaw(t, srv.Addr(), 4000), dialRaw(t, srv.Addr(), 4000)
	undo := srv.Stall(minizk.Match{Session: a.id})
	a.send(jute.OpCreate, create("/a", 0))
	b.ok(jute.OpCreate, create("/b", 0))
	require.NoError(t, a.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, _, err := a.receive()
	require.Error(t, err)
	_, _, there := srv.Node("/a")
	require.False(t, there)
	undo()
	require.NoError(t, a.SetReadDeadline(time.Now().Add(5*time.Second)))
	h, _, err := a.receive()
	require.NoError(t, err)
	require.Equal(t, jute.OK, h.Err)
}

func TestStallUntilExpiry(t *testing.T) {
	srv := start(t, minizk.Config{Tick: 50 * time.Millisecond})
	a := dialRaw(t, srv.Addr(), 200)
	srv.Stall(minizk.Match{})
	require.Eventually(t, func() bool { return len(srv.Sessions()) == 0 }, 5*time.Second, 5*time.Millisecond)
	require.NoError(t, srv.Close(), "a stalled connection does not keep the server")
	a.ended()
}

func TestHoldPings(t *testing.T) {
	srv := start(t, minizk.Config{Tick: 50 * time.Millisecond})
	a := dialRaw(t, srv.Addr(), 300)
	srv.HoldPings(minizk.Match{Session: a.id})
	for range 20 {
		a.send(jute.OpPing, &jute.NoBody{})
	}
	a.ended()
	require.Empty(t, srv.Sessions())
}

func TestDelays(t *testing.T) {
	srv := start(t, minizk.Config{})
	a, b := dialRaw(t, srv.Addr(), 4000), dialRaw(t, srv.Addr(), 4000)
	a.ok(jute.OpCreate, create("/a", 0))
	undo := srv.DelayReplies(minizk.Match{Op: jute.OpSetData}, 100*time.Millisecond)
	from := time.Now()
	a.ok(jute.OpGetData, watch("/a"))
	require.Less(t, time.Since(from), 90*time.Millisecond)
	from = time.Now()
	b.ok(jute.OpSetData, set("/a"))
	require.GreaterOrEqual(t, time.Since(from), 100*time.Millisecond)
	undo()
	a.ok(jute.OpGetData, watch("/a"))
	srv.DelayWatches(minizk.Match{Session: a.id, Path: "/a"}, 150*time.Millisecond)
	from = time.Now()
	b.ok(jute.OpSetData, set("/a"))
	require.Less(t, time.Since(from), 140*time.Millisecond)
	a.events = nil
	a.ok(jute.OpGetData, get("/a"))
	require.GreaterOrEqual(t, time.Since(from), 150*time.Millisecond, "the reply stays behind the event")
	require.Len(t, a.events, 1)
}

func TestRefuseConnections(t *testing.T) {
	srv := start(t, minizk.Config{})
	a := dialRaw(t, srv.Addr(), 4000)
	undo := srv.RefuseConnections()
	dialTCP(t, srv.Addr()).ended()
	a.ok(jute.OpPing, &jute.NoBody{})
	undo()
	dialRaw(t, srv.Addr(), 4000)
}

func TestCloseConnections(t *testing.T) {
	srv := start(t, minizk.Config{})
	a, b := dialRaw(t, srv.Addr(), 4000), dialRaw(t, srv.Addr(), 4000)
	require.Equal(t, 1, srv.CloseConnections(minizk.Match{Session: a.id}))
	a.ended()
	b.ok(jute.OpPing, &jute.NoBody{})
	a.again(srv.Addr()).ok(jute.OpPing, &jute.NoBody{})
}
