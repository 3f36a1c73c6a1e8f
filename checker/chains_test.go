package checker

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomOps draws a small history of a register with compare-and-set, what a
// correct one could have done and then up to six mutations. It gives the number
// of values, too.
func randomOps(r *rand.Rand, values int) ([]regOp, int) {
	rec := recipe{
		N: 3 + r.IntN(16), Clients: 2 + r.IntN(5), Keys: 1, Values: values, Seed: r.Uint64(),
		Read: 0.4, Write: 0.25, Hit: 0.3 + r.Float64()*0.6, Late: 3, Crash: []float64{0, 0.1, 0.3}[r.IntN(3)],
	}
	if r.IntN(4) == 0 {
		rec.Read, rec.Write = 0.5, 0.5
	}
	drawn := rec.draw()
	if r.IntN(3) == 0 { // squeeze time, so that many stamps tie
		for i := range drawn {
			drawn[i].call /= meanLatency / 2
			if drawn[i].ret != foreverTime {
				drawn[i].ret /= meanLatency / 2
			}
		}
	}
	ops := spansOf(drawn)
	slices.SortFunc(ops, func(a, b regOp) int { return int(a.Call) - int(b.Call) })
	most := int32(1)
	for _, op := range ops {
		most = max(most, op.Value, op.From)
	}
	for range r.IntN(7) {
		if len(ops) > 0 {
			mutate(r, &ops[r.IntN(len(ops))], most)
		}
	}
	return ops, int(most) + 1
}

func mutate(r *rand.Rand, op *regOp, most int32) {
	switch op.Kind {
	case opRead:
		op.Value = int32(r.IntN(int(most) + 1))
	case opFailedCAS:
		if r.IntN(2) == 0 {
			op.Kind = opCAS
		} else {
			op.From = int32(r.IntN(int(most) + 1))
		}
	case opCAS:
		if r.IntN(2) == 0 && !op.crashed() {
			op.Kind = opFailedCAS
		} else {
			op.From = int32(r.IntN(int(most) + 1))
		}
	case opWrite:
	}
}

func compareChains(t *testing.T, c *chainer, seed uint64) (chains, porcupine answer) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	ops, values := randomOps(r, 0)
	got := c.judge(ops, values)
	want := porcupineSays(registerModel(nil), casOperations(ops), 0)
	if a := got.answer(); a != notAsked && a != want {
		t.Fatalf("seed %d: chains say %v (%+v), Porcupine %v: %+v", seed, a, got, want, ops)
	}
	if got.fault == chainsRepeated {
		want = notAsked
	}
	return got.answer(), want
}

func FuzzChains(f *testing.F) {
	f.Add(uint64(1))
	c := &chainer{}
	f.Fuzz(func(t *testing.T, seed uint64) { compareChains(t, c, seed) })
}
