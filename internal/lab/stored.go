package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/nemesis"
)

// stored is a run's folder as a Config that runs it again.
func stored(dir string) (Config, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Config{}, usagef("open %s: not the folder of a run", dir)
	}
	plan, err := harness.LoadPlan(dir)
	if err != nil {
		return Config{}, UsageError{err}
	}
	c := DefaultConfig()
	c.World, c.Workload, c.Bugs, c.Options = plan.World, plan.Workload, plan.Bugs, plan.Options
	// The plan's bugs hold those of its preset.
	c.Nemesis, c.Schedule, c.Out = plan.Faults, filepath.Join(dir, harness.ScheduleFile), ""
	return c, nil
}

// Replayed is what Replay found.
type Replayed struct {
	Outcome
	// Compared is false where there is no promise of equality: outside simulation.
	Compared bool
	// Line is the first line, from 1, in which the histories differ; 0: none.
	Line    int
	Was, Is string // that line, in the stored and in the new history
}

// Equal reports whether the new history is that of the stored run, byte for
// byte.
func (r Replayed) Equal() bool { return r.Compared && r.Line == 0 }

// Replay runs a stored run again, from its test.json and schedule.json, and
// compares the histories. A non-empty out gets a folder of the new run.
func Replay(ctx context.Context, dir, out string, ui UI) (Replayed, error) {
	c, err := stored(dir)
	if err != nil {
		return Replayed{}, err
	}
	file := filepath.Join(dir, harness.HistoryFile)
	want, err := os.ReadFile(file)
	if err != nil {
		return Replayed{}, UsageError{fmt.Errorf("read history: %w", err)}
	}
	c.Out = out
	outcome, err := Run(ctx, c, ui)
	if err != nil {
		return Replayed{}, err
	}
	r := Replayed{Outcome: outcome, Compared: c.World == WorldSim}
	if !r.Compared {
		return r, nil
	}
	got, err := encodeHistory(outcome.input.History)
	if err != nil {
		return r, err
	}
	r.Line, r.Was, r.Is = differ(want, got)
	return r, nil
}

// encodeHistory gives the bytes of history.jsonl.
func encodeHistory(h history.History) ([]byte, error) {
	var out []byte
	for _, op := range h.Ops() {
		line, err := history.AppendJSON(out, op)
		if err != nil {
			return nil, fmt.Errorf("encode history: %w", err)
		}
		out = append(line, '\n')
	}
	return out, nil
}

// differ gives the first line, from 1, in which two files differ, or 0.
func differ(a, b []byte) (line int, was, is string) {
	for line = 1; len(a) > 0 || len(b) > 0; line++ {
		var x, y []byte
		x, a, _ = bytes.Cut(a, []byte{'\n'})
		y, b, _ = bytes.Cut(b, []byte{'\n'})
		if !bytes.Equal(x, y) || (len(a) == 0) != (len(b) == 0) {
			if bytes.Equal(x, y) { // one of them goes on
				line++
				x, _, _ = bytes.Cut(a, []byte{'\n'})
				y, _, _ = bytes.Cut(b, []byte{'\n'})
			}
			return line, string(x), string(y)
		}
	}
	return 0, "", ""
}

// errOnlySim refuses what needs a run that can be repeated exactly.
var errOnlySim = errors.New("only runs of the simulated world can be repeated exactly")

// storedSim is stored, for simulated runs alone, with its schedule.
func storedSim(dir string) (Config, []harness.Entry, error) {
	c, err := stored(dir)
	if err != nil {
		return c, nil, err
	}
	if c.World != WorldSim {
		return c, nil, UsageError{fmt.Errorf("open %s: %w", dir, errOnlySim)}
	}
	entries, err := harness.LoadSchedule(c.Schedule, nemesis.All())
	if err != nil {
		return c, nil, UsageError{err}
	}
	return c, entries, nil
}
