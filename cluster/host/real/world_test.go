package real

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/cluster/host/hosttest"
)

func TestRealWorldConforms(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, cfg := range map[string]Config{"default latency": {}, "no latency": {NoLatency: true}} {
		t.Run(name, func(t *testing.T) {
			hosttest.Run(t, func(_ *testing.T, o hosttest.Options) hosttest.World {
				cfg.Seed, cfg.Observe = o.Seed, o.Observe
				return NewWorld(cfg)
			})
		})
	}
}
