package inproc

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlantedBugsAreFound runs each bug in its scenario, seed after seed, until a
// checker that should find it does, and the same seed without the bug, which must
// be clean. FENCEPOST_SEEDS="from count" says how many seeds to try,
// FENCEPOST_BUGS which bugs; "all" counts instead of stopping.
func TestPlantedBugsAreFound(t *testing.T) {
	from, count := 1, 3
	if spec := os.Getenv("FENCEPOST_SEEDS"); spec != "" {
		_, err := fmt.Sscan(spec, &from, &count)
		require.NoError(t, err)
	}
	only := os.Getenv("FENCEPOST_BUGS")
	for _, p := range scenarios() {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.bug) {
			continue
		}
		t.Run(p.bug, func(t *testing.T) {
			found, dirty := 0, 0
			for seed := from; seed < from+count; seed++ {
				if p.finds(t, uint64(seed)) {
					found++
				}
				wrong := p.try(t, uint64(seed), p.with)
				if len(p.with) > 0 {
					wrong = p.found(wrong) // what the other bugs do is not judged here
				}
				if len(wrong) > 0 {
					dirty++
					t.Errorf("control, seed %d: %s", seed, strings.Join(wrong, "\n"))
				}
			}
			t.Logf("found %d of %d, controls with alarms %d", found, count, dirty)
		})
	}
}

// try runs the scenario with bugs planted and lists what is wrong.
func (p planted) try(t *testing.T, seed uint64, bugs []string) []string {
	policy, err := Plan(bugs)
	require.NoError(t, err)
	e := experiment{seed: seed, policy: policy}
	p.setup(&e)
	l, err := perform(t, e)
	require.NoError(t, err, "seed %d", seed)
	return l.judge(t.Context())
}

func (p planted) finds(t *testing.T, seed uint64) bool {
	return len(p.found(p.try(t, seed, append([]string{p.bug}, p.with...)))) > 0
}

// found keeps the alarms of the checkers that should find the bug.
func (p planted) found(wrong []string) []string {
	return slices.DeleteFunc(wrong, func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return !slices.Contains(p.by, name)
	})
}
