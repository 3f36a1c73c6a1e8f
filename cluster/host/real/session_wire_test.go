package real

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

func TestGatePassesFramesInOrderHoweverTheyAreCut(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	done := make(chan error, 1)
	go func() {
		for xid := int32(1); xid <= 50; xid++ {
			if got := server.read(); xidOf(got) != xid {
				done <- io.ErrUnexpectedEOF
				return
			}
		}
		for xid := int32(1); xid <= 50; xid++ {
			server.write(replyFrame(xid, int64(100+xid), jute.OK, &jute.PathResponse{Path: "/a"}))
		}
		done <- nil
	}()
	for xid := int32(1); xid <= 50; xid++ {
		bytes := requestFrame(xid, jute.OpSetWatches, &jute.SetWatchesRequest{Data: []string{"/a"}})
		for len(bytes) > 0 { // three bytes at a time, across the borders of frames
			n := min(3, len(bytes))
			s.write(client, bytes[:n])
			bytes = bytes[n:]
		}
	}
	for xid := int32(1); xid <= 50; xid++ {
		require.Equal(t, xid, xidOf(s.read(client)))
	}
	require.NoError(t, <-done)
}

func TestHoldIsABlackHoleAndHealingCuts(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	undo := zkControl{gate: s.gate}.Hold(time.Minute)
	s.write(client, requestFrame(jute.XidPing, jute.OpPing, nil))
	server.silent(30 * time.Millisecond)

	require.NoError(t, client.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := client.Read(make([]byte, 4))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a client in a black hole notices by its deadline")
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	require.NoError(t, client.SetWriteDeadline(time.Now().Add(-time.Second)))
	_, err = client.Write(requestFrame(jute.XidPing, jute.OpPing, nil))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	undo()
	undo()
	require.NoError(t, client.SetReadDeadline(time.Now().Add(5*time.Second)))
	_, err = client.Read(make([]byte, 4))
	require.ErrorIs(t, err, errZKHealed)
	server.gone() // and so is what was written into the hold
	s.saw(host.Connected, host.Disconnected)
}

func TestHoldEndsByItsLeaseAndOverlappingHoldsAdd(t *testing.T) {
	s := newScript(t)
	client, _ := s.open()
	c := zkControl{gate: s.gate}
	long := c.Hold(time.Minute)
	c.Hold(5 * time.Millisecond)
	require.NoError(t, client.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := client.Read(make([]byte, 4))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	long()
	require.NoError(t, client.SetReadDeadline(time.Now().Add(5*time.Second)))
	_, err = client.Read(make([]byte, 4))
	require.ErrorIs(t, err, errZKHealed)
}

func TestDelayHoldsBackBothWaysAndWatchesApart(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	c := zkControl{gate: s.gate}

	undo := c.Delay(40*time.Millisecond, time.Minute)
	start := time.Now()
	s.write(client, requestFrame(1, jute.OpSetWatches, &jute.SetWatchesRequest{}))
	server.read()
	require.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond)
	start = time.Now()
	server.write(replyFrame(1, 7, jute.OK, nil))
	s.read(client)
	require.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond)
	undo()

	c.DelayWatches(40*time.Millisecond, time.Minute)
	s.write(client, requestFrame(2, jute.OpSetWatches, &jute.SetWatchesRequest{}))
	server.read()
	start = time.Now()
	server.write(eventFrame(jute.EventNodeDeleted, "/a"))
	server.write(replyFrame(2, 8, jute.OK, nil))
	require.Equal(t, jute.XidNotification, xidOf(s.read(client)), "the order stays")
	require.Equal(t, int32(2), xidOf(s.read(client)))
	require.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond)
}

func TestCutBeforeNeverReachesTheServer(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	zkControl{gate: s.gate}.CutBefore("", time.Minute)
	get := s.call(client, getReq(1, "/a", false))
	require.Equal(t, int32(1), xidOf(server.read()), "reads are not meant by the empty name")
	server.write(replyFrame(1, 5, jute.OK, &jute.GetDataResponse{}))
	require.NoError(t, (<-get).err)

	create := s.call(client, createReq(2, "/a", 0))
	server.gone()
	require.ErrorIs(t, (<-create).err, host.ErrConnectionLoss, "the node cannot know that it was not sent")
	require.Eventually(t, func() bool { return len(s.txns()) == 1 }, 5*time.Second, time.Millisecond)
	require.Equal(t, history.Txn{
		Node: "coordinator-0", Session: testSession, Op: "create", Paths: []string{"/a"}, Error: "not sent",
	}, s.txns()[0])
}

func TestCutAfterIsCommittedAndUnknown(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	zkControl{gate: s.gate}.CutAfter("create", time.Minute)
	failing := s.call(client, createReq(1, "/a", 0))
	server.read()
	server.write(replyFrame(1, 8, jute.NodeExists, nil))
	require.ErrorIs(t, (<-failing).err, host.ErrNodeExists, "what was not committed is not cut")

	create := s.call(client, createReq(2, "/b-", jute.FlagEphemeralSequential))
	server.read()
	server.write(replyFrame(2, 9, jute.OK, &jute.PathResponse{Path: "/b-0000000003"}))
	require.ErrorIs(t, (<-create).err, host.ErrConnectionLoss)
	require.Equal(t, []history.Txn{
		{Node: "coordinator-0", Session: testSession, Zxid: 8, Op: "create", Paths: []string{"/a"}, Error: "node exists"},
		{Node: "coordinator-0", Session: testSession, Zxid: 9, Op: "create", Paths: []string{"/b-0000000003"}, Ephemeral: true},
	}, s.txns())
}

