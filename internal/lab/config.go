// Package lab puts a test together from a Config: the world, ZooKeeper, the
// cluster with its planted bugs, the workload, the faults, the checkers and the
// run's folder. The command line and the end-to-end tests are its users; a
// system of one's own uses package harness instead.
package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/inproc"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/nemesis"
	"github.com/fencepost-dev/fencepost/workloads"
)

// The worlds that a test can run in.
const (
	WorldSim   = "sim"
	WorldLocal = "local"
)

// Config is what a user asks for. Validation happens in resolve, before
// anything is started or written.
type Config struct {
	World          string
	ZooKeeper      string // auto, docker, embedded, or addresses; not for sim
	ZooKeeperImage string
	Workload       string
	Nemesis        []string // names of faults; "all", "none"
	Bugs           []string
	Preset         string
	Options        harness.Options
	Schedule       string // a file to follow instead of drawing one
	Out            string // the folder of results; empty: nothing is written
	Keep           bool   // leave the ZooKeeper container running
	// Aimed adds faults that follow protocol events to the drawn schedule.
	Aimed bool
	// quick leaves out what only a stored run needs: the event trace.
	quick bool
	// entries is a schedule at hand, instead of a file.
	entries []harness.Entry
}

// DefaultConfig is what jepsen test runs without flags.
func DefaultConfig() Config {
	return Config{
		World: WorldLocal, ZooKeeper: "auto", ZooKeeperImage: zookeeper.DefaultImage, Workload: "register",
		Nemesis: []string{"all"}, Options: harness.DefaultOptions(), Out: "results",
	}
}

// UsageError is a mistake that another command line mends; exit 254.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// resolved is a Config with every name looked up.
type resolved struct {
	Config
	provider zookeeper.Provider
	workload harness.Workload
	faults   []harness.Fault
	policy   protocol.Policy
	bugs     []string // those of the preset included
	schedule []harness.Entry
}

// minSession is the least session time-out in real time: the client library
// waits a second before it reconnects, and a ping may be a third of the time-out
// old (protocol, section 4).
const minSession = 3 * time.Second

func (c Config) resolve() (resolved, error) {
	r := resolved{Config: c}
	var err error
	switch c.World {
	case WorldSim:
	case WorldLocal:
		if r.provider, err = zookeeper.Parse(c.ZooKeeper, c.ZooKeeperImage); err != nil {
			return r, UsageError{err}
		}
		if c.Options.SessionTimeout < minSession {
			return r, usagef("session time-out %v: at least %v outside sim", c.Options.SessionTimeout, minSession)
		}
	default:
		return r, usagef("unknown world %q: want %s or %s", c.World, WorldSim, WorldLocal)
	}
	if err := c.Options.Validate(); err != nil {
		return r, UsageError{err}
	}
	if r.workload, err = workloads.Named(c.Workload); err != nil {
		return r, UsageError{err}
	}
	if r.faults, err = nemesis.Parse(strings.Join(c.Nemesis, ",")); err != nil {
		return r, UsageError{err}
	}
	if err := r.plant(); err != nil {
		return r, UsageError{err}
	}
	switch {
	case c.entries != nil:
		r.schedule = c.entries
		r.faults = used(nemesis.All(), r.schedule)
		return r, nil
	case c.Schedule == "":
		r.schedule = harness.DrawSchedule(c.Options, r.faults)
		if c.Aimed {
			r.schedule = harness.Aim(c.Options, r.schedule)
		}
		return r, nil
	}
	if r.schedule, err = harness.LoadSchedule(c.Schedule, nemesis.All()); err != nil {
		return r, UsageError{err}
	}
	r.faults = used(nemesis.All(), r.schedule)
	return r, nil
}

// plant joins the preset's bugs and the single ones into a policy.
func (r *resolved) plant() error {
	if r.Preset != "" {
		p, err := inproc.FindPreset(r.Preset)
		if err != nil {
			return err
		}
		r.bugs = append(r.bugs, p.Bugs...)
	}
	for _, b := range r.Bugs {
		if !slices.Contains(r.bugs, b) {
			r.bugs = append(r.bugs, b)
		}
	}
	policy, err := inproc.Plan(r.bugs)
	r.policy = policy
	return err
}

// used are the faults that a schedule names.
func used(all []harness.Fault, schedule []harness.Entry) []harness.Fault {
	var out []harness.Fault
	for _, f := range all {
		if slices.ContainsFunc(schedule, func(e harness.Entry) bool { return e.Fault == f.Name }) {
			out = append(out, f)
		}
	}
	return out
}

// Command is the command line that repeats a run: everything that differs from
// the defaults, and the seed.
func (c Config) Command() string {
	d := DefaultConfig()
	args := []string{"go run ./cmd/jepsen test"}
	add := func(differs bool, name string, value any) {
		if differs {
			if value == true {
				args = append(args, "--"+name)
				return
			}
			args = append(args, fmt.Sprintf("--%s %v", name, value))
		}
	}
	o, p := c.Options, d.Options
	add(c.World != d.World, "world", c.World)
	add(c.ZooKeeper != d.ZooKeeper && c.World != WorldSim, "zookeeper", c.ZooKeeper)
	add(c.ZooKeeperImage != d.ZooKeeperImage, "zookeeper-image", c.ZooKeeperImage)
	add(c.Workload != d.Workload, "workload", c.Workload)
	add(!slices.Equal(c.Nemesis, d.Nemesis), "nemesis", orNone(c.Nemesis))
	add(len(c.Bugs) > 0, "bug", strings.Join(c.Bugs, ","))
	add(c.Preset != "", "preset", c.Preset)
	add(true, "seed", o.Seed)
	add(o.TimeLimit != p.TimeLimit, "time-limit", o.TimeLimit)
	add(o.Rate != p.Rate, "rate", o.Rate)
	add(o.Concurrency != p.Concurrency, "concurrency", o.Concurrency)
	add(o.Tablets != p.Tablets, "tablets", o.Tablets)
	add(o.Coordinators != p.Coordinators, "coordinators", o.Coordinators)
	add(o.Replication != p.Replication, "replication", o.Replication)
	add(o.MinISR != p.MinISR, "min-isr", o.MinISR)
	add(o.Buckets != p.Buckets, "buckets", o.Buckets)
	add(o.Recovery != p.Recovery, "recovery", o.Recovery)
	add(o.LogRecovery != p.LogRecovery, "log-recovery", o.LogRecovery)
	add(o.SessionTimeout != p.SessionTimeout, "session-timeout", o.SessionTimeout)
	add(o.StormLimit != p.StormLimit, "storm-limit", o.StormLimit)
	add(o.RollOn != p.RollOn, "roll-on", o.RollOn)
	add(o.Keys != p.Keys, "keys", o.Keys)
	add(o.HeavyTail, "heavy-tail", true)
	add(c.Aimed && c.Schedule == "", "aimed", true)
	add(c.Schedule != "", "schedule", c.Schedule)
	return strings.Join(args, " ")
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// errInterrupted ends a run that was told to stop before it could begin.
var errInterrupted = errors.New("interrupted before the load began; nothing was judged")
