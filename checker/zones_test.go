package checker

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomSpans draws a small history of one register: what a correct register
// could have done, then up to six mutations. Values repeat if unique is false.
func randomSpans(r *rand.Rand, unique bool) ([]span, int) {
	n := 1 + r.IntN(14)
	type event struct {
		at   float64
		op   int
		call bool
	}
	var events []event
	spans := make([]span, n)
	effect := make([]float64, n)
	clients := make([]float64, 1+r.IntN(5))
	squeeze := 1 + r.Float64()*4
	for i := range spans {
		c := r.IntN(len(clients))
		call := clients[c]
		ret := call + r.ExpFloat64()*squeeze
		clients[c] = ret + r.Float64()*0.3
		effect[i] = call + r.Float64()*(ret-call)
		spans[i].Write = r.IntN(2) == 0
		events = append(events, event{call, i, true})
		if spans[i].Write && r.IntN(8) == 0 {
			spans[i].Ret = forever
			effect[i] += r.ExpFloat64() * 3
			continue
		}
		events = append(events, event{ret, i, false})
	}
	slices.SortStableFunc(events, func(a, b event) int { return compareFloat(a.at, b.at) })
	for at, e := range events {
		if e.call {
			spans[e.op].Call = int32(at)
		} else {
			spans[e.op].Ret = int32(at)
		}
	}
	values := assignValues(r, spans, effect, unique)
	for range r.IntN(7) {
		if s := &spans[r.IntN(n)]; !s.Write {
			s.Value = int32(r.IntN(values))
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.Call) - int(b.Call) })
	return spans, values
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// assignValues applies the operations in the order of their effects; a crashed
// write takes effect half of the time.
func assignValues(r *rand.Rand, spans []span, effect []float64, unique bool) int {
	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareFloat(effect[a], effect[b]) })
	state, next := initial, int32(1)
	few := int32(2 + r.IntN(3))
	for _, i := range order {
		s := &spans[i]
		if !s.Write {
			s.Value = state
			continue
		}
		if s.Value = next; !unique {
			s.Value = int32(r.IntN(int(few)))
		}
		next++
		if s.Ret != forever || r.IntN(2) == 0 {
			state = s.Value
		}
	}
	return int(max(next, few)) + 1
}

func porcupineOf(spans []span) answer {
	r := register{spans: spans}
	return porcupineSays(registerModel(nil), casOperations(r.ops()), 0)
}

// compareZones judges one random history by zones and by Porcupine.
func compareZones(t *testing.T, z *zoner, seed uint64) answer {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	spans, values := randomSpans(r, r.IntN(4) > 0)
	got := z.judge(spans, values)
	if got.answer() == notAsked {
		return notAsked
	}
	want := porcupineOf(spans)
	if got.answer() != want {
		t.Fatalf("seed %d: zones say %v (%+v), Porcupine %v: %+v", seed, got.answer(), got, want, spans)
	}
	if want == illegal && !verifyZones(spans, got) {
		t.Fatalf("seed %d: the proof does not hold: %+v of %+v", seed, got, spans)
	}
	if want == legal {
		if err := replay(register{spans: spans}.ops(), z.witness(spans)); err != nil {
			t.Fatalf("seed %d: no witness: %v: %+v", seed, err, spans)
		}
	}
	return want
}

func FuzzZones(f *testing.F) {
	f.Add(uint64(1))
	z := &zoner{}
	f.Fuzz(func(t *testing.T, seed uint64) { compareZones(t, z, seed) })
}

func TestZonesFindNothingBeforeUniqueness(t *testing.T) {
	// 1 is written twice, so the read of 9 must not be judged by zones at all.
	spans := []span{{0, 1, 1, true}, {2, 3, 1, true}, {4, 5, 9, false}}
	require.Equal(t, zonesRepeated, (&zoner{}).judge(spans, 10).fault)
	require.Equal(t, zonesRepeated, (&zoner{}).judge([]span{{0, 1, 0, true}}, 1).fault)
}
