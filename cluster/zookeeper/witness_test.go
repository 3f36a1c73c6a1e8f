package zookeeper

import (
	"encoding/binary"
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// entry is a transaction as a server writes it.
func entry(zxid int64, op jute.OpCode, body func(*jute.Encoder)) []byte {
	e := jute.NewEncoder(nil)
	e.Int64(77) // session
	e.Int32(5)  // cxid
	e.Int64(zxid)
	e.Int64(1000) // time
	e.Int32(int32(op))
	body(e)
	b := binary.BigEndian.AppendUint64(nil, uint64(adler32.Checksum(e.Bytes())))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Len()))
	return append(append(b, e.Bytes()...), 'B')
}

func named(p string) func(*jute.Encoder) {
	return func(e *jute.Encoder) { e.String(p) }
}

func code(c jute.Code) func(*jute.Encoder) {
	return func(e *jute.Encoder) { e.Int32(int32(c)) }
}

type part struct {
	op   jute.OpCode
	body func(*jute.Encoder)
}

func multi(parts ...part) func(*jute.Encoder) {
	return func(e *jute.Encoder) {
		e.Int32(int32(len(parts)))
		for _, p := range parts {
			var inner jute.Encoder
			p.body(&inner)
			e.Int32(int32(p.op))
			e.Buffer(inner.Bytes())
		}
	}
}

func TestReadLog(t *testing.T) {
	dir := t.TempDir()
	header := append([]byte("ZKLG"), make([]byte, 12)...)
	write := func(name string, parts ...[]byte) {
		var all []byte
		for _, p := range append([][]byte{header}, parts...) {
			all = append(all, p...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), all, 0o600))
	}
	empty := func(*jute.Encoder) {}
	torn := entry(9, jute.OpDelete, named("/torn"))
	write("log.3",
		entry(3, jute.OpSetData, named("/a")),
		entry(4, jute.OpMulti, multi(part{jute.OpCheck, empty}, part{jute.OpCreate, named("/b")}, part{jute.OpSetData, named("/c")})),
		entry(5, jute.OpMulti, multi(part{jute.OpError, code(jute.OK)}, part{jute.OpError, code(jute.BadVersion)},
			part{jute.OpError, code(jute.RuntimeInconsistency)})),
		entry(6, jute.OpError, code(jute.NoNode)),
		entry(7, jute.OpCloseSession, func(e *jute.Encoder) { e.Strings([]string{"/own"}) }),
		torn[:len(torn)-3])
	write("log.1", entry(1, jute.OpCreateSession, code(3000)), entry(2, jute.OpCreate, named("/a")),
		entry(3, jute.OpSetData, named("/a")), make([]byte, 500))
	got, err := ReadLog(dir)
	require.NoError(t, err)
	want := []Transaction{
		{Zxid: 1, Op: "createSession"},
		{Zxid: 2, Op: "create", Paths: []string{"/a"}},
		{Zxid: 3, Op: "set", Paths: []string{"/a"}},
		{Zxid: 4, Op: "multi", Paths: []string{"/b", "/c"}},
		{Zxid: 5, Op: "multi", Err: jute.BadVersion},
		{Zxid: 6, Op: "error", Err: jute.NoNode},
		{Zxid: 7, Op: "closeSession", Paths: []string{"/own"}},
	}
	for i := range want {
		want[i].Session, want[i].Cxid, want[i].Time = 77, 5, time.UnixMilli(1000)
	}
	require.Equal(t, want, got)

	bad := entry(8, jute.OpDelete, named("/a"))
	bad[20]++
	write("log.8", bad)
	_, err = ReadLog(dir)
	require.ErrorContains(t, err, "log.8: entry 0: checksum differs")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log.8"), []byte("not a log, not at all"), 0o600))
	_, err = ReadLog(dir)
	require.ErrorContains(t, err, "not a transaction log")
	_, err = ReadLog(t.TempDir())
	require.ErrorContains(t, err, "no log.*")
}