func TestTransactionsTellGuardsOwnersAndFailures(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	create := s.call(client, createReq(1, "/own", jute.FlagEphemeral))
	server.read()
	server.write(replyFrame(1, 1, jute.OK, &jute.PathResponse{Path: "/own"}))
	require.NoError(t, (<-create).err)

	multi := func(xid int32, paths ...string) <-chan zkResult {
		ops := []jute.MultiOp{{Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: "/epoch", Version: 4}}}
		for _, p := range paths {
			ops = append(ops, jute.MultiOp{Op: jute.OpSetData, Request: &jute.SetDataRequest{Path: p}})
		}
		return s.call(client, requestFrame(xid, jute.OpMulti, &jute.MultiRequest{Ops: ops}))
	}
	ok := multi(2, "/own")
	server.read()
	server.write(replyFrame(2, 2, jute.OK, &jute.MultiResponse{Results: []jute.MultiResult{
		{Op: jute.OpCheck, Response: &jute.NoBody{}}, {Op: jute.OpSetData, Response: &jute.StatResponse{}},
	}}))
	require.NoError(t, (<-ok).err)
	fenced := multi(3, "/own", "/lai")
	server.read()
	failure := func(code jute.Code) jute.MultiResult {
		return jute.MultiResult{Op: jute.OpError, Err: code, Response: &jute.ErrorResponse{Err: code}}
	}
	server.write(replyFrame(3, 3, jute.OK, &jute.MultiResponse{Results: []jute.MultiResult{
		failure(jute.BadVersion), failure(jute.RuntimeInconsistency), failure(jute.RuntimeInconsistency),
	}}))
	<-fenced
	lost := multi(4, "/lai")
	server.read()
	require.NoError(t, server.conn.Close())
	require.ErrorIs(t, (<-lost).err, host.ErrConnectionLoss)
	require.NoError(t, client.Close())

	base := history.Txn{Node: "coordinator-0", Session: testSession, Op: "multi", Guard: "/epoch"}
	want := []history.Txn{base, base, base}
	want[0].Zxid, want[0].Paths, want[0].Ephemeral = 2, []string{"/own"}, true
	want[1].Zxid, want[1].Paths, want[1].Error = 3, []string{"/own", "/lai"}, "bad version"
	want[2].Paths, want[2].Error = []string{"/lai"}, "unknown"
	require.Eventually(t, func() bool { return len(s.txns()) == 4 }, 5*time.Second, time.Millisecond)
	require.Equal(t, want, s.txns()[1:])
}

func TestTapsSeeRequestsBeforeTheyAreSent(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	var seen []host.ZKPassing
	c := zkControl{gate: s.gate}
	var hold host.Undo
	undo := c.Tap(func(p host.ZKPassing) {
		seen = append(seen, p)
		if !p.Reply {
			hold = c.Hold(time.Minute) // a fault aimed at this very request
		}
	})
	create := s.call(client, createReq(1, "/a", 0))
	server.silent(30 * time.Millisecond)
	undo()
	hold()
	require.ErrorIs(t, (<-create).err, host.ErrConnectionLoss)
	require.Equal(t, []host.ZKPassing{{Node: "coordinator-0", Op: "create", Paths: []string{"/a"}}}, seen)
}

func TestInjectedCloseIsHiddenFromTheLibrary(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	done := make(chan error, 1)
	go func() { done <- zkControl{gate: s.gate}.expire(host.ByInjection) }()
	frame := server.read()
	require.Equal(t, closeSessionFrame(zkInjectedXid)[4:], frame)
	server.write(replyFrame(zkInjectedXid, 11, jute.OK, nil))
	require.NoError(t, <-done)
	server.write(eventFrame(jute.EventNodeDeleted, "/a"))
	require.Equal(t, jute.XidNotification, xidOf(s.read(client)), "the reply is not the library's")
	require.Equal(t, []history.Txn{
		{Node: "coordinator-0", Session: testSession, Zxid: 11, Op: "closeSession", Paths: []string{}},
	}, s.txns())
}

func TestDialsAreHeldRefusedAndShut(t *testing.T) {
	s := newScript(t)
	c := zkControl{gate: s.gate}
	refuse := c.RefuseDials(time.Minute)
	_, err := s.door.dial("tcp", "server", time.Second)
	require.ErrorIs(t, err, errZKRefuse)
	refuse()

	hold := c.Hold(time.Minute)
	dialed := make(chan error, 1)
	go func() {
		_, err := s.door.dial("tcp", "server", time.Second)
		dialed <- err
	}()
	select {
	case err := <-dialed:
		t.Fatal("a held dial returned", err)
	case <-time.After(20 * time.Millisecond):
	}
	hold()
	require.NoError(t, <-dialed)

	c.Hold(time.Minute)
	go func() {
		_, err := s.door.dial("tcp", "server", time.Second)
		dialed <- err
	}()
	s.door.kill()
	require.ErrorIs(t, <-dialed, errZKShut)
}

func TestKillLetsNothingOut(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	zkControl{gate: s.gate}.Delay(time.Hour, time.Hour)
	create := s.call(client, createReq(1, "/a", 0))
	s.door.kill()
	require.Error(t, (<-create).err)
	server.gone()
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, errZKShut)
	require.Zero(t, zkControl{gate: s.gate}.Current())
}

func TestWhatWasWrittenBeforeACloseStillGoesOut(t *testing.T) {
	s := newScript(t)
	client, server := s.open()
	zkControl{gate: s.gate}.Delay(30*time.Millisecond, time.Minute)
	s.write(client, requestFrame(1, jute.OpSetWatches, &jute.SetWatchesRequest{}))
	require.NoError(t, client.Close())
	require.Equal(t, int32(1), xidOf(server.read()))
}
