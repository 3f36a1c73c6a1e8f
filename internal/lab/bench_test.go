package lab

import (
	"syscall"
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
	c.Options.Concurrency, c.Options.Rate = 8, 350
	return c
}

// BenchmarkMission runs and judges the mission, a seed each time.
func BenchmarkMission(b *testing.B) {
	acks, lines, seed := 0, 0, uint64(0)
	before := processorTime(b)
	for b.Loop() {
		seed++
		outcome, err := Run(b.Context(), mission(seed), Quiet{})
		require.NoError(b, err)
		acks += acknowledged(outcome.input.History)
		lines += outcome.input.History.Len()
	}
	b.ReportMetric(float64(acks)/float64(b.N), "acknowledged/run")
	b.ReportMetric(float64(lines)/float64(b.N), "lines/run")
	b.ReportMetric((processorTime(b)-before).Seconds()/float64(b.N), "cpu-s/run")
	b.ReportMetric(float64(b.N)*60/b.Elapsed().Seconds(), "virtual-s/s")
}

// processorTime is what the process has used, its collector included: the
// machine may be busy with other things.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
