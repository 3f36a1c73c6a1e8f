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
// checker that should find it does, and that seed again without the bug, which
// must be clean. A bug that random runs of its scenario do not reach is only
// counted when asked for: FENCEPOST_BUGS="a,b" counts, over the seeds of
// FENCEPOST_SEEDS="from count", how often these are found.
func TestPlantedBugsAreFound(t *testing.T) {
	if only := os.Getenv("FENCEPOST_BUGS"); only != "" {
		countFound(t, strings.Split(only, ","))
		return
	}
	for _, p := range scenarios() {
		if p.within == 0 || (testing.Short() && p.within > 1) {
			continue
		}
		t.Run(p.bug, func(t *testing.T) {
			seed := uint64(1)
			for ; !p.finds(t, seed); seed++ {
				require.Less(t, seed, uint64(p.within), "not found within %d seeds", p.within)
			}
			require.Empty(t, p.control(t, seed), "alarms without the bug")
		})
	}
}

func countFound(t *testing.T, bugs []string) {
	t.Helper()
	from, count := 1, 3
	if spec := os.Getenv("FENCEPOST_SEEDS"); spec != "" {
		_, err := fmt.Sscan(spec, &from, &count)
		require.NoError(t, err)
	}
	for _, p := range scenarios() {
		if !slices.Contains(bugs, p.bug) && !slices.Contains(bugs, "all") {
			continue
		}
		found, dirty := 0, 0
		for seed := uint64(from); seed < uint64(from+count); seed++ {
			if p.finds(t, seed) {
				found++
			}
			if wrong := p.control(t, seed); len(wrong) > 0 {
				dirty++
				t.Errorf("%s, control, seed %d: %s", p.bug, seed, strings.Join(wrong, "; "))
			}
		}
		t.Logf("%s: found in %d of %d, controls with alarms: %d", p.bug, found, count, dirty)
	}
}

// control runs the scenario without the bug. If other bugs stay planted, only the
// checkers that should find this one are asked.
func (p planted) control(t *testing.T, seed uint64) []string {
	t.Helper()
	wrong := p.try(t, seed, p.with)
	if len(p.with) > 0 {
		wrong = p.found(wrong)
	}
	return wrong
}

// try runs the scenario with bugs planted and lists what is wrong.
func (p planted) try(t *testing.T, seed uint64, bugs []string) []string {
	t.Helper()
	policy, err := Plan(bugs)
	require.NoError(t, err)
	e := experiment{seed: seed, policy: policy}
	p.setup(&e)
	l, err := perform(t, e)
	require.NoError(t, err, "seed %d", seed)
	return l.judge(t.Context())
}

func (p planted) finds(t *testing.T, seed uint64) bool {
	t.Helper()
	return len(p.found(p.try(t, seed, append([]string{p.bug}, p.with...)))) > 0
}

// found keeps the alarms of the checkers that should find the bug.
func (p planted) found(wrong []string) []string {
	return slices.DeleteFunc(wrong, func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return !slices.Contains(p.by, name)
	})
}
