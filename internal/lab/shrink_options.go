package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// knob is an option as a number that is better small.
type knob struct {
	least int
	get   func(o harness.Options) int
	set   func(o *harness.Options, v int)
}

// knobs are in the order of what they save. Tablets come after replication,
// which bounds them.
func knobs(o harness.Options) []knob {
	return []knob{
		{1, func(o harness.Options) int { return o.Buckets }, func(o *harness.Options, v int) { o.Buckets = v }},
		{4, func(o harness.Options) int { return int(o.Rate) }, func(o *harness.Options, v int) { o.Rate = float64(v) }},
		{1, func(o harness.Options) int { return o.Keys }, func(o *harness.Options, v int) { o.Keys = v }},
		{1, func(o harness.Options) int { return o.Concurrency }, func(o *harness.Options, v int) { o.Concurrency = v }},
		{1, func(o harness.Options) int { return o.MinISR }, func(o *harness.Options, v int) { o.MinISR = v }},
		{o.MinISR, func(o harness.Options) int { return o.Replication }, func(o *harness.Options, v int) { o.Replication = v }},
		{o.Replication, func(o harness.Options) int { return o.Tablets }, func(o *harness.Options, v int) { o.Tablets = v }},
		{1, func(o harness.Options) int { return o.Coordinators }, func(o *harness.Options, v int) { o.Coordinators = v }},
		{
			1, func(o harness.Options) int { return int(o.TimeLimit / (500 * time.Millisecond)) },
			func(o *harness.Options, v int) { o.TimeLimit = time.Duration(v) * 500 * time.Millisecond },
		},
	}
}

// options makes every number as small as it goes: the least first, then half
// the way to it.
func (s *shrinker) options() {
	if s.best.config.Options.HeavyTail {
		c := s.best.candidate
		c.config.Options.HeavyTail = false
		s.accept(c)
	}
	for i := range knobs(s.best.config.Options) {
		for !s.over() {
			k := knobs(s.best.config.Options)[i]
			now := k.get(s.best.config.Options)
			var candidates []candidate
			for _, v := range []int{k.least, (k.least + now) / 2, now - 1} {
				if v < now && v >= k.least {
					candidates = append(candidates, s.with(k, v))
				}
			}
			if len(candidates) == 0 || !s.accept(candidates...) {
				break
			}
		}
	}
}

// with is the smallest test so far with another value. Targets keep to the
// buckets that there are.
func (s *shrinker) with(k knob, v int) candidate {
	c := s.best.candidate
	k.set(&c.config.Options, v)
	c.entries = slices.Clone(c.entries)
	for i := range c.entries {
		c.entries[i].Target.Bucket %= c.config.Options.Buckets
	}
	return c
}

func sizeOf(f failing) Size {
	o, h := f.config.Options, f.outcome.input.History
	return Size{
		Faults: len(f.entries), TimeLimit: o.TimeLimit, Operations: operations(h), Keys: keys(h), Clients: o.Concurrency,
		Nodes: o.Coordinators + o.Tablets, Buckets: o.Buckets, Bugs: len(f.config.Bugs), Lines: h.Len(),
	}
}

// String is the size in words.
func (s Size) String() string {
	return strings.Join([]string{
		fmt.Sprintf("%d faults", s.Faults), fmt.Sprintf("%d operations", s.Operations), fmt.Sprintf("%d keys", s.Keys),
		fmt.Sprintf("%d clients", s.Clients), fmt.Sprintf("%d nodes", s.Nodes), fmt.Sprintf("%d buckets", s.Buckets),
		fmt.Sprintf("%v of load", s.TimeLimit), fmt.Sprintf("%d lines", s.Lines),
	}, ", ")
}

// operations counts those of clients.
func operations(h history.History) int {
	n := 0
	for _, op := range h.Ops() {
		if op.Process >= 0 && op.Type == history.Invoke {
			n++
		}
	}
	return n
}

// keys counts those that operations name.
func keys(h history.History) int {
	seen := map[string]bool{}
	for _, op := range h.Ops() {
		if op.Process >= 0 && op.Type == history.Invoke {
			if kv, err := history.KeyValueOf(op); err == nil && kv.Key != "" {
				seen[kv.Key] = true
			}
		}
	}
	return len(seen)
}
