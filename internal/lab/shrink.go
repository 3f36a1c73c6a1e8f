package lab

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// ShrinkOptions bound Shrink.
type ShrinkOptions struct {
	// For bounds the time of looking, 0 = two minutes. What is smallest by then is
	// the result.
	For time.Duration
	Out string // the folder of results
}

// Size is what Shrink makes smaller.
type Size struct {
	Faults     int           `json:"faults"`
	TimeLimit  time.Duration `json:"time_limit"`
	Operations int           `json:"operations"` // of clients
	Keys       int           `json:"keys"`       // that operations name
	Clients    int           `json:"clients"`
	Nodes      int           `json:"nodes"`
	Buckets    int           `json:"buckets"`
	Bugs       int           `json:"bugs"`
	Lines      int           `json:"lines"` // of the history
}

// Shrunk is a smaller run that fails for the same reason.
type Shrunk struct {
	checker.Fingerprint
	Before, After Size
	// Minimal is the size of the smallest history found that the checker still
	// rejects; it is a part of the history of After.
	Minimal Size
	Runs    int // that were tried
	Checks  int // histories that were judged
	Elapsed time.Duration
	TimeUp  bool // there may be something smaller
	Dir     string
	// MinimalDir holds the minimal history with its report.
	MinimalDir string
	Test       string // the case as a Go test
}

// candidate is a test that might fail.
type candidate struct {
	config  Config // without a schedule
	entries []harness.Entry
}

// failing is a candidate that does.
type failing struct {
	candidate
	outcome Outcome
}

// shrinker looks for ever smaller tests that fail in the same way. It holds the
// smallest so far.
type shrinker struct {
	ctx    context.Context //nolint:containedctx // a shrinker lives as long as one call of Shrink
	until  time.Time
	target checker.Fingerprint
	best   failing
	runs   int
	checks int
	report func(string)
}

// Shrink makes a failing run of the simulated world smaller: its faults, time,
// load, keys, nodes and planted bugs, by running it again and again; and then
// its history, by judging parts of it. The gravest fingerprint must stay.
// Report is told of each step.
func Shrink(ctx context.Context, dir string, o ShrinkOptions, report func(string)) (Shrunk, error) {
	c, entries, err := storedSim(dir)
	if err != nil {
		return Shrunk{}, err
	}
	if o.For <= 0 {
		o.For = 2 * time.Minute
	}
	began := time.Now()
	c.Schedule = ""
	s := &shrinker{ctx: ctx, until: began.Add(o.For), report: report}
	if err := s.first(dir, candidate{c, entries}); err != nil {
		return Shrunk{}, err
	}
	before := sizeOf(s.best)
	s.runsDown()
	out := Shrunk{Fingerprint: s.target, Before: before, After: sizeOf(s.best)}
	minimal := s.history(s.best)
	out.Minimal = out.After
	out.Minimal.Lines, out.Minimal.Operations, out.Minimal.Keys = minimal.Len(), operations(minimal), keys(minimal)
	out.Runs, out.Checks, out.Elapsed, out.TimeUp = s.runs, s.checks, time.Since(began), s.over()
	return out, s.keep(o, minimal, &out)
}

// first runs the stored test again: what does not fail cannot be shrunk.
func (s *shrinker) first(dir string, c candidate) error {
	outcome, err := s.try(c)
	if err != nil {
		return fmt.Errorf("run %s again: %w", dir, err)
	}
	prints := checker.Fingerprints(outcome.Result)
	if len(prints) == 0 {
		return usagef("shrink %s: it does not fail", dir)
	}
	s.target, s.best = prints[0], failing{c, outcome}
	s.report(fmt.Sprintf("%s fails: %s", dir, s.target))
	return nil
}

func (s *shrinker) over() bool { return s.ctx.Err() != nil || time.Now().After(s.until) }

// try runs a candidate in memory.
func (s *shrinker) try(c candidate) (Outcome, error) {
	config := c.config
	config.Out, config.quick, config.entries = "", true, c.entries
	if config.entries == nil {
		config.entries = []harness.Entry{}
	}
	return Run(s.ctx, config, Quiet{})
}

// accept runs candidates, as many at a time as there are cores, and takes the
// first in order that fails in the same way: the answer does not depend on which
// run is faster. A candidate that does not fail gets a second chance under the
// next seed, because a removed fault changes every interleaving after it.
func (s *shrinker) accept(candidates ...candidate) bool {
	all := slices.Clone(candidates)
	for _, c := range candidates {
		c.config.Options.Seed++
		all = append(all, c)
	}
	width := runtime.GOMAXPROCS(0)
	for from := 0; from < len(all) && !s.over(); from += width {
		batch := all[from:min(from+width, len(all))]
		outcomes := make([]Outcome, len(batch))
		fails := make([]bool, len(batch))
		var runs sync.WaitGroup
		for i, c := range batch {
			runs.Go(func() {
				outcome, err := s.try(c)
				outcomes[i] = outcome
				fails[i] = err == nil && slices.Contains(checker.Fingerprints(outcome.Result), s.target)
			})
		}
		runs.Wait()
		s.runs += len(batch)
		if i := slices.Index(fails, true); i >= 0 {
			s.best = failing{batch[i], outcomes[i]}
			return true
		}
	}
	return false
}

