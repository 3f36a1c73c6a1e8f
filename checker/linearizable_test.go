package checker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/history"
)

// recorder builds histories in tests.
type recorder struct {
	t   testing.TB
	ops []history.Op
}

func (r *recorder) add(p int, typ history.Type, f, key string, value any) *recorder {
	raw, err := json.Marshal(value)
	require.NoError(r.t, err)
	kv := history.KeyValue{Key: key, Value: raw}
	r.ops = append(r.ops, history.Op{
		Index: len(r.ops), Time: time.Duration(len(r.ops)) * time.Millisecond,
		Process: history.Process(p), Type: typ, F: f, Value: kv.JSON(),
	})
	return r
}

func (r *recorder) history() history.History {
	h, err := history.New(r.ops)
	require.NoError(r.t, err)
	return h
}

func TestContractOfRegisters(t *testing.T) {
	for name, r := range map[string]*recorder{
		"another key":   (&recorder{t: t}).add(0, history.Invoke, "read", "a", nil).add(0, history.Ok, "read", "b", 1),
		"another value": (&recorder{t: t}).add(0, history.Invoke, "write", "a", 1).add(0, history.Ok, "write", "a", 2),
	} {
		_, err := NewLinearizable(DefaultLinearizable()).Check(t.Context(), r.history())
		require.ErrorIs(t, err, history.ErrContract, name)
		require.ErrorContains(t, err, "line 2", name)
	}
	bad, err := history.New([]history.Op{{F: "read", Value: json.RawMessage(`7`)}})
	require.NoError(t, err)
	_, err = NewLinearizable(DefaultLinearizable()).Check(t.Context(), bad)
	require.ErrorContains(t, err, "line 1")
}

// manyWrites is a key with n finished writes, one after another, of few values
// if repeat, then a stale read if bad.
func manyWrites(tb testing.TB, n int, repeat, bad bool) history.History {
	tb.Helper()
	r := &recorder{t: tb}
	for i := 1; i <= n; i++ {
		value := i
		if repeat {
			value = i%2 + 1
		}
		r.add(0, history.Invoke, "write", "a", value).add(0, history.Ok, "write", "a", value)
	}
	if bad {
		r.add(1, history.Invoke, "read", "a", nil).add(1, history.Ok, "read", "a", 1)
	}
	return r.history()
}

// knot is a key with n clients that write two values at the same time, again and
// again, and a read that fits none of the orders: a search must try them all.
func knot(t *testing.T, n int) history.History {
	t.Helper()
	r := &recorder{t: t}
	for round := range 3 {
		for p := range n {
			r.add(p, history.Invoke, "write", "a", p%7+10*(round%2))
		}
		for p := range n {
			r.add(p, history.Ok, "write", "a", p%7+10*(round%2))
		}
	}
	for _, value := range []int{1, 2} {
		r.add(0, history.Invoke, "read", "a", nil).add(0, history.Ok, "read", "a", value)
	}
	return r.history()
}

func TestLimitsEndInUnknownAndNeverInValid(t *testing.T) {
	small := DefaultLinearizable()
	small.Memory = 100 // bytes: room for 28 operations, and for no dead end
	v, err := NewLinearizable(small).Check(t.Context(), knot(t, 12))
	require.NoError(t, err)
	require.Equal(t, Unknown, v.Validity)
	require.Equal(t, ReasonMemory, v.Reason)

	hasty := DefaultLinearizable()
	hasty.TotalTime = time.Nanosecond
	v, err = NewLinearizable(hasty).Check(t.Context(), knot(t, 12))
	require.NoError(t, err)
	require.Equal(t, Unknown, v.Validity)
	require.Equal(t, ReasonTime, v.Reason)

	// The zones need no budget: with unique writes the same limits still decide.
	v, err = NewLinearizable(small).Check(t.Context(), manyWrites(t, 50, false, false))
	require.NoError(t, err)
	require.Equal(t, Valid, v.Validity)
	require.Contains(t, v.Summary, "not asked 1")
	v, err = NewLinearizable(small).Check(t.Context(), manyWrites(t, 50, false, true))
	require.NoError(t, err)
	require.Equal(t, Invalid, v.Validity)
}

// Porcupine's own memory grows with every step; the account stops it.
func TestPorcupineKeepsWithinItsMemory(t *testing.T) {
	keys, err := registers(knot(t, 14))
	require.NoError(t, err)
	h := knot(t, 14)
	ops := keys[0].operations(h)
	begun := time.Now()
	got, reason := askPorcupine(registerModel(nil), ops, porcupineLimits{memory: 1 << 20})
	require.Equal(t, timedOut, got)
	require.Equal(t, ReasonMemory, reason)
	require.Less(t, time.Since(begun), 5*time.Second)
}

