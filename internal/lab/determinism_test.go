package lab

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/harness"
)

// smoke are tests of every kind that explore draws, small ones.
func smoke(seed uint64) Config {
	c := DefaultConfig()
	c.World, c.Out = WorldSim, ""
	c.Options.Seed, c.Options.TimeLimit = seed, 8*time.Second
	c = swarm(c, []string{"restart", "slow-recovery", "zk-session-loss", "old-leader"})
	c.Options.Rate, c.Aimed = 60, seed%2 == 0
	return c
}

// sums are the hashes of a run's history and of its event trace.
func sums(t *testing.T, c Config) string {
	t.Helper()
	outcome, err := Run(t.Context(), c, Quiet{})
	require.NoError(t, err)
	lines, err := encodeHistory(outcome.input.History)
	require.NoError(t, err)
	h := fnv.New64a()
	h.Write(lines) // a hash takes every byte
	require.NotZero(t, outcome.trace)
	return fmt.Sprintf("history %016x, %d lines, trace %016x", h.Sum64(), outcome.input.History.Len(), outcome.trace)
}

func TestEverySmokeSeedRunsTheSameTwice(t *testing.T) {
	different := map[string]bool{}
	for seed := uint64(1); seed <= smokeSeeds; seed++ {
		first := sums(t, smoke(seed))
		require.Equal(t, first, sums(t, smoke(seed)), "seed %d", seed)
		different[first] = true
	}
	require.Len(t, different, smokeSeeds, "every seed is a run of its own")
}

const (
	smokeSeeds    = 6
	hashVariable  = "FENCEPOST_LAB_HASHES" // the file to write, in another process
	seedsVariable = "FENCEPOST_LAB_SEEDS"  // how many seeds go into it
)

// TestAnotherProcessRunsTheSame runs the seeds in other processes, with other
// settings of Go's scheduler and collector.
func TestAnotherProcessRunsTheSame(t *testing.T) {
	seeds := uint64(smokeSeeds / 2)
	if text := os.Getenv(seedsVariable); text != "" {
		var err error
		seeds, err = strconv.ParseUint(text, 10, 32)
		require.NoError(t, err)
	}
	all := func() string {
		var b strings.Builder
		for seed := uint64(1); seed <= seeds; seed++ {
			fmt.Fprintln(&b, seed, sums(t, smoke(seed)))
		}
		return b.String()
	}
	if path := os.Getenv(hashVariable); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(all()), 0o600))
		return
	}
	want := all()
	for _, setting := range []string{"GOMAXPROCS=1", "GOGC=20", "GOGC=off"} {
		t.Run(setting, func(t *testing.T) {
			path := t.TempDir() + "/hashes"
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAnotherProcessRunsTheSame$")
			cmd.Env = append(os.Environ(), setting, hashVariable+"="+path)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		})
	}
}

// Neither the trace nor the folder may change what happens.
func TestWatchingChangesNothing(t *testing.T) {
	c := smoke(1)
	read := func(c Config) []byte {
		outcome, err := Run(t.Context(), c, Quiet{})
		require.NoError(t, err)
		lines, err := encodeHistory(outcome.input.History)
		require.NoError(t, err)
		if outcome.Dir != "" {
			stored, err := os.ReadFile(outcome.Dir + "/" + harness.HistoryFile)
			require.NoError(t, err)
			require.Equal(t, string(stored), string(lines), "the file holds what the memory holds")
		}
		return lines
	}
	want := read(c)
	c.quick = true
	require.Equal(t, string(want), string(read(c)))
	c.quick, c.Out = false, t.TempDir()
	require.Equal(t, string(want), string(read(c)))
}
