package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

func newTest(stdout, stderr io.Writer) *cobra.Command {
	c := lab.DefaultConfig()
	var names lists
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run one test",
		Args:  cobra.NoArgs,
		Example: `  jepsen test
  jepsen test --nemesis restart,zk-session-loss --seed 7
  jepsen test --bug advertise-before-admit,client-no-backoff --nemesis restart,slow-recovery --recovery 10s`,
	}
	f := cmd.Flags()
	f.StringVar(&c.World, "world", c.World, "sim (virtual time), local (real time, real ZooKeeper)")
	f.StringVar(&c.ZooKeeper, "zookeeper", c.ZooKeeper, "auto, docker, embedded, or HOST:PORT[,HOST:PORT]")
	f.StringVar(&c.ZooKeeperImage, "zookeeper-image", c.ZooKeeperImage, "container image of ZooKeeper")
	testFlags(cmd, &c, &names)
	o := &c.Options
	f.Uint64Var(&o.Seed, "seed", 0, "seed of every draw; 0 draws one")
	f.StringVar(&c.Schedule, "schedule", "", "a schedule.json to follow instead of drawing one")
	f.BoolVar(&c.Keep, "keep", false, "leave the ZooKeeper container running")
	f.BoolVar(&asJSON, "json", false, "print progress and verdict as JSON lines")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		names.apply(&c)
		if o.Seed == 0 {
			o.Seed = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)).Uint64N(1 << 32)
		}
		ui := newProgress(stderr, stdout, asJSON)
		outcome, err := lab.Run(cmd.Context(), c, ui)
		ui.close()
		if err != nil {
			if len(outcome.Verdicts) > 0 { // judged, but not all of it could be written
				_ = finish(stdout, outcome, asJSON)
			}
			return classify(err)
		}
		return finish(stdout, outcome, asJSON)
	}
	return cmd
}

// finish prints a judged run and gives its exit code.
func finish(stdout io.Writer, outcome lab.Outcome, asJSON bool) error {
	var err error
	if asJSON {
		err = outcome.WriteJSON(stdout)
	} else {
		err = outcome.WriteText(stdout)
	}
	if err != nil {
		return exitError{exitHarness, fmt.Errorf("print result: %w", err)}
	}
	return verdict(outcome.Exit)
}

// clean drops blanks around names, and empty ones.
func clean(names []string) []string {
	var out []string
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}
