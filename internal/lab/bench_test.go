package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mission is the run that speed is measured by: a virtual minute of eight
// clients, three coordinators and five tablets under every fault.
func mission(seed uint64) Config {
	c := DefaultConfig()
	c.World, c.Out, c.quick = WorldSim, "", true
	c.Options.Seed, c.Options.TimeLimit = seed, time.Minute
	c.Options.Concurrency, c.Options.Rate = 8, 420
	return c
}

// BenchmarkMission runs and judges the mission, a seed each time.
func BenchmarkMission(b *testing.B) {
	acks, lines, seed := 0, 0, uint64(0)
	for b.Loop() {
		seed++
		outcome, err := Run(b.Context(), mission(seed), Quiet{})
		require.NoError(b, err)
		acks += acknowledged(outcome.input.History)
		lines += outcome.input.History.Len()
	}
	b.ReportMetric(float64(acks)/float64(b.N), "acknowledged/run")
	b.ReportMetric(float64(lines)/float64(b.N), "lines/run")
	b.ReportMetric(float64(b.N)*60/b.Elapsed().Seconds(), "virtual-s/s")
}
