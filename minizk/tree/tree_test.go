package tree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// bench drives a tree as a server would, with a clock of its own.
type bench struct {
	*testing.T
	tree *Tree
	now  int64
	conn Conn
	xid  int32
}

func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	return &bench{T: t, tree: New(o, 1_000_000), now: 1_000_000}
}

func (b *bench) open() Conn {
	c, _ := b.resume(0, nil)
	return c
}

func (b *bench) resume(id int64, password []byte) (Conn, ConnectResult) {
	b.conn++
	res := b.tree.Connect(b.now, b.conn, "127.0.0.1", &jute.ConnectRequest{TimeOut: 4000, SessionID: id, Passwd: password})
	return b.conn, res
}

func (b *bench) do(c Conn, op jute.OpCode, req jute.Record) Reply {
	b.xid++
	return b.tree.Do(b.now, c, b.xid, op, req)
}

func (b *bench) ok(c Conn, op jute.OpCode, req jute.Record) Reply {
	b.Helper()
	rep := b.do(c, op, req)
	require.Equal(b, jute.OK, rep.Header.Err, "%v %v", op, req)
	return rep
}

func (b *bench) err(want jute.Code, c Conn, op jute.OpCode, req jute.Record) Reply {
	b.Helper()
	rep := b.do(c, op, req)
	require.Equal(b, want, rep.Header.Err, "%v %v", op, req)
	return rep
}

func create(path string, flags int32) *jute.CreateRequest {
	return &jute.CreateRequest{Path: path, Data: []byte("d"), ACL: jute.OpenACL(), Flags: flags}
}

func (b *bench) create(c Conn, path string, flags int32) string {
	b.Helper()
	return b.ok(c, jute.OpCreate, create(path, flags)).Body.(*jute.PathResponse).Path
}

func (b *bench) set(c Conn, path string) Reply {
	b.Helper()
	return b.ok(c, jute.OpSetData, &jute.SetDataRequest{Path: path, Data: []byte("new"), Version: -1})
}

func (b *bench) delete(c Conn, path string) Reply {
	b.Helper()
	return b.ok(c, jute.OpDelete, &jute.PathVersionRequest{Path: path, Version: -1})
}

func (b *bench) stat(c Conn, path string) jute.Stat {
	b.Helper()
	return b.ok(c, jute.OpExists, &jute.PathWatchRequest{Path: path}).Body.(*jute.StatResponse).Stat
}

func (b *bench) watch(c Conn, op jute.OpCode, path string) {
	b.do(c, op, &jute.PathWatchRequest{Path: path, Watch: true})
}

func events(e []Event) []string {
	var out []string
	for _, e := range e {
		out = append(out, fmt.Sprintf("%d %v %s", e.Conn, e.Type, e.Path))
	}
	return out
}

func TestStats(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	require.EqualValues(t, 1, b.tree.Zxid(), "opening a session is a transaction")
	b.now += 10
	b.create(c, "/a", jute.FlagPersistent)
	b.now += 10
	b.set(c, "/a")
	b.create(c, "/a/x", jute.FlagPersistent)
	b.create(c, "/a/y", jute.FlagPersistent)
	b.delete(c, "/a/x")
	require.Equal(t, jute.Stat{
		Czxid: 2, Mzxid: 3, Pzxid: 6, Ctime: 1_000_010, Mtime: 1_000_020,
		Version: 1, Cversion: 3, DataLength: 3, NumChildren: 1,
	}, b.stat(c, "/a"))
	root := b.stat(c, "/")
	require.EqualValues(t, 0, root.Cversion, "a fresh root is at -1, and /a was one creation")
	require.EqualValues(t, 2, root.NumChildren)
	require.EqualValues(t, 5, b.ok(c, jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: "/"}).Body.(*jute.NumberResponse).Number)
	require.EqualValues(t, 1, b.ok(c, jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: "/a"}).Body.(*jute.NumberResponse).Number)
}

func TestSequenceCountsCreationsUnderTheParent(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	b.create(c, "/p", jute.FlagPersistent)
	require.Equal(t, "/p/n0000000000", b.create(c, "/p/n", jute.FlagPersistentSequential))
	b.create(c, "/p/plain", jute.FlagPersistent)
	b.delete(c, "/p/plain")
	require.Equal(t, "/p/m0000000002", b.create(c, "/p/m", jute.FlagEphemeralSequential))
	b.err(jute.NodeExists, c, jute.OpCreate, create("/p/m0000000002", 0))
	require.Equal(t, "/p/0000000003", b.create(c, "/p/", jute.FlagPersistentSequential))
}

