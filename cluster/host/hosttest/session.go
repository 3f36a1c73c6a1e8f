package hosttest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// sessionTimeout is what the cases ask for. Shorter ones would be missed by
// clients that ping every third of it and reconnect after a second.
const sessionTimeout = 3 * time.Second

// RunSessions runs the cases of ZooKeeper sessions: what node code may rely on,
// and what faults do, over any ZooKeeper. It need not be empty: every case
// works below a node of its own, and groups of cases run at the same time. The
// ZooKeeper must grant a session time-out of three seconds, and end a session
// no more than two seconds too late.
func RunSessions(t *testing.T, make Maker) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"data", sessionDataCases()},
		{"watches", sessionWatchCases()},
		{"cut", sessionCutCases()},
		{"short hole", []testCase{{"a short black hole disconnects and the session lives", zkShortHole}}},
		{"long hole", []testCase{{"a long black hole ends the session, and healing tells", zkLongHole}}},
		{"end", sessionEndCases()},
		{"kill", []testCase{{"a killed node's session ends by its time-out", zkKilled}}},
		{"pause", []testCase{{"a node paused for too long finds its session expired", zkPaused}}},
		{"faults", sessionFaultCases()},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel() // much of it is waiting for time to pass
			runCases(t, make, group.cases)
		})
	}
}

// zk is a session of the control node and a node of its own to work below.
type zk struct {
	host.Session
	b    *bench
	root string
}

// dial opens a session.
func (b *bench) dial(ctx context.Context) host.Session {
	b.t.Helper()
	s, err := b.c.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
	require.NoError(b.t, err)
	require.Equal(b.t, host.Connected, s.State())
	require.NotZero(b.t, s.ID())
	return s
}

// zookeeper opens a session and creates the case's own node.
func (b *bench) zookeeper(ctx context.Context) zk {
	b.t.Helper()
	z := zk{Session: b.dial(ctx), b: b}
	z.root = fmt.Sprintf("/hosttest-%x", uint64(z.ID()))
	z.make(ctx, "")
	return z
}

// make creates a node below the root.
func (z zk) make(ctx context.Context, name string) string {
	z.b.t.Helper()
	made, zxid, err := z.Create(ctx, z.root+name, []byte("first"), host.Persistent)
	require.NoError(z.b.t, err)
	require.Equal(z.b.t, z.root+name, made)
	require.Positive(z.b.t, zxid)
	return made
}

// elsewhere runs f with a session of another node, and returns when it has.
func (b *bench) elsewhere(ctx context.Context, f func(ctx context.Context, s host.Session)) {
	b.t.Helper()
	b.visitors++
	id := cluster.NodeID(fmt.Sprintf("elsewhere-%d", b.visitors))
	done := fmt.Sprintf("%s is done", id)
	b.start(ctx, id, func(ctx context.Context, h host.Host) {
		s, err := h.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
		if err == nil {
			f(ctx, s)
			err = s.Close(ctx)
		}
		if err != nil {
			b.say(fmt.Sprintf("%s failed: %v", id, err))
		}
		b.say(done)
	})
	b.until(ctx, done, func() bool { return slices.Contains(b.heard(), done) })
	for _, word := range b.heard() {
		require.NotContains(b.t, word, string(id)+" failed")
	}
	require.NoError(b.t, b.nodes[id].Kill(ctx))
}

// reach waits until a session has a state.
func (b *bench) reach(ctx context.Context, s host.Session, want host.SessionState, within time.Duration) {
	b.t.Helper()
	ctx, cancel := b.c.WithTimeout(ctx, within)
	defer cancel()
	for state := s.State(); state != want; {
		next, err := s.Changed(ctx, state)
		require.NoError(b.t, err, "waiting for %v in state %v", want, state)
		state = next
	}
}

// breaks counts how often a session has lost its connection.
func (b *bench) breaks(s host.Session) int {
	n := 0
	for _, state := range b.sessionStates(s.ID()) {
		if state == history.SessionSuspended {
			n++
		}
	}
	return n
}

