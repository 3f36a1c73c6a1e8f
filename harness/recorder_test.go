package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/history"
)

// smallDisk takes so many bytes and then, like a full disk, part of a write.
type smallDisk struct {
	bytes.Buffer
	room int
}

func (d *smallDisk) Write(b []byte) (int, error) {
	if len(b) > d.room {
		n, _ := d.Buffer.Write(b[:d.room])
		d.room = 0
		return n, syscall.ENOSPC
	}
	d.room -= len(b)
	return d.Buffer.Write(b)
}

func (d *smallDisk) Truncate(size int64) error { d.Buffer.Truncate(int(size)); return nil }
func (d *smallDisk) Close() error              { return nil }

func TestAFullDiskLeavesWholeLines(t *testing.T) {
	for room := range 600 {
		rec, err := NewRecorder("")
		require.NoError(t, err)
		disk := &smallDisk{room: room}
		rec.file = disk
		var failed error
		for i := range 10 {
			rec.Append(history.Op{Process: history.Process(i), Type: history.Invoke, F: "read"})
			if err := rec.Flush(); err != nil {
				failed = err
			}
		}
		require.ErrorIs(t, failed, syscall.ENOSPC)
		require.ErrorIs(t, rec.Close(), syscall.ENOSPC)
		_, report, err := history.Read(&disk.Buffer)
		require.NoError(t, err)
		require.False(t, report.Torn)
		require.Less(t, report.Lines, 10)
		require.Len(t, rec.Ops(), 10, "memory keeps what the disk could not")
	}
}

func TestTimesNeverGoBackWhoeverReports(t *testing.T) {
	dir := t.TempDir()
	rec, err := NewRecorder(dir)
	require.NoError(t, err)
	start := time.Now()
	rec.Begin(func() time.Duration { return time.Since(start) })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				rec.Observe("tablet-1", time.Since(start), history.Ready{Server: 1})
				rec.Append(history.Op{Process: history.Nemesis, Type: history.Invoke, F: "kill"})
			}
		})
	}
	wg.Wait()
	require.NoError(t, rec.Close())
	_, err = history.New(rec.Ops())
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(dir, HistoryFile))
	require.NoError(t, err)
	require.Equal(t, 4000, strings.Count(string(raw), "\n"))
	_, err = NewRecorder(dir)
	require.ErrorContains(t, err, "create history")
}

func TestListenersHearTheirKindUntilTheyAreOff(t *testing.T) {
	rec, err := NewRecorder("")
	require.NoError(t, err)
	heard := 0
	off := rec.On(history.KindReady, func(history.Op) { heard++ })
	rec.Event(history.Ready{})
	rec.Event(history.Stall{})
	off()
	rec.Event(history.Ready{})
	require.Equal(t, 1, heard)
}

func BenchmarkAppend(b *testing.B) {
	rec, err := NewRecorder(b.TempDir())
	require.NoError(b, err)
	rec.Begin(func() time.Duration { return time.Second })
	op := history.Op{Process: 3, Type: history.Ok, F: "write", Value: []byte(`{"key":"k12","value":3456}`), Node: "tablet-1", Tries: 1}
	b.ReportAllocs()
	for b.Loop() {
		rec.Append(op)
	}
}

func BenchmarkObserve(b *testing.B) {
	rec, err := NewRecorder(b.TempDir())
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		rec.Observe("tablet-1", time.Second, history.HW{Bucket: "orders#7/3", Server: 1, Incarnation: 33, LeaderEpoch: 4, From: 10, To: 12, Leading: true})
	}
}