func TestErrors(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	b.create(c, "/a", jute.FlagPersistent)
	b.create(c, "/a/b", jute.FlagPersistent)
	b.create(c, "/e", jute.FlagEphemeral)
	del := func(path string, version int32) *jute.PathVersionRequest {
		return &jute.PathVersionRequest{Path: path, Version: version}
	}
	for _, tc := range []struct {
		want jute.Code
		op   jute.OpCode
		req  jute.Record
	}{
		{jute.NodeExists, jute.OpCreate, create("/a", 0)},
		{jute.NodeExists, jute.OpCreate, create("/", 0)},
		{jute.NoNode, jute.OpCreate, create("/x/y", 0)},
		{jute.NoChildrenForEphemerals, jute.OpCreate, create("/e/y", 0)},
		{jute.BadArguments, jute.OpCreate, create("", 0)},
		{jute.BadArguments, jute.OpCreate, create("a", 0)},
		{jute.NoNode, jute.OpCreate, create("a/b", 0)},
		{jute.BadArguments, jute.OpCreate, create("/a/", 0)},
		{jute.BadArguments, jute.OpCreate, create("/a/..", 0)},
		{jute.BadArguments, jute.OpCreate, create("/a\x01", 0)},
		{jute.BadArguments, jute.OpCreate, create("/n", 7)},
		{jute.Unimplemented, jute.OpCreateTTL, &jute.CreateRequest{Path: "/t", ACL: jute.OpenACL(), Flags: jute.FlagPersistentTTL, TTL: 5, HasTTL: true}},
		{jute.InvalidACL, jute.OpCreate, &jute.CreateRequest{Path: "/n"}},
		{jute.NotEmpty, jute.OpDelete, del("/a", -1)},
		{jute.BadVersion, jute.OpDelete, del("/a", 5)},
		{jute.NoNode, jute.OpDelete, del("/x", -1)},
		{jute.BadArguments, jute.OpDelete, del("/zookeeper/quota", -1)},
		{jute.BadArguments, jute.OpDelete, del("/", -1)},
		{jute.BadVersion, jute.OpSetData, &jute.SetDataRequest{Path: "/a", Version: 1}},
		{jute.NoNode, jute.OpSetData, &jute.SetDataRequest{Path: "/x", Version: -1}},
		{jute.BadArguments, jute.OpSetData, &jute.SetDataRequest{Path: "/x/", Version: -1}},
		{jute.NoAuth, jute.OpSetData, &jute.SetDataRequest{Path: "/zookeeper/config", Version: -1}},
		{jute.NoNode, jute.OpGetData, &jute.PathWatchRequest{Path: "/x"}},
		{jute.NoNode, jute.OpExists, &jute.PathWatchRequest{Path: "/x"}},
		{jute.NoWatcher, jute.OpRemoveWatches, &jute.PathTypeRequest{Path: "/a", Type: jute.WatcherAny}},
		{jute.ReconfigDisabled, jute.OpReconfig, &jute.ReconfigRequest{}},
		{jute.MarshallingError, jute.OpCreate, nil},
	} {
		b.err(tc.want, c, tc.op, tc.req)
	}
	require.True(t, b.err(jute.Unimplemented, c, jute.OpCheck, del("/a", 0)).Close)
}

func multi(ops ...jute.MultiOp) *jute.MultiRequest { return &jute.MultiRequest{Ops: ops} }

func TestMultiIsAllOrNothing(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	b.create(c, "/a", jute.FlagPersistent)
	before := b.stat(c, "/a")
	b.watch(c, jute.OpGetData, "/a")
	rep := b.ok(c, jute.OpMulti, multi(
		jute.MultiOp{Op: jute.OpSetData, Request: &jute.SetDataRequest{Path: "/a", Data: []byte("x"), Version: 0}},
		jute.MultiOp{Op: jute.OpCreate, Request: create("/a/b", jute.FlagEphemeral)},
		jute.MultiOp{Op: jute.OpDelete, Request: &jute.PathVersionRequest{Path: "/a/b", Version: 0}},
		jute.MultiOp{Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: "/a", Version: 0}},
		jute.MultiOp{Op: jute.OpCreate, Request: create("/a/c", 0)},
	))
	require.Empty(t, rep.Events)
	var codes []jute.Code
	for _, r := range rep.Body.(*jute.MultiResponse).Results {
		codes = append(codes, r.Err)
		require.Equal(t, jute.OpError, r.Op)
	}
	require.Equal(t, []jute.Code{0, 0, 0, jute.BadVersion, jute.RuntimeInconsistency}, codes)
	require.Equal(t, jute.BadVersion, rep.Txn.Err)
	require.Equal(t, "/a", rep.Txn.Guard)
	require.Equal(t, before, b.stat(c, "/a"))
	require.Empty(t, b.ok(c, jute.OpGetEphemerals, &jute.PathRequest{}).Body.(*jute.EphemeralsResponse).Ephemerals)

	rep = b.ok(c, jute.OpMulti, multi(
		jute.MultiOp{Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: "/a", Version: 0}},
		jute.MultiOp{Op: jute.OpCreate2, Request: create("/a/s", jute.FlagPersistentSequential)},
		jute.MultiOp{Op: jute.OpCreate, Request: create("/a/s", jute.FlagPersistentSequential)},
	))
	require.Equal(t, []string{"/a/s0000000000", "/a/s0000000001"}, rep.Txn.Paths, "a failed multi leaves the counter alone")
	require.Equal(t, rep.Txn.Zxid, b.stat(c, "/a/s0000000001").Czxid)
	require.Equal(t, rep.Txn.Zxid, b.stat(c, "/a").Pzxid)
}

