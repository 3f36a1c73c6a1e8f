package sim

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/cluster/host/hosttest"
)

func TestSimulatedSessionsConform(t *testing.T) {
	defer goleak.VerifyNone(t)
	hosttest.RunSessions(t, func(_ *testing.T, o hosttest.Options) hosttest.World {
		return NewWorld(Config{Seed: o.Seed, Observe: o.Observe})
	})
}
