package checker

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/history"
)

// watchAll gives the first alarm of a history, or -1.
func watchAll(t *testing.T, h history.History) (int, *RegisterWatch) {
	t.Helper()
	w := NewRegisterWatch()
	for _, op := range h.Ops() {
		alarm, ok, err := w.Add(op)
		require.NoError(t, err)
		if !ok {
			require.Equal(t, op.Index, alarm.Line)
			require.NotEmpty(t, alarm.Text)
			return op.Index, w
		}
	}
	return -1, w
}

// The watch must say of every history of the corpus what the checker says of it.
func TestTheWatchAgreesWithTheCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/linearizable/*/*.jsonl")
	require.NoError(t, err)
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		h, _, err := history.Read(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		line, w := watchAll(t, h)
		if w.Unwatched() > 0 {
			continue // repeated values: the checker's search judges those
		}
		require.Equal(t, filepath.Base(filepath.Dir(name)) == "invalid", line >= 0, name)
	}
}

// On random runs with crashes and refusals over two keys the watch alarms exactly
// when the stored prefix becomes invalid.
func TestTheWatchAlarmsAtTheLineThatMakesItInvalid(t *testing.T) {
	alarms := 0
	for seed := range 300 / min(slower, 5) {
		h := randomRun(t, uint64(seed))
		line, _ := watchAll(t, h)
		check := func(n int) Validity {
			prefix, err := history.New(h.Ops()[:n])
			require.NoError(t, err)
			v, err := NewLinearizable(DefaultLinearizable()).Check(t.Context(), prefix)
			require.NoError(t, err)
			return v.Validity
		}
		if line < 0 {
			require.NotEqual(t, Invalid, check(h.Len()), "seed %d", seed)
			continue
		}
		alarms++
		require.Equal(t, Invalid, check(line+1), "seed %d line %d", seed, line+1)
		require.NotEqual(t, Invalid, check(line), "seed %d line %d", seed, line)
	}
	require.Greater(t, alarms, 50/min(slower, 5))
}

func randomRun(t *testing.T, seed uint64) history.History {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	rec := &recorder{t: t}
	type pending struct {
		f, key string
		value  any
	}
	open := map[int]pending{}
	state := map[string]any{}
	old := map[string]any{}
	next, processes := 0, []int{0, 1, 2}
	for range 40 {
		i := r.IntN(len(processes))
		p := processes[i]
		o, busy := open[p]
		if !busy {
			o = pending{f: "read", key: string(rune('a' + r.IntN(2)))}
			if r.IntN(2) == 0 {
				next++
				o.f, o.value = "write", next
			}
			open[p] = o
			rec.add(p, history.Invoke, o.f, o.key, o.value)
			continue
		}
		delete(open, p)
		typ := []history.Type{history.Ok, history.Ok, history.Ok, history.Ok, history.Ok, history.Fail, history.Info}[r.IntN(7)]
		if o.f == "write" && (typ == history.Ok || typ == history.Info && r.IntN(2) == 0) {
			old[o.key], state[o.key] = state[o.key], o.value
		}
		if o.f == "read" && typ == history.Ok {
			if o.value = state[o.key]; r.IntN(12) == 0 {
				o.value = old[o.key]
			}
		}
		rec.add(p, typ, o.f, o.key, o.value)
		if typ == history.Info {
			processes[i] = 3 + len(rec.ops)
		}
	}
	return rec.history()
}