// flap holds a session for so short a time that it is cut, and waits until it is
// back. Who only looks at the state may miss it.
func (b *bench) flap(ctx context.Context, s host.Session) {
	b.t.Helper()
	before := b.breaks(s)
	b.w.ZooKeeper(controlID).Hold(10 * time.Millisecond)
	b.until(ctx, "a break", func() bool { return b.breaks(s) > before })
	b.reach(ctx, s, host.Connected, 2*sessionTimeout)
}

// waits returns what a watch saw.
func (b *bench) waits(ctx context.Context, w host.Watch) host.WatchEvent {
	b.t.Helper()
	ctx, cancel := b.c.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	e, err := w.Wait(ctx)
	require.NoError(b.t, err)
	return e
}

// txns are the transactions reported of the control node.
func (b *bench) txns() []history.Txn {
	var all []history.Txn
	for _, e := range b.seenOf(controlID) {
		if txn, ok := e.(history.Txn); ok {
			all = append(all, txn)
		}
	}
	return all
}

// sessionStates are the states of a session as they were reported.
func (b *bench) sessionStates(id int64) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, s := range b.events {
		if e, ok := s.event.(history.Session); ok && e.ID == id {
			all = append(all, e.State)
		}
	}
	return all
}

const controlID cluster.NodeID = "control"

func sessionDataCases() []testCase {
	return []testCase{
		{"a session reads what it wrote", zkReadsWrites},
		{"refusals are definite and do nothing", zkRefusals},
		{"a multi does all or nothing", zkMultis},
		{"sequence numbers count the creations", zkSequences},
		{"calls are executed in calling order", zkOrder},
		{"every write is reported with its zxid", zkReports},
	}
}

func zkReadsWrites(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	name, zxid, err := z.Create(ctx, z.root+"/a", []byte("one"), host.Persistent)
	require.NoError(b.t, err)
	data, stat, err := z.Get(ctx, name)
	require.NoError(b.t, err)
	require.Equal(b.t, "one", string(data))
	require.Equal(b.t, zxid, stat.Czxid, "create returns the zxid of its transaction")
	require.Equal(b.t, int32(3), stat.DataLength)
	require.Zero(b.t, stat.Version)
	set, err := z.Set(ctx, name, []byte("two!"), 0)
	require.NoError(b.t, err)
	require.Greater(b.t, set.Mzxid, zxid)
	require.Equal(b.t, int32(1), set.Version)
	found, err := z.Exists(ctx, name)
	require.NoError(b.t, err)
	require.Equal(b.t, set, found)
	own, _, err := z.Create(ctx, z.root+"/own", nil, host.Ephemeral)
	require.NoError(b.t, err)
	found, err = z.Exists(ctx, own)
	require.NoError(b.t, err)
	require.Equal(b.t, z.ID(), found.EphemeralOwner)
	z.make(ctx, "/Z")
	children, stat, err := z.Children(ctx, z.root)
	require.NoError(b.t, err)
	require.Equal(b.t, []string{"Z", "a", "own"}, children, "sorted by name")
	require.Equal(b.t, int32(3), stat.NumChildren)
	require.NoError(b.t, z.Sync(ctx, z.root))
	deleted, err := z.Delete(ctx, name, 1)
	require.NoError(b.t, err)
	require.Greater(b.t, deleted, set.Mzxid)
	b.elsewhere(ctx, func(ctx context.Context, s host.Session) {
		if children, _, err := s.Children(ctx, z.root); err != nil || !slices.Equal(children, []string{"Z", "own"}) {
			b.say(fmt.Sprintf("elsewhere-1 failed: %v %v", children, err))
		}
	})
}

