package sim

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/cluster/host/hosttest"
)

func TestSimulatedWorldConforms(t *testing.T) {
	defer goleak.VerifyNone(t)
	make := func(_ *testing.T, o hosttest.Options) hosttest.World {
		return NewWorld(Config{Seed: o.Seed, Observe: o.Observe, NoZooKeeper: true})
	}
	hosttest.Run(t, make)
	hosttest.RunEnds(t, make)
	hosttest.RunLeavesNothing(t, make)
}
