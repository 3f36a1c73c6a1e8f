package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// lineEvent is a call or a return of a span.
type lineEvent struct {
	span int
	call bool
}

// eventsOf puts calls and returns in their order.
func eventsOf(spans []span) []lineEvent {
	out := make([]lineEvent, 2*len(spans))
	for i := range out {
		out[i].span = -1
	}
	for i, s := range spans {
		out[s.Call] = lineEvent{i, true}
		if s.Ret != forever {
			out[s.Ret] = lineEvent{i, false}
		}
	}
	n := 0
	for _, e := range out {
		if e.span >= 0 {
			out[n] = e
			n++
		}
	}
	return out[:n]
}

// firstViolation feeds a history event by event and gives the position at which
// the online form objects, -1 if never.
func firstViolation(tb testing.TB, spans []span) int {
	tb.Helper()
	r := newOnlineRegister(initial)
	ids := make([]callID, len(spans))
	for at, e := range eventsOf(spans) {
		s := spans[e.span]
		switch {
		case e.call && s.Write:
			id, fresh := r.callWrite(s.Value)
			require.True(tb, fresh)
			ids[e.span] = id
			if s.Ret == forever {
				r.drop(id)
			}
		case e.call:
			ids[e.span] = r.callRead()
		default:
			if !r.done(ids[e.span], s.Value) {
				return at
			}
		}
	}
	return -1
}

// compareOnline judges every prefix of a random history by the zones: the online
// form must object at the first bad one, and not before.
func compareOnline(t *testing.T, seed uint64) bool {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	spans, values := randomSpans(r, true)
	z := &zoner{}
	if z.judge(spans, values).fault == zonesRepeated {
		return false
	}
	want := -1
	for at, e := range eventsOf(spans) {
		if e.call {
			continue
		}
		prefix := register{spans: spans, invoke: make([]int32, len(spans))}.prefix(int32(at) + 1)
		if z.judge(prefix.spans, values).answer() == illegal {
			want = at
			break
		}
	}
	got := firstViolation(t, spans)
	if got != want {
		t.Fatalf("seed %d: online objects at %d, zones at %d: %+v", seed, got, want, spans)
	}
	return want >= 0
}

func FuzzOnline(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { compareOnline(t, seed) })
}

// Long histories exercise eviction, which two dozen events hardly do.
func TestOnlineOnLongHistories(t *testing.T) {
	for seed := range max(12/slower, 3) {
		r := recipe{N: 20_000, Clients: 3 + seed*4, Keys: 1, Read: 0.5, Write: 0.5, Late: 3, Seed: uint64(seed)}
		if seed%3 == 2 {
			r.Crash = 0.01
		}
		ops := spansOf(r.draw())
		good := asSpans(ops)
		require.Equal(t, -1, firstViolation(t, good), "seed %d", seed)
		if !staleRead(ops, 0.5) {
			continue
		}
		bad := asSpans(ops)
		values := 0
		for _, s := range bad {
			values = max(values, int(s.Value)+1)
		}
		require.Equal(t, illegal, (&zoner{}).judge(bad, values).answer())
		require.GreaterOrEqual(t, firstViolation(t, bad), 0, "seed %d", seed)
	}
}

func asSpans(ops []regOp) []span {
	out := make([]span, len(ops))
	for i, op := range ops {
		out[i] = span{op.Call, op.Ret, op.Value, op.Kind == opWrite}
	}
	return out
}

func TestOnlineMemoryDoesNotGrowWithTheHistory(t *testing.T) {
	for _, n := range []int{20_000, 200_000 / slower} {
		spans, _ := plainSpans(recipe{N: n, Clients: 20, Keys: 1, Read: 0.5, Write: 0.5, Late: 3, Seed: 1})
		r := newOnlineRegister(initial)
		ids := make([]callID, len(spans))
		most := 0
		for _, e := range eventsOf(spans) {
			s := spans[e.span]
			switch {
			case e.call && s.Write:
				ids[e.span], _ = r.callWrite(s.Value)
			case e.call:
				ids[e.span] = r.callRead()
			default:
				require.True(t, r.done(ids[e.span], s.Value))
			}
			most = max(most, r.size())
		}
		t.Logf("%d operations: at most %d entries, %d slots", n, most, len(r.slots))
		require.Less(t, most, 1500)
	}
}

func BenchmarkOnline(b *testing.B) {
	for _, clients := range []int{5, 20, 100} {
		spans, _ := plainSpans(recipe{N: 1_000_000, Clients: clients, Keys: 1, Read: 0.5, Write: 0.5, Late: 3, Seed: 1})
		events := eventsOf(spans)
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			b.ReportAllocs()
			ids := make([]callID, len(spans))
			for b.Loop() {
				r := newOnlineRegister(initial)
				for _, e := range events {
					s := &spans[e.span]
					switch {
					case e.call && s.Write:
						ids[e.span], _ = r.callWrite(s.Value)
					case e.call:
						ids[e.span] = r.callRead()
					default:
						if !r.done(ids[e.span], s.Value) {
							b.Fatal("illegal")
						}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(spans)), "ns/operation")
		})
	}
}
