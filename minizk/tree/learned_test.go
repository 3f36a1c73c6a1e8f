package tree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// What the differential test taught: places where the first version of this
// package and ZooKeeper 3.9.5 disagreed.

// wire sends a request as bytes, as the server does.
func (b *bench) wire(c Conn, op jute.OpCode, req jute.Record) Reply {
	d := jute.NewDecoder(jute.Marshal(req))
	got := jute.NewRequest(op)
	got.Decode(d)
	require.NoError(b, d.Err())
	return b.do(c, op, got)
}

func TestCreatesInAMultiAnswerAsCreate2(t *testing.T) {
	b := newBench(t, Options{ExtendedTypes: true})
	c := b.open()
	rep := b.wire(c, jute.OpMulti, multi(
		jute.MultiOp{Op: jute.OpCreate, Request: create("/a", 0)},
		jute.MultiOp{Op: jute.OpCreateTTL, Request: &jute.CreateRequest{
			Path: "/t", ACL: jute.OpenACL(), Flags: jute.FlagPersistentTTL, TTL: 5, HasTTL: true,
		}},
		jute.MultiOp{Op: jute.OpCreate, Request: create("/c", jute.FlagContainer)},
		jute.MultiOp{Op: jute.OpCreateTTL, Request: &jute.CreateRequest{Path: "/p", ACL: jute.OpenACL(), TTL: 5, HasTTL: true}},
	))
	var ops []jute.OpCode
	for _, r := range rep.Body.(*jute.MultiResponse).Results {
		ops = append(ops, r.Op)
	}
	require.Equal(t, []jute.OpCode{jute.OpCreate, jute.OpCreate2, jute.OpCreate2, jute.OpCreate}, ops)
	require.Len(t, b.tree.ttls, 1, "a createTTL without the flag is a plain create")
	require.Len(t, b.tree.containers, 1, "a create with the container flag makes one, in a multi only")
}

func TestWhatAMultiThatDoesNotDecodeCosts(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	at := b.tree.Zxid()
	b.err(jute.MarshallingError, c, jute.OpMulti, &NoRecord{})
	require.Equal(t, at, b.tree.Zxid(), "without an ACL list: nothing")
	b.err(jute.MarshallingError, c, jute.OpMulti, nil)
	require.Equal(t, at+1, b.tree.Zxid(), "else a zxid")
	b.err(jute.MarshallingError, c, jute.OpCreate, nil)
	require.Equal(t, at+1, b.tree.Zxid(), "and a single request nothing")

	null := &jute.CreateRequest{Path: "/a"}
	decode := func(m *jute.MultiRequest) error { return jute.Unmarshal(jute.Marshal(m), &jute.MultiRequest{}) }
	read := jute.MultiOp{Op: jute.OpGetData, Request: &jute.PathWatchRequest{Path: "/"}}
	require.ErrorIs(t, decode(multi(jute.MultiOp{Op: jute.OpCreate2, Request: null})), jute.ErrNullACL)
	require.ErrorIs(t, decode(multi(read, jute.MultiOp{Op: jute.OpCreate, Request: null})), jute.ErrNullACL,
		"before it is seen that kinds are mixed")
	require.ErrorContains(t, decode(multi(read, jute.MultiOp{Op: jute.OpCreate, Request: create("/a", 0)})), "mixing")
	require.ErrorContains(t, decode(multi(jute.MultiOp{Op: jute.OpCreate, Request: create("/a", 5)})), "invalid flag 5")
}

func TestAMultiReadThatFailsShowsWhatItRead(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	rep := b.err(jute.MarshallingError, c, jute.OpMultiRead, multi(
		jute.MultiOp{Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: "/"}},
	))
	require.Equal(t, &jute.MultiResponse{Results: []jute.MultiResult{}}, rep.Body)
}

func TestPrefixesOfEphemeralsAreTrimmedAsInJava(t *testing.T) {
	require.Equal(t, []string{"/a", "/b"}, under([]string{"/a", "/b"}, "/\x01"))
	require.Equal(t, []string{"/a", "/b"}, under([]string{"/a", "/b"}, " / "))
	require.Equal(t, []string{"/b"}, under([]string{"/a", "/b"}, "/b"))
	require.Empty(t, under([]string{"/a", "/b"}, "/\u00a0"), "no-break space is not blank there")
}

func TestAWrongPasswordDisplacesTheConnection(t *testing.T) {
	b := newBench(t, Options{})
	c := b.open()
	_, res := b.resume(b.tree.SessionOf(c), make([]byte, 16))
	require.False(t, res.OK)
	require.Equal(t, c, res.Displaced)
}
