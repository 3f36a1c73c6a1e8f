//go:build integration

package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/internal/lab"
)

// real is the test of a laptop's half minute: a real ZooKeeper in a container,
// real time.
func real(seed uint64) lab.Config {
	c := lab.DefaultConfig()
	c.World, c.ZooKeeper, c.Options.Seed = lab.WorldLocal, "docker", seed
	return c
}

func TestSoundSurvivesEveryFaultOverARealZooKeeper(t *testing.T) {
	outcome := perform(t, real(*seedFlag))
	require.Zero(t, outcome.Exit, explain(outcome))
	var data checker.CoverageData
	require.NoError(t, json.Unmarshal(verdict(t, outcome, "coverage").Data, &data))
	require.Greater(t, data.Acknowledged, 20_000)
	require.Len(t, data.Faults, 4)
	for _, f := range data.Faults {
		require.GreaterOrEqual(t, f.Overlap, 1000, "operations that overlap %s", f.Name)
	}
}

func TestTheStormOverARealZooKeeper(t *testing.T) {
	c := real(*seedFlag)
	c.Nemesis = []string{"restart", "slow-recovery"}
	c.Options.Recovery = 10 * time.Second
	c.Bugs = []string{"advertise-before-admit", "client-no-backoff"}
	outcome := perform(t, c)
	require.Equal(t, checker.ExitInvalid, outcome.Exit, explain(outcome))
	require.Equal(t, checker.Invalid, verdict(t, outcome, "storms").Validity)

	c.Bugs = []string{"client-no-backoff"}
	control := perform(t, c)
	require.Zero(t, control.Exit, explain(control))
}
