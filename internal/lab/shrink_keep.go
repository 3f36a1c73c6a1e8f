package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// minimalDir is the folder, in that of a shrunk run, of its minimal history.
const minimalDir = "minimal"

// testFile holds a shrunk run as a Go test. The name keeps it out of builds.
const testFile = "case_test.go.txt"

// keep runs the smallest test once more, into a folder, with the minimal history
// and the Go test beside it.
func (s *shrinker) keep(o ShrinkOptions, minimal history.History, out *Shrunk) error {
	out.Test = s.goTest()
	if o.Out == "" {
		return nil
	}
	config := s.best.config
	config.Out, config.entries = o.Out, s.best.entries
	if config.entries == nil {
		config.entries = []harness.Entry{}
	}
	outcome, err := Run(context.WithoutCancel(s.ctx), config, Quiet{}) // the result is kept even if time is up
	out.Dir = outcome.Dir
	if err != nil {
		return fmt.Errorf("keep shrunk run: %w", err)
	}
	out.MinimalDir = filepath.Join(outcome.Dir, minimalDir)
	return errors.Join(
		os.WriteFile(filepath.Join(outcome.Dir, testFile), []byte(out.Test), 0o644),
		s.keepMinimal(out.MinimalDir, outcome, minimal),
	)
}

// keepMinimal writes the minimal history as a run's folder of its own, which
// jepsen check and report take.
func (s *shrinker) keepMinimal(dir string, of Outcome, minimal history.History) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	lines, err := encodeHistory(minimal)
	if err != nil {
		return err
	}
	plan := of.plan
	plan.Name += ", minimal history"
	_, err = judge(run{dir: dir, plan: plan, history: minimal, notes: []string{
		"this history is a part of that of the run in the folder above: what the checker still rejects for the same reason; " +
			"the other verdicts speak of the part only",
	}})
	return errors.Join(
		err, harness.WritePlan(dir, plan), harness.WriteSchedule(dir, s.best.entries),
		writeFile(filepath.Join(dir, harness.HistoryFile), func(f *os.File) error {
			_, err := f.Write(lines)
			return err
		}),
	)
}

// goTest is the smallest test as source, for a package of this module's tests.
func (s *shrinker) goTest() string {
	c, d := s.best.config, DefaultConfig()
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("// TestShrunk%s holds one finding: %s", strings.ToUpper(s.target.ID()), s.target)
	say("func TestShrunk%s(t *testing.T) {", strings.ToUpper(s.target.ID()))
	say("\tc := lab.DefaultConfig()")
	say("\tc.World, c.Out = lab.WorldSim, t.TempDir()")
	if c.Workload != d.Workload {
		say("\tc.Workload = %q", c.Workload)
	}
	if len(c.Bugs) > 0 {
		say("\tc.Bugs = %#v", c.Bugs)
	}
	options, _ := json.Marshal(c.Options) // plain fields
	say("\trequire.NoError(t, json.Unmarshal([]byte(`%s`), &c.Options))", options)
	entries := []string{}
	for _, e := range s.best.entries {
		entry, _ := json.Marshal(e) // it came from JSON, or could go there
		entries = append(entries, "\t\t"+string(entry))
	}
	say("\tc.Schedule = filepath.Join(t.TempDir(), \"schedule.json\")")
	say("\trequire.NoError(t, os.WriteFile(c.Schedule, []byte(`{\"schema\":%d,\"entries\":[\n%s\n\t]}`), 0o644))",
		harness.PlanSchema, strings.Join(entries, ",\n"))
	say("\toutcome, err := lab.Run(t.Context(), c, lab.Quiet{})")
	say("\trequire.NoError(t, err)")
	say("\trequire.Contains(t, checker.Fingerprints(outcome.Result),")
	say("\t\tchecker.Fingerprint{Checker: %q, Shape: %q})", s.target.Checker, s.target.Shape)
	say("}")
	return b.String()
}

// Text is what Shrink did, for people.
func (s Shrunk) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "before:  %s\nafter:   %s\nhistory: %d operations, %d keys, %d lines\n",
		s.Before, s.After, s.Minimal.Operations, s.Minimal.Keys, s.Minimal.Lines)
	fmt.Fprintf(&b, "%d runs and %d histories in %.1f s", s.Runs, s.Checks, s.Elapsed.Seconds())
	if s.TimeUp {
		b.WriteString("; time was up, there may be something smaller")
	}
	fmt.Fprintf(&b, "\nfinding: %s  %s\n", s.ID(), s.Fingerprint)
	if s.Dir != "" {
		fmt.Fprintf(&b, "run:     %s\nminimal: %s\n", filepath.Join(s.Dir, reportFile), filepath.Join(s.MinimalDir, reportFile))
	}
	fmt.Fprintf(&b, "\n%s", s.Test)
	return b.String()
}
