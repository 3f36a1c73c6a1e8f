package checker

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Flags can only be package variables.
var (
	historiesFlag = flag.Int("checker.histories", 0, "random histories for each exact algorithm against Porcupine (0: a few thousand)")
	seedFlag      = flag.Uint64("checker.seed", 0, "the first of their seeds")
)

// TestExactAlgorithmsAgreeWithPorcupine is the nightly form of the fuzz targets:
//
//	go test -run ExactAlgorithms -timeout 0 ./checker -checker.histories 2000000
//
// No answer may differ, and enough histories must be violations for that to mean
// something.
func TestExactAlgorithmsAgreeWithPorcupine(t *testing.T) {
	z, c, l := &zoner{}, &chainer{}, &logger{}
	for _, test := range []struct {
		name  string
		usual int
		judge func(seed uint64) answer
	}{
		{"zones", 20_000, func(seed uint64) answer { return compareZones(t, z, seed) }},
		{"chains", 20_000, func(seed uint64) answer { a, _ := compareChains(t, c, seed); return a }},
		{"window", 8_000, func(seed uint64) answer { return compareWindow(t, seed) }},
		{"log", 10_000, func(seed uint64) answer { a, _ := compareLog(t, l, seed); return a }},
		{"versions", 20_000, func(seed uint64) answer { return compareVersions(t, seed) }},
		{"online", 20_000, func(seed uint64) answer {
			if compareOnline(t, seed) {
				return illegal
			}
			return legal
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := max(test.usual/slower, *historiesFlag)
			counts := map[answer]int{}
			begun := time.Now()
			for seed := *seedFlag; seed < *seedFlag+uint64(n); seed++ {
				counts[test.judge(seed)]++
			}
			t.Logf("%d histories in %v: %v", n, time.Since(begun).Round(time.Millisecond), counts)
			require.Greater(t, counts[illegal], n*15/100)
			require.Greater(t, counts[legal], n*15/100)
			require.Less(t, counts[notAsked], n*25/100)
		})
	}
}

// porcupineSays is Porcupine's answer without a limit of memory.
func porcupineSays[S, I, O any](m Model[S, I, O], ops []Operation[I, O], limit time.Duration) answer {
	a, _ := askPorcupine(m, ops, porcupineLimits{time: limit})
	return a
}
