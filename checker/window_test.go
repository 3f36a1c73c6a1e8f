package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// compareWindow judges a random history by the window search, with look-ahead and
// as a drop-in, and by Porcupine.
func compareWindow(t *testing.T, seed uint64) answer {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	ops, values := randomOps(r, []int{0, 1, 2, 3, 4}[r.IntN(5)])
	look := searchRegister(ops, values, windowLimits{})
	drop := searchModel(registerModel(nil), casOperations(ops), windowLimits{})
	want := porcupineSays(registerModel(nil), casOperations(ops), 0)
	if look.answer != want || drop.answer != want {
		t.Fatalf("seed %d: look-ahead %+v, drop-in %+v, Porcupine %v: %+v", seed, look, drop, want, ops)
	}
	for _, a := range []windowAnswer{look, drop} {
		if want == legal {
			if err := replay(ops, a.witness); err != nil {
				t.Fatalf("seed %d: %v is no witness: %v: %+v", seed, a.witness, err, ops)
			}
		}
	}
	return want
}

func FuzzWindow(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { compareWindow(t, seed) })
}

func valuesOf(ops []regOp) int {
	most := int32(0)
	for _, op := range ops {
		most = max(most, op.Value, op.From)
	}
	return int(most) + 1
}

func BenchmarkWindow(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		for _, clients := range []int{5, 10, 20} {
			r := recipe{N: n, Clients: clients, Keys: 1, Values: 5, Read: 0.4, Write: 0.4, Hit: 0.5, Late: 3, Seed: 1}
			ops := spansOf(r.draw())
			values := valuesOf(ops)
			b.Run(fmt.Sprintf("look-ahead/ops=%d/clients=%d", n, clients), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if a := searchRegister(ops, values, windowLimits{}); a.answer != legal {
						b.Fatal(a)
					}
				}
			})
			if n*clients > 100_000 {
				continue
			}
			operations := casOperations(ops)
			b.Run(fmt.Sprintf("drop-in/ops=%d/clients=%d", n, clients), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if a := searchModel(registerModel(nil), operations, windowLimits{}); a.answer != legal {
						b.Fatal(a)
					}
				}
			})
			if n*clients > 50_000 {
				continue
			}
			b.Run(fmt.Sprintf("porcupine/ops=%d/clients=%d", n, clients), func(b *testing.B) {
				for b.Loop() {
					if a := porcupineSays(registerModel(nil), operations, 0); a != legal {
						b.Fatal(a)
					}
				}
			})
		}
	}
}