func TestWatchesFireOnceAndInOrder(t *testing.T) {
	b := newBench(t, Options{})
	c, d := b.open(), b.open()
	b.watch(c, jute.OpExists, "/a")
	require.Equal(t, []string{"1 created /a"}, events(b.ok(d, jute.OpCreate, create("/a", 0)).Events))
	require.Empty(t, b.set(d, "/a").Events)
	b.watch(c, jute.OpGetData, "/a")
	b.watch(d, jute.OpGetData, "/a")
	b.watch(c, jute.OpGetChildren, "/a")
	b.watch(c, jute.OpGetChildren, "/")
	require.Equal(t, []string{"1 dataChanged /a", "2 dataChanged /a"}, events(b.set(d, "/a").Events))
	b.watch(c, jute.OpGetData, "/a")
	require.Equal(t, []string{"1 deleted /a", "1 childrenChanged /"}, events(b.delete(d, "/a").Events),
		"a node's data and child watch of one connection tell its end once")
	b.watch(c, jute.OpGetData, "/missing")
	require.Empty(t, b.ok(d, jute.OpCreate, create("/missing", 0)).Events, "only exists watches a missing node")
}

func TestPersistentWatches(t *testing.T) {
	b := newBench(t, Options{})
	c, d := b.open(), b.open()
	b.create(d, "/a", 0)
	b.ok(c, jute.OpAddWatch, &jute.PathTypeRequest{Path: "/a", Type: jute.ModePersistent})
	b.ok(d, jute.OpAddWatch, &jute.PathTypeRequest{Path: "/a", Type: jute.ModePersistentRecursive})
	require.Equal(t, []string{"2 created /a/b", "1 childrenChanged /a"}, events(b.ok(d, jute.OpCreate, create("/a/b", 0)).Events))
	require.Equal(t, []string{"2 dataChanged /a/b"}, events(b.set(d, "/a/b").Events))
	require.Equal(t, []string{"1 dataChanged /a", "2 dataChanged /a"}, events(b.set(d, "/a").Events))
	require.Equal(t, []string{"2 deleted /a/b", "1 childrenChanged /a"}, events(b.delete(d, "/a/b").Events))
	b.err(jute.NoWatcher, c, jute.OpRemoveWatches, &jute.PathTypeRequest{Path: "/a", Type: jute.WatcherData})
	b.ok(c, jute.OpCheckWatches, &jute.PathTypeRequest{Path: "/a", Type: jute.WatcherPersistent})
	b.ok(c, jute.OpRemoveWatches, &jute.PathTypeRequest{Path: "/a", Type: jute.WatcherPersistent})
	b.ok(d, jute.OpRemoveWatches, &jute.PathTypeRequest{Path: "/a", Type: jute.WatcherPersistentRecursive})
	require.Empty(t, b.set(d, "/a").Events)
	require.Zero(t, b.tree.Count().Watches)
}

func TestSetWatchesTellsWhatWasMissed(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	for _, p := range []string{"/changed", "/deleted", "/again", "/same", "/kids"} {
		b.create(c, p, 0)
	}
	seen := b.tree.Zxid()
	b.set(c, "/changed")
	b.delete(c, "/deleted")
	b.delete(c, "/again")
	b.create(c, "/again", 0)
	b.create(c, "/made", 0)
	b.create(c, "/gone", 0)
	b.delete(c, "/gone")
	b.create(c, "/kids/x", 0)
	b.delete(c, "/kids/x")
	d := b.open()
	rep := b.ok(d, jute.OpSetWatches, &jute.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{"/changed", "/deleted", "/again", "/same"},
		Exist:        []string{"/made", "/gone"},
		Child:        []string{"/kids", "/same"},
	})
	require.Equal(t, []string{
		"2 dataChanged /changed", "2 deleted /deleted", "2 dataChanged /again", "2 created /made", "2 childrenChanged /kids",
	}, events(rep.Events))
	require.Equal(t, []string{"/gone", "/same"}, b.tree.Watched(d))
	require.Equal(t, []string{"2 dataChanged /same"}, events(b.set(c, "/same").Events))
}