func TestADifferenceBetweenTheAlgorithmsIsAHarnessFailure(t *testing.T) {
	h := manyWrites(t, 3, false, false)
	keys, err := registers(h)
	require.NoError(t, err)
	timeline, err := newTimeline(h)
	require.NoError(t, err)
	c := linearizable{DefaultLinearizable()}
	for name, r := range map[string]keyResult{
		"zones illegal": {path: byZones, fast: illegal, zones: zoneAnswer{fault: zonesConflict, a: 1, b: 2}, porcupine: legal},
		"zones legal":   {path: byZones, fast: legal, porcupine: illegal},
		"no proof":      {path: byZones, fast: legal, zones: zoneAnswer{fault: zonesConflict, a: 1, b: 2}, porcupine: illegal},
		"search legal":  {path: byWindow, fast: legal, zones: zoneAnswer{fault: zonesRepeated}, porcupine: illegal},
	} {
		v := c.verdict(t.Context(), h, timeline, keys[0], r)
		require.Equal(t, Harness, v.Class, name)
		require.Equal(t, Invalid, v.Validity, name)
		require.Equal(t, ReasonDisagree, v.Reason, name)
		require.NotEmpty(t, v.Evidence, name)
		whole := Verdict{Checker: "linearizable", Parts: []Verdict{v}}
		c.conclude(&whole, LinearizableData{Acknowledged: 3, Undecided: []string{"a"}})
		require.Equal(t, ExitHarness, Compose([]Verdict{whole}).Exit, name)
	}
}

func TestPictures(t *testing.T) {
	h := manyWrites(t, 20, false, true)
	page, err := Picture(h, "a")
	require.NoError(t, err)
	require.True(t, bytes.Contains(page, []byte("<html")))
	_, err = Picture(h, "b")
	require.ErrorContains(t, err, "no operation")
	page, err = Picture(manyWrites(t, 3000, false, true), "a")
	require.NoError(t, err)
	require.True(t, bytes.Contains(page, []byte("read 1"))) // the stale read, and what it conflicts with
	require.Less(t, len(page), 1<<20)
	_, err = Picture(manyWrites(t, 3000, true, false), "a")
	require.ErrorContains(t, err, "too many")
}

// Porcupine's page puts states into innerHTML: keys and values are anybody's.
func TestPicturesDoNotRunWhatAValueHolds(t *testing.T) {
	r := &recorder{t: t}
	r.add(0, history.Invoke, "write", "a", 1).add(0, history.Ok, "write", "a", 1)
	for i := range r.ops {
		r.ops[i].Value = json.RawMessage(`{"key":"a","value":"<img src=x onerror=alert(1)>"}`)
	}
	page, err := Picture(r.history(), "a")
	require.NoError(t, err)
	require.False(t, bytes.Contains(page, []byte("<img")))
	require.True(t, bytes.Contains(page, []byte(`"StateDescription":"\u0026#34;\u0026lt;img`)))
}

func TestWitnesses(t *testing.T) {
	for _, repeat := range []bool{false, true} {
		h := manyWrites(t, 20, repeat, false)
		order, err := Witness(h, "a", time.Minute)
		require.NoError(t, err)
		require.Len(t, order, 20)
		require.IsIncreasing(t, order) // one client: its own order is the only one
	}
	_, err := Witness(manyWrites(t, 20, false, true), "a", time.Minute)
	require.ErrorContains(t, err, "illegal")
	_, err = Witness(manyWrites(t, 20, false, false), "b", time.Minute)
	require.ErrorContains(t, err, "no operation")
}

func TestACancelledCheckSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := CheckAll(ctx, manyWrites(t, 3, false, false), NewLinearizable(DefaultLinearizable()))
	require.Equal(t, ExitUnknown, r.Exit)
	require.Equal(t, ReasonTime, r.Verdicts[0].Reason)
}

func BenchmarkLinearizable(b *testing.B) {
	r := &recorder{t: b}
	for i := range 20_000 {
		key, value := fmt.Sprint("k", i/200), i+1
		r.add(0, history.Invoke, "write", key, value).add(0, history.Ok, "write", key, value)
	}
	h := r.history()
	c := NewLinearizable(DefaultLinearizable())
	b.ReportAllocs()
	for b.Loop() {
		if v, err := c.Check(b.Context(), h); err != nil || v.Validity != Valid {
			b.Fatal(v.Summary, err)
		}
	}
}
