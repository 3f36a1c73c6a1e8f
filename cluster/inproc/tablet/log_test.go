package tablet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// grow appends n batches of one to three records under an epoch.
func grow(l *changelog, r *rand.Rand, epoch, n int) {
	for range n {
		size := 1 + r.IntN(3)
		writer, seq := int64(r.IntN(4)-1), r.IntN(100)
		for i := range size {
			rec := protocol.LogRecord{
				Offset: l.end, Epoch: epoch, Change: protocol.Change(r.IntN(5)), Writer: writer, Seq: seq,
				Batch: size, Index: i, Key: fmt.Sprint("key", r.IntN(10)),
			}
			switch r.IntN(3) {
			case 0:
			case 1:
				rec.Value = []byte{}
			default:
				rec.Value = []byte(fmt.Sprint("value", l.end))
			}
			l.append(rec)
		}
	}
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func all(l *changelog) []protocol.LogRecord { return l.slice(0, l.end) }

func TestLogFilesRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		var l, back changelog
		for epoch := range 5 {
			grow(&l, random(seed+uint64(epoch)), 2*epoch, 30)
		}
		file := appendFrames(nil, &l, 0, l.end)
		require.Equal(t, int64(len(file)), decodeLog(file, &back))
		require.Equal(t, all(&l), all(&back))
		require.Equal(t, l.epochs, back.epochs)
		var d, e digest
		require.Equal(t, d.at(&l, l.end), e.at(&back, back.end))
	}
}

// TestTornLogsEndAtAWholeBatch cuts or spoils a file at every byte: what is read
// back is a prefix of whole batches.
func TestTornLogsEndAtAWholeBatch(t *testing.T) {
	var l changelog
	grow(&l, random(7), 3, 12)
	file := appendFrames(nil, &l, 0, l.end)
	ends := map[int64]bool{0: true, l.end: true}
	for i := range l.end {
		if l.at(i).Index == 0 {
			ends[i] = true
		}
	}
	for at := range file {
		spoilt := append([]byte{}, file...)
		spoilt[at] ^= 0x41
		for _, bytes := range [][]byte{file[:at], spoilt} {
			var back changelog
			good := decodeLog(bytes, &back)
			require.LessOrEqual(t, good, int64(at))
			require.True(t, ends[back.end], "byte %d: ends inside a batch at %d", at, back.end)
			require.Equal(t, l.slice(0, back.end), all(&back))
		}
	}
}

func TestTruncatedRecordsAreNotWrittenOver(t *testing.T) {
	var l changelog
	r := random(3)
	grow(&l, r, 1, 3*segmentSize/2)
	before := l.slice(0, 20)
	kept := append([]protocol.LogRecord{}, before...)
	l.truncate(10)
	grow(&l, r, 2, segmentSize)
	require.Equal(t, kept, before, "a reply may still point there")
	require.Equal(t, kept[:10], l.slice(0, 10))
}

func TestSlicesAcrossSegments(t *testing.T) {
	var l changelog
	grow(&l, random(1), 1, 2*segmentSize)
	for _, c := range [][2]int64{{0, 0}, {0, 1}, {segmentSize - 1, segmentSize}, {segmentSize - 1, segmentSize + 1}, {5, 2*segmentSize + 5}, {0, l.end}} {
		got := l.slice(c[0], c[1])
		require.Len(t, got, int(c[1]-c[0]))
		for i := range got {
			require.Equal(t, c[0]+int64(i), got[i].Offset)
		}
	}
}

func TestFetchesTakeWholeBatches(t *testing.T) {
	var l changelog
	grow(&l, random(5), 1, 100)
	for limit := range 10 {
		for from := int64(0); from < l.end; {
			to := l.wholeBatches(from, limit)
			require.Greater(t, to, from)
			require.True(t, to == l.end || l.at(to).Index == 0)
			from = to
		}
	}
}

// TestEpochEnds compares the cache of epochs with a search of the log.
func TestEpochEnds(t *testing.T) {
	for seed := range uint64(30) {
		r := random(seed)
		var l changelog
		for epoch := range 8 {
			if r.IntN(2) == 0 {
				grow(&l, r, epoch, 1+r.IntN(4))
			}
		}
		if l.end > 0 {
			l.truncate(int64(r.IntN(int(l.end) + 1)))
		}
		for epoch := -1; epoch < 9; epoch++ {
			wantEpoch, wantEnd := -1, int64(0)
			for i := range l.end {
				if e := l.at(i).Epoch; e <= epoch {
					wantEpoch, wantEnd = e, i+1
				}
			}
			gotEpoch, gotEnd := l.epochEnd(epoch)
			require.Equal(t, wantEpoch, gotEpoch)
			require.Equal(t, wantEnd, gotEnd)
		}
		if l.end > 0 {
			require.Equal(t, l.at(l.end-1).Epoch, l.lastEpoch())
		} else {
			require.Equal(t, -1, l.lastEpoch())
		}
	}
}

func TestWritersAreAFunctionOfTheLog(t *testing.T) {
	for seed := range uint64(10) {
		r := random(seed)
		var l changelog
		w := writers{}
		for i := range 60 {
			rec := protocol.LogRecord{Offset: l.end, Writer: int64(r.IntN(3)), Seq: i, Batch: 1}
			l.append(rec)
			w.note(&rec)
		}
		require.Equal(t, w, writersOf(&l))
	}
}

