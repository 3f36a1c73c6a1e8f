package workloads

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

func TestEveryWorkloadIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All() {
		require.False(t, seen[w.Name], "%s stands twice", w.Name)
		seen[w.Name] = true
		require.NotEmpty(t, w.Doc, w.Name)
		require.NotEmpty(t, w.Consistency, w.Name)
		require.NotNil(t, w.Open, w.Name)
		require.NotNil(t, w.Generator, w.Name)
		require.NotEmpty(t, w.Checkers(harness.DefaultOptions()), w.Name)
		found, err := Named(w.Name)
		require.NoError(t, err)
		require.Equal(t, w.Name, found.Name)
	}
	_, err := Named("nothing")
	require.ErrorContains(t, err, "register")
}

// allFree is what the loop would tell when every process is free.
func allFree(o harness.Options, w harness.Workload, r *rand.Rand, at time.Duration) harness.Context {
	n := o.Concurrency + w.Extra(o)
	c := harness.Context{Time: at, Workers: n, Rand: r}
	for i := range n {
		c.All = append(c.All, history.Process(i))
	}
	c.Free = c.All
	return c
}

func TestRegisterWritesEachValueOnce(t *testing.T) {
	o := harness.DefaultOptions()
	o.Rate = 0
	w := register()
	g, r := w.Generator(o), harness.Stream(1, "test")
	written := map[string]bool{}
	scanned := map[int]bool{}
	for i := range 20_000 {
		c := allFree(o, w, r, time.Duration(i)*time.Millisecond)
		s := g.Next(c)
		require.False(t, s.Done)
		require.False(t, s.Pending)
		op := s.Op
		op.Type = history.Invoke
		g.Update(c, op)
		switch op.F {
		case fFetch:
			var scan Scan
			require.NoError(t, json.Unmarshal(op.Value, &scan))
			require.Equal(t, int(op.Process)-o.Concurrency, scan.Bucket)
			scanned[scan.Bucket] = true
		case fWrite:
			kv, err := history.KeyValueOf(op)
			require.NoError(t, err)
			require.False(t, written[string(kv.Value)])
			written[string(kv.Value)] = true
		default:
			require.Equal(t, fRead, op.F)
		}
		op.Type = history.Ok
		g.Update(c, op)
	}
	require.Len(t, scanned, o.Buckets)
	require.Greater(t, len(written), 8000)
	reads := 0
	final := w.Final(o, g)
	for {
		c := allFree(o, w, r, time.Hour)
		s := final.Next(c)
		if s.Done {
			break
		}
		s.Op.Type = history.Ok
		final.Update(c, s.Op)
		reads++
	}
	require.Greater(t, reads, 15_000/o.OpsPerKey, "the rest of the operations were fetches")
}

func TestScannersMoveForwardOnly(t *testing.T) {
	s := newScans(2)
	c := harness.Context{Workers: 5}
	tell := func(typ history.Type, scan Scan) {
		value, err := json.Marshal(scan)
		require.NoError(t, err)
		s.Update(c, history.Op{Process: 4, Type: typ, F: fFetch, Value: value})
	}
	tell(history.Ok, Scan{Bucket: 1, From: 0, Next: 10})
	tell(history.Fail, Scan{Bucket: 1, From: 10, Next: 99})
	tell(history.Ok, Scan{Bucket: 1, From: 10, Next: 7})
	require.Equal(t, []int64{0, 10}, s.at)
}

func TestWhatIsNoJSONIsKeptAsText(t *testing.T) {
	require.JSONEq(t, `17`, string(stored([]byte("17"))))
	require.JSONEq(t, `"\u0001x"`, string(stored([]byte("\x01x"))))
	require.Nil(t, stored(nil))
}
