package main

import (
	"github.com/spf13/cobra"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

// lists are the flags of a test that hold several names.
type lists struct{ nemesis, bugs []string }

func (l lists) apply(c *lab.Config) { c.Nemesis, c.Bugs = clean(l.nemesis), clean(l.bugs) }

// testFlags declares what jepsen test and jepsen explore share: everything that
// describes a test, but for its world.
func testFlags(cmd *cobra.Command, c *lab.Config, l *lists) {
	f := cmd.Flags()
	f.StringVar(&c.Workload, "workload", c.Workload, "what the clients do; see jepsen list")
	f.StringSliceVar(&l.nemesis, "nemesis", c.Nemesis, "faults, separated by commas or given again; all; none")
	f.StringSliceVar(&l.bugs, "bug", nil, "bugs to plant, separated by commas or given again; see jepsen list")
	f.StringVar(&c.Preset, "preset", c.Preset, "a named set of bugs")
	o := &c.Options
	f.DurationVar(&o.TimeLimit, "time-limit", o.TimeLimit, "how long the load runs")
	f.Float64Var(&o.Rate, "rate", o.Rate, "operations per second of all clients together; 0 = as fast as they go")
	f.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "number of clients")
	f.IntVar(&o.Tablets, "tablets", o.Tablets, "number of tablet servers")
	f.IntVar(&o.Coordinators, "coordinators", o.Coordinators, "number of coordinators")
	f.IntVar(&o.Replication, "replication", o.Replication, "replicas of each bucket")
	f.IntVar(&o.MinISR, "min-isr", o.MinISR, "replicas that must have a write before it is acknowledged")
	f.IntVar(&o.Buckets, "buckets", o.Buckets, "buckets of the table")
	f.IntVar(&o.Keys, "keys", o.Keys, "keys in use at a time; few are hot keys")
	f.DurationVar(&o.Recovery, "recovery", o.Recovery, "time to restore a bucket inside its activation (the storm's window)")
	f.DurationVar(&o.LogRecovery, "log-recovery", o.LogRecovery, "time of a tablet's log recovery, before it registers")
	f.DurationVar(&o.SessionTimeout, "session-timeout", o.SessionTimeout, "ZooKeeper session time-out, at least 3s outside sim")
	f.IntVar(&o.StormLimit, "storm-limit", o.StormLimit, "refusals of one bucket within 10 s that make a storm")
	f.StringVar(&o.RollOn, "roll-on", o.RollOn, "a rolling restart goes on when the node is: ready, serving")
	f.BoolVar(&o.HeavyTail, "heavy-tail", o.HeavyTail, "some messages between nodes are slow, up to a second; in sim")
	f.BoolVar(&c.Aimed, "aimed", c.Aimed, "faults also follow protocol events and hit the nodes concerned")
	f.StringVar(&c.Out, "out", c.Out, "folder of results")
}
