package checker

import (
	"fmt"
	"testing"
	"time"
)

// plainSpans is a recipe of reads and writes as the zones take it.
func plainSpans(r recipe) ([]span, int) {
	ops := spansOf(r.draw())
	out := make([]span, len(ops))
	values := int32(0)
	for i, op := range ops {
		out[i] = span{op.Call, op.Ret, op.Value, op.Kind == opWrite}
		values = max(values, op.Value)
	}
	return out, int(values) + 1
}

func BenchmarkZones(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000} {
		for _, clients := range []int{10, 100} {
			if testing.Short() && n > 1_000_000 {
				continue
			}
			spans, values := plainSpans(recipe{N: n, Clients: clients, Keys: 1, Read: 0.5, Write: 0.5, Late: 3, Seed: 1})
			b.Run(fmt.Sprintf("ops=%d/clients=%d/fresh", n, clients), func(b *testing.B) {
				b.ReportAllocs()
				begun := cpu(b)
				for b.Loop() {
					if z := (&zoner{}).judge(spans, values); z.fault != zonesLegal {
						b.Fatal(z)
					}
				}
				b.ReportMetric(float64((cpu(b)-begun).Nanoseconds())/float64(b.N)/float64(n), "cpu-ns/operation")
			})
		}
	}
}

func BenchmarkPorcupineOfZones(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		spans, _ := plainSpans(recipe{N: n, Clients: 10, Keys: 1, Read: 0.5, Write: 0.5, Late: 3, Seed: 1})
		b.Run(fmt.Sprintf("ops=%d/clients=10", n), func(b *testing.B) {
			begun := time.Now()
			for b.Loop() {
				if porcupineOf(spans) != legal {
					b.Fatal("not legal")
				}
			}
			b.ReportMetric(time.Since(begun).Seconds()/float64(b.N), "s/history")
		})
	}
}
