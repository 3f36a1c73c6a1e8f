package lab_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/internal/lab"
)

// mission is the run that speed is measured by: a virtual minute of eight
// clients, three coordinators and five tablets under every fault.
func mission(seed uint64) lab.Config {
	c := lab.DefaultConfig()
	c.World, c.Out = lab.WorldSim, ""
	c.Options.Seed, c.Options.TimeLimit = seed, time.Minute
	c.Options.Concurrency, c.Options.Rate = 8, 400
	return c
}

// BenchmarkMission runs and judges the mission, a seed each time.
func BenchmarkMission(b *testing.B) {
	acknowledged, seed := 0, uint64(0)
	for b.Loop() {
		seed++
		outcome, err := lab.Run(b.Context(), mission(seed), lab.Quiet{})
		require.NoError(b, err)
		for op := range outcome.Operations() {
			if op.Process >= 0 && op.Type == history.Ok {
				acknowledged++
			}
		}
	}
	b.ReportMetric(float64(acknowledged)/float64(b.N), "acknowledged/run")
	b.ReportMetric(float64(b.N)*60/b.Elapsed().Seconds(), "virtual-s/s")
}
