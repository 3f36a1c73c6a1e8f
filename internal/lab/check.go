package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// CheckOptions are those of Check.
type CheckOptions struct {
	Model string // for a history without a plan
}

// Check judges a stored run again, or a bare history file by a model.
func Check(_ context.Context, path string, o CheckOptions) (Outcome, error) {
	r, err := load(path, o)
	if err != nil {
		return Outcome{}, err
	}
	return judge(r)
}

// Report renders the pages of a stored run again and returns the page's file.
func Report(ctx context.Context, dir string) (string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", usagef("report %s: not the folder of a run", dir)
	}
	if _, err := Check(ctx, dir, CheckOptions{}); err != nil {
		return "", err
	}
	return filepath.Join(dir, reportFile), nil
}

// load reads a run's folder, or a history file alone.
func load(path string, o CheckOptions) (run, error) {
	info, err := os.Stat(path)
	if err != nil {
		return run{}, usagef("open %s: no such run or file", path)
	}
	r := run{}
	file := path
	if info.IsDir() {
		if r.plan, err = harness.LoadPlan(path); err != nil {
			return run{}, UsageError{err}
		}
		r.dir, file = path, filepath.Join(path, harness.HistoryFile)
	} else {
		if o.Model != "register" {
			return run{}, usagef("unknown model %q: want register", o.Model)
		}
		r.plan = barePlan(path, o.Model)
	}
	if r.history, r.report, err = readHistory(file); err != nil {
		return run{}, err
	}
	if r.report.Torn {
		r.notes = append(r.notes, fmt.Sprintf("the history's last line was cut off after %d bytes and is left out", r.report.TornBytes))
	}
	if r.dir != "" && !ended(r.history) {
		r.notes = append(r.notes, "the run's history stops before its end: the harness was killed, or is still at it; what is there was judged")
	}
	return r, nil
}

// ended tells whether a run came to its last phase.
func ended(h history.History) bool {
	phases, err := history.Events[history.Phase](h)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(phases, func(p history.Record[history.Phase]) bool { return p.Event.Name == history.PhaseEnd })
}

// barePlan is what is assumed of a history that comes alone.
func barePlan(path, model string) harness.Plan {
	return harness.Plan{
		Name: filepath.Base(path), Workload: model, Options: harness.DefaultOptions(),
		Command: fmt.Sprintf("go run ./cmd/jepsen check %s --model %s", path, model),
	}
}

// readHistory reads a history strictly: what is malformed is the caller's
// mistake, with its line; what cannot be read is not.
func readHistory(file string) (history.History, history.Report, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return history.History{}, history.Report{}, usagef("read history: %s does not exist", file)
	}
	if err != nil {
		return history.History{}, history.Report{}, fmt.Errorf("read history: %w", err)
	}
	defer f.Close()
	h, read, err := history.Read(f)
	if _, malformed := errors.AsType[*history.LineError](err); malformed {
		return history.History{}, read, UsageError{fmt.Errorf("read history %s: %w", file, err)}
	}
	if err != nil {
		return history.History{}, read, fmt.Errorf("read history %s: %w", file, err)
	}
	return h, read, nil
}