func zkRefusals(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	a := z.make(ctx, "/a")
	z.make(ctx, "/a/b")
	own, _, err := z.Create(ctx, z.root+"/own", nil, host.Ephemeral)
	require.NoError(b.t, err)
	before, err := z.Exists(ctx, z.root)
	require.NoError(b.t, err)
	refused := func(want, err error) {
		b.t.Helper()
		require.ErrorIs(b.t, err, want)
		require.True(b.t, cluster.IsDefinite(err), "%v", err)
	}
	_, _, err = z.Get(ctx, z.root+"/none")
	refused(host.ErrNoNode, err)
	_, err = z.Exists(ctx, z.root+"/none")
	refused(host.ErrNoNode, err)
	_, _, err = z.Children(ctx, z.root+"/none")
	refused(host.ErrNoNode, err)
	_, err = z.Set(ctx, z.root+"/none", nil, -1)
	refused(host.ErrNoNode, err)
	_, err = z.Delete(ctx, z.root+"/none", -1)
	refused(host.ErrNoNode, err)
	_, _, err = z.Create(ctx, z.root+"/none/b", nil, host.Persistent)
	refused(host.ErrNoNode, err)
	_, _, err = z.Create(ctx, a, nil, host.Ephemeral)
	refused(host.ErrNodeExists, err)
	_, err = z.Set(ctx, a, nil, 7)
	refused(host.ErrBadVersion, err)
	_, err = z.Delete(ctx, a+"/b", 7)
	refused(host.ErrBadVersion, err)
	_, err = z.Delete(ctx, a, -1)
	refused(host.ErrNotEmpty, err)
	_, _, err = z.Create(ctx, own+"/b", nil, host.Persistent)
	refused(host.ErrNoChildrenForEphemerals, err)
	_, _, err = z.Get(ctx, "no/slash")
	refused(host.ErrBadArguments, err)
	_, _, err = z.Create(ctx, "", nil, host.Persistent)
	refused(host.ErrBadArguments, err)
	after, err := z.Exists(ctx, z.root)
	require.NoError(b.t, err)
	require.Equal(b.t, before, after)
}

func zkMultis(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	epoch, lai := z.make(ctx, "/epoch"), z.make(ctx, "/lai")
	r, err := z.Multi(ctx, host.Check(epoch, 0), host.SetOp(lai, []byte("x"), 0),
		host.CreateOp(z.root+"/n-", nil, host.PersistentSequential), host.CreateOp(z.root+"/gone", nil, host.Persistent),
		host.DeleteOp(z.root+"/gone", -1))
	require.NoError(b.t, err)
	require.Equal(b.t, -1, r.Failed)
	_, stat, err := z.Get(ctx, lai)
	require.NoError(b.t, err)
	require.Equal(b.t, r.Zxid, stat.Mzxid, "the whole multi is one transaction")
	require.Equal(b.t, stat, r.Stats[1])
	require.Len(b.t, r.Names, 5)
	require.Equal(b.t, z.root+"/n-0000000002", r.Names[2])

	for _, failing := range []struct {
		want  error
		index int
		ops   []host.ZKOp
	}{
		{host.ErrBadVersion, 0, []host.ZKOp{host.Check(epoch, 1), host.SetOp(lai, []byte("y"), 1)}},
		{host.ErrBadVersion, 1, []host.ZKOp{host.Check(epoch, 0), host.SetOp(lai, []byte("y"), 9), host.DeleteOp(epoch, 0)}},
		{host.ErrNoNode, 2, []host.ZKOp{host.Check(epoch, 0), host.SetOp(lai, nil, 1), host.DeleteOp(z.root+"/none", 0)}},
		{host.ErrNodeExists, 1, []host.ZKOp{host.DeleteOp(epoch, 0), host.CreateOp(lai, nil, host.Ephemeral)}},
	} {
		r, err := z.Multi(ctx, failing.ops...)
		require.ErrorIs(b.t, err, failing.want)
		require.True(b.t, cluster.IsDefinite(err))
		require.Equal(b.t, failing.index, r.Failed)
	}
	data, after, err := z.Get(ctx, lai)
	require.NoError(b.t, err)
	require.Equal(b.t, "x", string(data))
	require.Equal(b.t, stat, after, "nothing of a failed multi was done")
	_, err = z.Exists(ctx, epoch)
	require.NoError(b.t, err)
}