func TestSessions(t *testing.T) {
	b := newBench(t, Options{Tick: 1000})
	c := b.open()
	id, pw := b.tree.SessionOf(c), b.tree.Password(b.tree.SessionOf(c))
	b.create(c, "/e", jute.FlagEphemeral)
	require.Equal(t, id, b.stat(c, "/e").EphemeralOwner)

	d, res := b.resume(id, pw)
	require.True(t, res.OK)
	require.Equal(t, c, res.Displaced)
	require.True(t, b.do(c, jute.OpExists, &jute.PathWatchRequest{Path: "/e"}).Close, "the session has moved")
	b.stat(d, "/e")

	_, res = b.resume(id, []byte("wrong"))
	require.False(t, res.OK)
	require.Zero(t, res.Response.SessionID)
	require.Equal(t, d, res.Displaced)

	d, res = b.resume(id, pw)
	require.True(t, res.OK)
	at, _ := b.tree.NextExpiry()
	require.Equal(t, b.now+5000, at, "4 s from a tick's beginning round up to the end of the next")
	b.now = at - 1
	require.Empty(t, b.tree.Expire(b.now))
	b.ok(d, jute.OpPing, &jute.NoBody{})
	b.now = at
	require.Empty(t, b.tree.Expire(b.now), "a ping counts")

	e := b.open()
	b.watch(e, jute.OpExists, "/e")
	ended := b.tree.Expire(b.now + 4000)
	require.Len(t, ended, 1)
	require.Equal(t, []string{fmt.Sprintf("%d deleted /e", e)}, events(ended[0].Events))
	require.Equal(t, d, ended[0].Conn)
	require.True(t, b.do(d, jute.OpPing, nil).Silent)
	b.tree.Disconnect(d)
	_, res = b.resume(id, pw)
	require.False(t, res.OK)

	f := b.open()
	b.create(f, "/f", jute.FlagEphemeral)
	rep := b.ok(f, jute.OpCloseSession, nil)
	require.True(t, rep.Close)
	require.Equal(t, []string{"/f"}, rep.Txn.Paths)
	b.err(jute.NoNode, e, jute.OpExists, &jute.PathWatchRequest{Path: "/f"})

	res = b.tree.Connect(b.now, 99, "", &jute.ConnectRequest{LastZxidSeen: b.tree.Zxid() + 1})
	require.True(t, res.Refused)
}

