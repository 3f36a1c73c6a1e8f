package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/internal/lab"
)

// Flags can only be package variables.
var (
	seedFlag  = flag.Uint64("jepsen.seed", 1, "the first seed")
	seedsFlag = flag.Int("jepsen.seeds", 3, "how many seeds, from the first on")
	forFlag   = flag.Duration("jepsen.for", 0, "go on with further seeds for this long")
	worldFlag = flag.String("jepsen.world", lab.WorldSim, "the world: sim or local")
)

// results is where failing runs are kept: the module root's folder.
const results = "../../results"

// config is a test of moderate size with every fault.
func config(seed uint64) lab.Config {
	c := lab.DefaultConfig()
	c.World = *worldFlag
	c.Options.Seed, c.Options.Rate = seed, 400
	if underRace {
		c.Options.Rate = 150
	}
	return c
}

// perform runs a test and judges it. The folder goes to results if the caller's
// test fails.
func perform(t *testing.T, c lab.Config) lab.Outcome {
	t.Helper()
	c.Out = t.TempDir()
	outcome, err := lab.Run(t.Context(), c, lab.Quiet{})
	t.Cleanup(func() {
		if !t.Failed() || outcome.Dir == "" {
			return
		}
		kept := filepath.Join(results, "e2e", filepath.Base(outcome.Dir))
		if err := os.CopyFS(kept, os.DirFS(outcome.Dir)); err != nil {
			t.Log("keep the run:", err)
			return
		}
		t.Log("kept in", kept)
	})
	require.NoError(t, err)
	return outcome
}

// explain is the outcome as a person reads it.
func explain(o lab.Outcome) string {
	var text bytes.Buffer
	if err := o.WriteText(&text); err != nil {
		return err.Error()
	}
	return text.String()
}

func TestSoundSurvivesEveryFault(t *testing.T) {
	begun := time.Now()
	seeds := *seedsFlag
	if underRace {
		seeds = 1
	}
	for i := 0; i < seeds || time.Since(begun) < *forFlag; i++ {
		seed := *seedFlag + uint64(i)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			outcome := perform(t, config(seed))
			require.Zero(t, outcome.Exit, explain(outcome))
		})
	}
}

func TestEqualSeedsGiveEqualHistories(t *testing.T) {
	if underRace {
		t.Skip("two runs are equal or not whatever watches them; without -race they take a second")
	}
	c := config(*seedFlag)
	c.World = lab.WorldSim
	read := func() []byte {
		raw, err := os.ReadFile(filepath.Join(perform(t, c).Dir, harness.HistoryFile))
		require.NoError(t, err)
		return raw
	}
	require.True(t, bytes.Equal(read(), read()), "two runs of seed %d differ", *seedFlag)
}

func TestEachFaultAloneHasItsEffect(t *testing.T) {
	for _, fault := range []string{"restart", "slow-recovery", "zk-session-loss", "old-leader"} {
		t.Run(fault, func(t *testing.T) {
			c := config(*seedFlag)
			c.Nemesis = []string{fault}
			outcome := perform(t, c)
			require.Zero(t, outcome.Exit, explain(outcome))
		})
	}
}

func TestAnInterruptedRunIsJudged(t *testing.T) {
	if underRace {
		t.Skip("the run fills two seconds of wall time with as much history as it can, which is then slow to judge")
	}
	c := config(*seedFlag)
	c.World, c.Options.TimeLimit = lab.WorldSim, 24*time.Hour
	c.Nemesis, c.Out = []string{"none"}, t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	outcome, err := lab.Run(ctx, c, lab.Quiet{})
	require.NoError(t, err)
	require.NotEqual(t, checker.Invalid, checker.Merge(outcome.Verdicts...), explain(outcome))
}
