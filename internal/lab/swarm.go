package lab

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/nemesis"
)

// swarm gives a seed its own test: a subset of the faults, sizes and rates, all
// drawn from the seed's own stream. What a test never varies it never finds.
// Base gives what is not drawn: workload, bugs, time limit, session time-out.
func swarm(base Config, faults []string) Config {
	c, o := base, base.Options
	r := harness.Stream(o.Seed, "swarm")
	c.Nemesis = subset(r, faults)
	o.Coordinators = 1 + r.IntN(3)
	if slices.Contains(c.Nemesis, "old-leader") {
		o.Coordinators = max(o.Coordinators, 2)
	}
	o.Replication = pick(r, 1, 3, 3, 4, 5)
	o.MinISR = min(pick(r, 1, 2), o.Replication)
	o.Tablets = max(pick(r, 3, 4, 5, 6), o.Replication)
	o.Buckets = pick(r, 1, 3, 6, 12)
	o.Concurrency = pick(r, 4, 8, 16)
	o.Rate = pick(r, 50.0, 200, 400)
	o.Keys = pick(r, 1, 2, 4, 12) // few keys in use at a time are hot keys
	o.Recovery = pick(r, 200*time.Millisecond, time.Second, 2*time.Second, 5*time.Second)
	o.LogRecovery = pick(r, 0, time.Second, 3*time.Second)
	o.RollOn = pick(r, harness.RollOnReady, harness.RollOnServing)
	o.HeavyTail = r.IntN(3) == 0
	c.Options = o
	return c
}

// subset keeps each fault with an even chance, and one at least.
func subset(r *rand.Rand, faults []string) []string {
	var out []string
	for _, f := range faults {
		if r.IntN(2) == 0 {
			out = append(out, f)
		}
	}
	if len(out) == 0 && len(faults) > 0 {
		out = append(out, faults[r.IntN(len(faults))])
	}
	return out
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// faultNames are those that a Config's list means.
func faultNames(list []string) ([]string, error) {
	var out []string
	for _, item := range list {
		faults, err := nemesis.Parse(item)
		if err != nil {
			return nil, UsageError{err}
		}
		for _, f := range faults {
			out = append(out, f.Name)
		}
	}
	return out, nil
}