func TestWritersJudge(t *testing.T) {
	w := writers{}
	for seq := range 8 {
		what, _ := w.judge(1, seq)
		require.Equal(t, fresh, what)
		w.add(1, seq, int64(10*seq), int64(10*seq+2))
	}
	for _, c := range []struct {
		writer int64
		seq    int
		want   verdict
		base   int64
	}{
		{-1, 5, fresh, 0},
		{2, 0, fresh, 0},
		{2, 1, outOfOrder, 0},
		{1, 8, fresh, 0},
		{1, 9, outOfOrder, 0},
		{1, 7, duplicate, 70},
		{1, 3, duplicate, 30},
		{1, 2, forgotten, 0},
	} {
		what, ref := w.judge(c.writer, c.seq)
		require.Equal(t, c.want, what, "%+v", c)
		require.Equal(t, c.base, ref.base, "%+v", c)
	}
}

// TestTableViews holds both views of a table against replays of the changelog.
func TestTableViews(t *testing.T) {
	for seed := range uint64(30) {
		r := random(seed)
		var l changelog
		tbl := rebuild(&l, 0, nil)
		for range 100 {
			var rows []protocol.Row
			for range 1 + r.IntN(3) {
				row := protocol.Row{Key: fmt.Sprint("k", r.IntN(4))}
				if r.IntN(3) > 0 {
					row.Value = []byte(fmt.Sprint(l.end, len(rows)))
				}
				rows = append(rows, row)
			}
			batch := tbl.changes(rows)
			for i, rec := range batch {
				rec.Offset, rec.Batch, rec.Index = l.end, len(batch), i
				l.append(rec)
				tbl.stage(&rec)
			}
			tbl.advance(&l, tbl.applied+int64(r.IntN(int(l.end-tbl.applied)+1)))
			requireTable(t, &l, tbl)
			again := rebuild(&l, tbl.applied, nil)
			require.Equal(t, tbl.committed, again.committed)
			require.Equal(t, tbl.pending, again.pending)
			snap, err := decodeSnapshot(encodeSnapshot(&l, tbl))
			require.NoError(t, err)
			require.True(t, snap.of(&l))
			again = rebuild(&l, tbl.applied, snap)
			require.Equal(t, tbl.committed, again.committed)
			require.Equal(t, tbl.pending, again.pending)
		}
	}
}

func requireTable(t *testing.T, l *changelog, tbl *table) {
	t.Helper()
	state := map[string]string{}
	check := func(read func(string) ([]byte, bool)) {
		for i := range 4 {
			key := fmt.Sprint("k", i)
			got, ok := read(key)
			want, exists := state[key]
			require.Equal(t, exists, ok, key)
			require.Equal(t, want, string(got), key)
		}
	}
	for i := range l.end {
		if i == tbl.applied {
			check(func(k string) ([]byte, bool) { v, ok := tbl.committed[k]; return v, ok })
		}
		rec := l.at(i)
		switch old, exists := state[rec.Key]; rec.Change {
		case protocol.ChangeInsert:
			require.False(t, exists)
			state[rec.Key] = string(rec.Value)
		case protocol.ChangeUpdateBefore, protocol.ChangeDelete:
			require.Equal(t, old, string(rec.Value), "it carries the old value")
			if rec.Change == protocol.ChangeDelete {
				delete(state, rec.Key)
			}
		case protocol.ChangeUpdateAfter:
			state[rec.Key] = string(rec.Value)
		case protocol.ChangeAppend:
		}
	}
	check(tbl.latest)
}

// TestDigestsAreThoseOfAPrefix compares the running digest with fresh ones over
// growing, truncated and looked-back-at logs.
func TestDigestsAreThoseOfAPrefix(t *testing.T) {
	for seed := range uint64(20) {
		r := random(seed)
		var l changelog
		var d digest
		for epoch := range 30 {
			grow(&l, r, epoch, 40)
			if r.IntN(3) == 0 {
				to := int64(r.IntN(int(l.end) + 1))
				l.truncate(to)
				d.truncate(to)
			}
			at := int64(r.IntN(int(l.end) + 1))
			var again digest
			require.Equal(t, again.at(&l, at), d.at(&l, at))
		}
	}
}

func TestSpoiltSnapshotsAreRefused(t *testing.T) {
	var l changelog
	grow(&l, random(2), 1, 20)
	file := encodeSnapshot(&l, rebuild(&l, l.end, nil))
	for at := range file {
		spoilt := append([]byte{}, file...)
		spoilt[at] ^= 0x20
		_, err := decodeSnapshot(spoilt)
		require.Error(t, err)
		_, err = decodeSnapshot(file[:at])
		require.Error(t, err)
	}
}

func TestSnapshotsOfAnotherLogAreNotUsed(t *testing.T) {
	var l, other changelog
	grow(&l, random(2), 1, 20)
	grow(&other, random(2), 2, 20)
	snap, err := decodeSnapshot(encodeSnapshot(&l, rebuild(&l, l.end, nil)))
	require.NoError(t, err)
	require.True(t, snap.of(&l))
	require.False(t, snap.of(&other), "its last record has another epoch")
	l.truncate(l.end - 1)
	require.False(t, snap.of(&l))
}
