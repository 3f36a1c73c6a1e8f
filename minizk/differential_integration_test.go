//go:build integration

package minizk_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

var (
	diffSteps = flag.Int("minizk.steps", 100_000, "operations of the differential test, over all its programs")
	diffSeed  = flag.Uint64("minizk.seed", 1, "first seed of the differential test")
)

// programLength is how many steps one program has.
const programLength = 250

// TestTheSameAsTheRealServer runs random programs against minizk and against
// ZooKeeper 3.9.5, and wants the same replies, errors, stats, zxids, events and
// children after every step. A failure prints the steps that led to it; its
// seed repeats it.
func TestTheSameAsTheRealServer(t *testing.T) {
	super := tree.Digest("super:secret")
	srv := start(t, minizk.Config{ExtendedTypes: true, SuperDigest: super})
	ours, theirs := newTwin(t, srv.Addr()), newTwin(t, container(t, false, super))
	done := 0
	for seed := *diffSeed; done < *diffSteps; seed++ {
		done += compare(t, seed, ours, theirs)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d operations in programs of %d steps", done, programLength)
}

// compare runs one program on both and gives the number of requests made.
func compare(t *testing.T, seed uint64, ours, theirs *twin) int {
	t.Helper()
	p := newProgram(seed)
	ours.open(p.sessions)
	theirs.open(p.sessions)
	calls := 0
	var trail []string
	for i := range programLength {
		s := p.step()
		ours.run(s)
		theirs.run(s)
		calls += max(len(s.calls), 1)
		a, b := ours.took(), theirs.took()
		trail = append(trail, b)
		if a != b {
			for _, line := range trail[max(0, len(trail)-12):] {
				t.Log(line)
			}
			require.Equal(t, b, a, "seed %d step %d (expected is the real server)", seed, i)
		}
	}
	ours.end()
	theirs.end()
	require.Equal(t, theirs.took(), ours.took(), "seed %d: the end", seed)
	return calls
}
