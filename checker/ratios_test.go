package checker

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Flags can only be package variables.
var ratiosFlag = flag.Bool("checker.ratios", false, "measure the exact algorithms against Porcupine and print a table")

// cost is what one judgement took: processor time, and bytes allocated, which
// bounds its memory from above.
type cost struct {
	cpu   time.Duration
	bytes uint64
}

// measure takes the best of several runs, fewer where one is slow.
func measure(t *testing.T, judge func() answer, want answer) cost {
	t.Helper()
	best := cost{cpu: time.Hour}
	spent := time.Duration(0)
	for range 5 {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := cpu(t)
		got := judge()
		took := cpu(t) - begun
		runtime.ReadMemStats(&after)
		require.Equal(t, want, got)
		best.cpu = min(best.cpu, max(took, time.Microsecond))
		best.bytes = after.TotalAlloc - before.TotalAlloc
		if spent += took; spent > 2*time.Second {
			break
		}
	}
	return best
}

// pair is a history that both judge. least is the ratio that must hold even on a
// busy machine.
type pair struct {
	name       string
	fast, slow func() answer
	want       answer
	least      float64
}

func ratioPairs() []pair {
	var out []pair
	for _, c := range []struct{ n, clients int }{{1000, 5}, {1000, 10}, {10_000, 5}, {10_000, 10}} {
		spans, values := plainSpans(recipe{N: c.n, Clients: c.clients, Keys: 1, Read: 0.5, Write: 0.5, Late: 3, Seed: 1})
		out = append(out, pair{
			fmt.Sprintf("unique register, %d operations, %d clients", c.n, c.clients),
			func() answer { return (&zoner{}).judge(spans, values).answer() },
			func() answer { return porcupineOf(spans) }, legal, 50,
		})
	}
	for _, c := range []struct{ n, clients int }{{1000, 5}, {1000, 10}, {10_000, 5}, {10_000, 10}} {
		ops := spansOf(recipe{N: c.n, Clients: c.clients, Keys: 1, Values: 5, Read: 0.4, Write: 0.4, Hit: 0.5, Late: 3, Seed: 1}.draw())
		values, operations := valuesOf(ops), casOperations(ops)
		slow := func() answer { return porcupineSays(registerModel(nil), operations, 0) }
		out = append(out, pair{
			fmt.Sprintf("5 values and compare-and-set, %d operations, %d clients: look-ahead", c.n, c.clients),
			func() answer { return searchRegister(ops, values, windowLimits{}).answer }, slow, legal, 1.5,
		}, pair{
			fmt.Sprintf("5 values and compare-and-set, %d operations, %d clients: drop-in", c.n, c.clients),
			func() answer { return searchModel(registerModel(nil), operations, windowLimits{}).answer }, slow, legal, 0.3,
		})
	}
	for _, n := range []int{1000, 5000} {
		ops, arena, count := logOpsOf(logRecipe{N: n, Clients: 5, Batch: 1, Strong: true, Seed: 1}.draw())
		operations := make([]Operation[logOp, struct{}], len(ops))
		for i, op := range ops {
			operations[i] = Operation[logOp, struct{}]{Client: i, Input: op, Call: int64(op.Call), Return: int64(op.Ret)}
		}
		out = append(out, pair{
			fmt.Sprintf("log, %d operations, 5 clients", n),
			func() answer { return (&logger{}).judge(ops, arena, count).answer() },
			func() answer { return porcupineSays(logModel(arena), operations, 0) }, legal, 5,
		})
	}
	return out
}

// TestRatios measures every exact algorithm and Porcupine on the same histories in
// the same process. Seconds depend on the machine and its neighbours; ratios do
// not, so ratios are what may fail.
//
//	go test -run Ratios -v ./checker -checker.ratios
func TestRatios(t *testing.T) {
	pairs := ratioPairs()
	if !*ratiosFlag {
		pairs = slices.DeleteFunc(pairs, func(p pair) bool { return !strings.Contains(p.name, " 1000 ") })
	}
	if slower > 1 {
		pairs = pairs[:1] // under the race detector only that it runs
	}
	for _, p := range pairs {
		fast, slow := measure(t, p.fast, p.want), measure(t, p.slow, p.want)
		ratio := float64(slow.cpu) / float64(fast.cpu)
		t.Logf("| %s | %v, %d kB | %v, %d kB | %.0f × CPU, %.0f × memory |", p.name,
			fast.cpu, fast.bytes>>10, slow.cpu, slow.bytes>>10, ratio, float64(slow.bytes)/float64(max(fast.bytes, 1)))
		// A millisecond is noise; what Porcupine takes long for is not.
		if slower == 1 && slow.cpu >= 20*time.Millisecond {
			require.Greater(t, ratio, p.least, p.name)
		}
	}
}