func TestACLs(t *testing.T) {
	b := newBench(t, Options{SuperDigest: Digest("super:secret")})
	c, d := b.open(), b.open()
	b.ok(c, jute.OpAuth, &jute.AuthPacket{Scheme: "digest", Auth: []byte("joe:pw")})
	mine := []jute.ACL{
		{Perms: jute.PermAll, ID: jute.ID{Scheme: "auth"}},
		{Perms: jute.PermRead, ID: jute.ID{Scheme: "ip", ID: "10.0.0.0/8"}},
	}
	b.ok(c, jute.OpCreate, &jute.CreateRequest{Path: "/m", ACL: mine})
	b.ok(c, jute.OpCreate, &jute.CreateRequest{Path: "/m/x", ACL: mine})
	got := b.ok(c, jute.OpGetACL, &jute.PathRequest{Path: "/m"}).Body.(*jute.GetACLResponse)
	require.Equal(t, jute.ID{Scheme: "digest", ID: Digest("joe:pw")}, got.ACL[0].ID)
	for op, req := range map[jute.OpCode]jute.Record{
		jute.OpGetData:     &jute.PathWatchRequest{Path: "/m"},
		jute.OpExists:      &jute.PathWatchRequest{Path: "/m"},
		jute.OpGetChildren: &jute.PathWatchRequest{Path: "/m"},
		jute.OpGetACL:      &jute.PathRequest{Path: "/m"},
		jute.OpSetData:     &jute.SetDataRequest{Path: "/m", Version: -1},
		jute.OpSetACL:      &jute.SetACLRequest{Path: "/m", ACL: jute.OpenACL(), Version: -1},
		jute.OpCreate:      create("/m/y", 0),
		jute.OpDelete:      &jute.PathVersionRequest{Path: "/m/x", Version: -1},
	} {
		b.err(jute.NoAuth, d, op, req)
	}
	b.do(d, jute.OpAddWatch, &jute.PathTypeRequest{Path: "/m", Type: jute.ModePersistent})
	require.Empty(t, b.set(c, "/m").Events, "who may not read hears nothing")
	b.ok(d, jute.OpAuth, &jute.AuthPacket{Scheme: "digest", Auth: []byte("super:secret")})
	require.Len(t, b.set(d, "/m").Events, 1)
	b.ok(c, jute.OpSetACL, &jute.SetACLRequest{Path: "/m", Version: 0, ACL: []jute.ACL{
		{Perms: jute.PermRead, ID: jute.ID{Scheme: "ip", ID: "127.0.0.0/8"}}, {Perms: jute.PermAll, ID: jute.ID{Scheme: "digest", ID: "joe:hash"}},
	}})
	e := b.open()
	got = b.ok(e, jute.OpGetACL, &jute.PathRequest{Path: "/m"}).Body.(*jute.GetACLResponse)
	require.Equal(t, "joe:x", got.ACL[1].ID.ID, "hashes are hidden from those who cannot administer")
	require.EqualValues(t, 1, got.Stat.Aversion)
	require.Equal(t, []jute.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}, {Scheme: "digest", User: "joe"}},
		b.ok(c, jute.OpWhoAmI, &jute.NoBody{}).Body.(*jute.WhoAmIResponse).Clients)
	require.True(t, b.err(jute.AuthFailed, e, jute.OpAuth, &jute.AuthPacket{Scheme: "nonsense"}).Close)
}

func TestContainersAndTTL(t *testing.T) {
	b := newBench(t, Options{ExtendedTypes: true})
	c := b.open()
	b.ok(c, jute.OpCreateContainer, create("/box", jute.FlagContainer))
	b.ok(c, jute.OpCreateTTL, &jute.CreateRequest{Path: "/ttl", ACL: jute.OpenACL(), Flags: jute.FlagPersistentTTL, TTL: 500, HasTTL: true})
	require.Zero(t, b.stat(c, "/ttl").EphemeralOwner)
	require.Empty(t, b.tree.Sweep(b.now+500), "an unused container stays, a TTL has to pass")
	b.create(c, "/box/x", 0)
	require.Empty(t, b.tree.Sweep(b.now))
	b.delete(c, "/box/x")
	b.watch(c, jute.OpExists, "/box")
	swept := b.tree.Sweep(b.now + 501)
	require.Len(t, swept, 2)
	require.Equal(t, "/box", swept[0].Path)
	require.Equal(t, []string{"1 deleted /box"}, events(swept[0].Events))
	require.Equal(t, "/ttl", swept[1].Path)
}

// TestRandomMultisUndoThemselves: a multi that ends in a failing check leaves
// the tree as it was, whatever it did before.
func TestRandomMultisUndoThemselves(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	b := newBench(t, Options{})
	c := b.open()
	names := []string{"/a", "/b", "/a/c", "/a/d", "/b/e"}
	random := func() jute.MultiOp {
		p := names[r.IntN(len(names))]
		switch r.IntN(3) {
		case 0:
			return jute.MultiOp{Op: jute.OpCreate, Request: create(p, []int32{0, 1, 2, 3, 4}[r.IntN(5)])}
		case 1:
			return jute.MultiOp{Op: jute.OpSetData, Request: &jute.SetDataRequest{Path: p, Data: make([]byte, r.IntN(9)), Version: -1}}
		default:
			return jute.MultiOp{Op: jute.OpDelete, Request: &jute.PathVersionRequest{Path: p, Version: -1}}
		}
	}
	for range 800 {
		m := multi()
		for range 1 + r.IntN(6) {
			m.Ops = append(m.Ops, random())
		}
		if r.IntN(2) == 0 {
			m.Ops = append(m.Ops, jute.MultiOp{Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: "/never"}})
		}
		before := b.picture()
		rep := b.ok(c, jute.OpMulti, m)
		if rep.Txn.Err != jute.OK {
			require.Equal(t, before, b.picture())
		}
	}
	require.Greater(t, b.tree.Count().Nodes, 5)
}

func (b *bench) picture() string {
	out := fmt.Sprintln(b.tree.Count(), b.tree.Sessions())
	for _, p := range b.tree.Paths() {
		n := b.tree.nodes[p]
		out += fmt.Sprintln(p, n.stat(), n.creates, string(n.data), n.children)
	}
	return out
}
