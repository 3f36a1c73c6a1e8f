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
	var nemesis, bugs string
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
	f.StringVar(&c.World, "world", c.World, "sim (virtual time), local (in-process cluster, real ZooKeeper), fluss (the released system)")
	f.StringVar(&c.ZooKeeper, "zookeeper", c.ZooKeeper, "auto, docker, embedded, or HOST:PORT[,HOST:PORT]")
	f.StringVar(&c.ZooKeeperImage, "zookeeper-image", c.ZooKeeperImage, "container image of ZooKeeper")
	f.StringVar(&c.Workload, "workload", c.Workload, "what the clients do; see jepsen list")
	f.StringVar(&nemesis, "nemesis", strings.Join(c.Nemesis, ","), "faults, separated by commas; all; none")
	f.StringVar(&bugs, "bug", "", "bugs to plant, separated by commas; see jepsen list")
	f.StringVar(&c.Preset, "preset", c.Preset, "a named set of bugs")
	o := &c.Options
	f.Uint64Var(&o.Seed, "seed", 0, "seed of every draw; 0 draws one")
	f.DurationVar(&o.TimeLimit, "time-limit", o.TimeLimit, "how long the load runs")
	f.Float64Var(&o.Rate, "rate", o.Rate, "operations per second of all clients together; 0 = as fast as they go")
	f.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "number of clients")
	f.IntVar(&o.Tablets, "tablets", o.Tablets, "number of tablet servers")
	f.IntVar(&o.Coordinators, "coordinators", o.Coordinators, "number of coordinators")
	f.IntVar(&o.Replication, "replication", o.Replication, "replicas of each bucket")
	f.IntVar(&o.MinISR, "min-isr", o.MinISR, "replicas that must have a write before it is acknowledged")
	f.IntVar(&o.Buckets, "buckets", o.Buckets, "buckets of the table")
	f.DurationVar(&o.Recovery, "recovery", o.Recovery, "time to restore a bucket inside its activation (the storm's window)")
	f.DurationVar(&o.LogRecovery, "log-recovery", o.LogRecovery, "time of a tablet's log recovery, before it registers")
	f.DurationVar(&o.SessionTimeout, "session-timeout", o.SessionTimeout, "ZooKeeper session time-out, at least 3s outside sim")
	f.IntVar(&o.StormLimit, "storm-limit", o.StormLimit, "refusals of one bucket within 10 s that make a storm")
	f.StringVar(&o.RollOn, "roll-on", o.RollOn, "a rolling restart goes on when the node is: ready, serving")
	f.StringVar(&c.Schedule, "schedule", "", "a schedule.json to follow instead of drawing one")
	f.StringVar(&c.Out, "out", c.Out, "folder of results")
	f.BoolVar(&c.Keep, "keep", false, "leave the ZooKeeper container running")
	f.BoolVar(&asJSON, "json", false, "print progress and verdict as JSON lines")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c.Nemesis, c.Bugs = split(nemesis), split(bugs)
		if o.Seed == 0 {
			o.Seed = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)).Uint64N(1 << 32)
		}
		ui := newProgress(stderr, stdout, asJSON)
		outcome, err := lab.Run(cmd.Context(), c, ui)
		ui.close()
		if err != nil {
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

// split takes a list apart and drops blanks.
func split(list string) []string {
	var out []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
