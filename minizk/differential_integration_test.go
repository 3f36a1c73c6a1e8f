//go:build integration

package minizk_test

import (
	"flag"
	"testing"
	"time"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

var (
	diffSteps = flag.Int("minizk.steps", 20_000, "operations of the differential test, over all its programs; a night does 100000 and more")
	diffSeed  = flag.Uint64("minizk.seed", 1, "first seed of the differential test")
)

// TestTheSameAsTheRealServer runs random programs against minizk and against
// ZooKeeper 3.9.5, and wants the same replies, errors, stats, zxids, events and
// children after every step. A failure prints the steps that led to it; its
// seed repeats it.
func TestTheSameAsTheRealServer(t *testing.T) {
	super := tree.Digest("super:secret")
	srv := start(t, minizk.Config{ExtendedTypes: true, SuperDigest: super, SweepEvery: 24 * time.Hour})
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