func zkSequences(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	next := func(mode host.CreateMode) string {
		b.t.Helper()
		name, _, err := z.Create(ctx, z.root+"/n-", nil, mode)
		require.NoError(b.t, err)
		return name
	}
	require.Equal(b.t, z.root+"/n-0000000000", next(host.PersistentSequential))
	first := next(host.EphemeralSequential)
	require.Equal(b.t, z.root+"/n-0000000001", first)
	_, err := z.Delete(ctx, first, -1)
	require.NoError(b.t, err)
	require.Equal(b.t, z.root+"/n-0000000002", next(host.PersistentSequential), "deletions do not count")
	z.make(ctx, "/plain")
	require.Equal(b.t, z.root+"/n-0000000004", next(host.PersistentSequential), "creations under other names do")
}

func zkOrder(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	a := z.make(ctx, "/a")
	const tasks = 30
	versions := make([]int32, tasks)
	ended, left := b.c.NewCond(), tasks
	calls := 0 // tasks start in any order
	for i := range tasks {
		b.c.Go(ctx, fmt.Sprintf("set-%d", i), func(ctx context.Context) {
			call := calls
			calls++
			stat, err := z.Set(ctx, a, []byte{byte(i)}, -1)
			if err == nil {
				versions[call] = stat.Version
			}
			left--
			ended.Broadcast()
		})
	}
	for left > 0 {
		require.NoError(b.t, ended.Wait(ctx))
	}
	for i, v := range versions {
		require.Equal(b.t, int32(i+1), v, "write %d", i)
	}
}

func zkReports(ctx context.Context, b *bench) {
	z := b.zookeeper(ctx)
	before := len(b.txns())
	name, zxid, err := z.Create(ctx, z.root+"/m-", nil, host.EphemeralSequential)
	require.NoError(b.t, err)
	a := z.make(ctx, "/a")
	stat, err := z.Set(ctx, a, nil, -1)
	require.NoError(b.t, err)
	multi, err := z.Multi(ctx, host.Check(a, 1), host.SetOp(name, nil, -1))
	require.NoError(b.t, err)
	_, err = z.Multi(ctx, host.Check(a, 9), host.SetOp(a, nil, -1))
	require.ErrorIs(b.t, err, host.ErrBadVersion)
	deleted, err := z.Delete(ctx, name, -1)
	require.NoError(b.t, err)
	_, err = z.Delete(ctx, name, -1)
	require.ErrorIs(b.t, err, host.ErrNoNode)
	require.NoError(b.t, z.Close(ctx))

	txns := b.txns()[before:]
	require.Len(b.t, txns, 8)
	last := multi.Zxid
	for i, want := range []history.Txn{
		{Zxid: zxid, Op: "create", Paths: []string{name}, Ephemeral: true},
		{Zxid: txns[1].Zxid, Op: "create", Paths: []string{a}},
		{Zxid: stat.Mzxid, Op: "set", Paths: []string{a}},
		{Zxid: multi.Zxid, Op: "multi", Paths: []string{name}, Guard: a, Ephemeral: true},
		{Zxid: txns[4].Zxid, Op: "multi", Paths: []string{a}, Guard: a, Error: "bad version"},
		{Zxid: deleted, Op: "delete", Paths: []string{name}, Ephemeral: true},
		{Zxid: txns[6].Zxid, Op: "delete", Paths: []string{name}, Error: "no node"},
		{Zxid: txns[7].Zxid, Op: "closeSession", Paths: []string{}},
	} {
		want.Node, want.Session = string(controlID), z.ID()
		got := txns[i]
		if got.Error != "" {
			got.Ephemeral = want.Ephemeral // of what was not done there is no owner
		}
		require.Equal(b.t, want, got, "transaction %d", i)
		if i > 3 && got.Error == "" {
			require.Greater(b.t, got.Zxid, last)
			last = got.Zxid
		}
	}
	require.Equal(b.t, []string{history.SessionConnected, history.SessionClosed}, b.sessionStates(z.ID()))
}