// runsDown makes the run smaller until nothing more goes, or time is up. The
// time comes first, because it makes every later run cheaper.
func (s *shrinker) runsDown() {
	for round := 1; !s.over(); round++ {
		before := sizeOf(s.best)
		s.cutTime()
		s.faults()
		s.hasten()
		s.options()
		s.bugs()
		after := sizeOf(s.best)
		s.report(fmt.Sprintf("round %d: %s", round, after))
		if after == before {
			return
		}
	}
}

// cutTime ends the load soon after the finding, and then ever earlier.
func (s *shrinker) cutTime() {
	start := loadStart(s.best.outcome.input.History)
	at := s.at() - start
	for _, limit := range []time.Duration{at, at + 200*time.Millisecond, at + 2*time.Second, at + 10*time.Second} {
		limit = limit.Truncate(100*time.Millisecond) + 100*time.Millisecond
		if limit <= 0 || limit >= s.best.config.Options.TimeLimit {
			continue
		}
		c := s.best.candidate
		c.config.Options.TimeLimit = limit
		if s.accept(c) {
			break
		}
	}
	limit := s.best.config.Options.TimeLimit
	begun := slices.DeleteFunc(slices.Clone(s.best.entries), func(e harness.Entry) bool { return e.Trigger.At >= limit })
	if len(begun) < len(s.best.entries) {
		c := s.best.candidate
		c.entries = closed(begun)
		s.accept(c)
	}
}

// soonest is when the first fault of a shrunk run begins.
const soonest = time.Second

// hasten moves all faults, and the end of the load, to an earlier time.
func (s *shrinker) hasten() {
	if len(s.best.entries) == 0 {
		return
	}
	first := s.best.entries[0].Trigger.At
	for _, e := range s.best.entries {
		first = min(first, e.Trigger.At)
	}
	by := first - soonest
	if by <= 0 || by >= s.best.config.Options.TimeLimit {
		return
	}
	c := s.best.candidate
	c.config.Options.TimeLimit -= by
	c.entries = slices.Clone(c.entries)
	for i := range c.entries {
		c.entries[i].Trigger.At -= by
	}
	s.accept(c)
}

// at is the moment of the finding.
func (s *shrinker) at() time.Duration {
	for _, v := range s.best.outcome.Verdicts {
		if v.Checker == s.target.Checker && v.Validity == checker.Invalid {
			return v.At
		}
	}
	return 0
}

func loadStart(h history.History) time.Duration {
	for _, op := range h.Ops() {
		if op.F == history.KindPhase && string(op.Value) == `{"name":"load"}` {
			return op.Time
		}
	}
	return 0
}

// faults removes entries by delta debugging: ever smaller parts of the list, as
// long as what is left still fails.
func (s *shrinker) faults() {
	if len(s.best.entries) > 0 {
		c := s.best.candidate
		c.entries = nil
		if s.accept(c) {
			return
		}
	}
	for parts := 2; len(s.best.entries) > 1 && !s.over(); {
		entries := s.best.entries
		parts = min(parts, len(entries))
		var candidates []candidate
		for i := range parts {
			c := s.best.candidate
			c.entries = closed(slices.Concat(entries[:i*len(entries)/parts], entries[(i+1)*len(entries)/parts:]))
			candidates = append(candidates, c)
		}
		switch {
		case s.accept(candidates...):
			parts = max(parts-1, 2)
		case parts == len(entries):
			return
		default:
			parts *= 2
		}
	}
}

// closed drops the entries that wait for one that is gone.
func closed(entries []harness.Entry) []harness.Entry {
	for {
		kept := slices.DeleteFunc(slices.Clone(entries), func(e harness.Entry) bool {
			after := e.Trigger.AfterFault
			return after != nil && !slices.ContainsFunc(entries, func(x harness.Entry) bool { return x.ID == *after })
		})
		if len(kept) == len(entries) {
			return kept
		}
		entries = kept
	}
}

// bugs drops planted bugs that the failure does not need.
func (s *shrinker) bugs() {
	for i := 0; i < len(s.best.config.Bugs) && len(s.best.config.Bugs) > 1; {
		c := s.best.candidate
		c.config.Bugs = slices.Delete(slices.Clone(c.config.Bugs), i, i+1)
		if !s.accept(c) {
			i++
		}
	}
}
