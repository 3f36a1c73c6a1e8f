package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/report"
	"github.com/fencepost-dev/fencepost/workloads"
)

// Outcome is a judged run.
type Outcome struct {
	checker.Result
	Dir   string // of the run, or empty
	input report.Input
	plan  harness.Plan
	trace uint64 // of a simulated run; see sim.World.TraceHash
}

// WriteText prints the outcome for people.
func (o Outcome) WriteText(w io.Writer) error {
	if err := report.Text(w, o.input); err != nil {
		return err
	}
	if o.Dir == "" {
		return nil
	}
	if _, err := fmt.Fprintf(w, "report: %s\n", filepath.Join(o.Dir, reportFile)); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// WriteJSON prints the outcome as one JSON line.
func (o Outcome) WriteJSON(w io.Writer) error {
	line, err := json.Marshal(struct {
		Event  string         `json:"event"`
		Dir    string         `json:"dir,omitempty"`
		Result checker.Result `json:"result"`
	}{"verdict", o.Dir, o.Result})
	if err != nil {
		return fmt.Errorf("encode verdict: %w", err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

// run is what is judged: a history with its plan.
type run struct {
	dir     string // empty: a bare history, or nothing is written
	plan    harness.Plan
	history history.History
	report  history.Report // how the file was read
	failure error          // of the run itself, if it is known
	notes   []string
}

// judge runs the checkers and writes verdict and reports into the run's folder.
// It takes no context: a run that was interrupted is judged all the same, and
// every checker has limits of its own.
func judge(r run) (Outcome, error) {
	checkers, err := checkersOf(r.plan, r.report)
	if err != nil {
		return Outcome{}, err
	}
	result := checker.CheckAll(context.Background(), r.history, checkers...)
	if r.failure != nil {
		result = checker.Compose(append(result.Verdicts, harnessFailure(r.failure)))
	}
	out := Outcome{Result: result, Dir: r.dir, input: r.input(result), plan: r.plan}
	if r.dir == "" {
		return out, nil
	}
	if err := out.write(); err != nil {
		// A full disk fails the run and then its report: the first cause is told.
		return out, cmp.Or(r.failure, err)
	}
	return out, nil
}

// checkersOf are the workload's checkers and the standing ones.
func checkersOf(p harness.Plan, read history.Report) ([]checker.Checker, error) {
	w, err := workloads.Named(p.Workload)
	if err != nil {
		return nil, UsageError{fmt.Errorf("judge run: %w", err)}
	}
	storms := checker.DefaultStorms()
	storms.Limit = p.Options.StormLimit
	return append(w.Checkers(p.Options), checker.Standing(checker.StandingOptions{
		Storms:   storms,
		Coverage: checker.CoverageOptions{Planned: p.Planned, MinAcknowledged: 1},
		Report:   read,
	})...), nil
}

// input gathers what the reports show.
func (r run) input(result checker.Result) report.Input {
	in := report.Input{
		Title:   fmt.Sprintf("%s, seed %d", r.plan.Name, r.plan.Options.Seed),
		Plan:    planRows(r.plan),
		Command: r.plan.Command, History: r.history, Verdicts: result.Verdicts, Exit: result.Exit,
		Notes: r.notes, Generated: time.Now(),
	}
	if key := violatingKey(result.Verdicts); key != "" {
		picture, err := checker.Picture(r.history, key)
		if err != nil {
			in.Notes = append(in.Notes, "no picture of key "+key+": "+err.Error())
		}
		in.Picture, in.PictureKey = picture, key
	}
	return in
}

// violatingKey is the first key that the linearizability checker rejects.
func violatingKey(verdicts []checker.Verdict) string {
	for _, v := range verdicts {
		if v.Checker != "linearizable" {
			continue
		}
		for _, part := range v.Parts {
			if part.Validity == checker.Invalid {
				return part.Subject
			}
		}
		if v.Validity == checker.Invalid {
			return v.Subject
		}
	}
	return ""
}

func planRows(p harness.Plan) []report.Field {
	o := p.Options
	rows := []report.Field{
		{Name: "world", Value: p.World},
		{Name: "ZooKeeper", Value: p.ZooKeeper},
		{Name: "workload", Value: p.Workload},
		{Name: "faults", Value: strings.Join(p.Faults, ", ")},
		{Name: "bugs", Value: strings.Join(p.Bugs, ", ")},
		{Name: "preset", Value: p.Preset},
		{Name: "seed", Value: fmt.Sprint(o.Seed)},
		{Name: "time limit", Value: o.TimeLimit.String()},
		{Name: "clients, rate", Value: fmt.Sprintf("%d, %v per second", o.Concurrency, o.Rate)},
		{Name: "coordinators, tablets", Value: fmt.Sprintf("%d, %d", o.Coordinators, o.Tablets)},
		{Name: "buckets, replication, min ISR", Value: fmt.Sprintf("%d, %d, %d", o.Buckets, o.Replication, o.MinISR)},
		{Name: "recovery of a bucket, of a log", Value: fmt.Sprintf("%v, %v", o.Recovery, o.LogRecovery)},
		{Name: "session time-out", Value: o.SessionTimeout.String()},
		{Name: "started", Value: p.Started},
	}
	var versions []string
	for name, version := range p.Versions {
		versions = append(versions, name+" "+version)
	}
	sort.Strings(versions)
	return append(rows, report.Field{Name: "versions", Value: strings.Join(versions, ", ")})
}

// write puts verdict and reports into the run's folder, each in one step.
func (o Outcome) write() error {
	at := func(name string) string { return filepath.Join(o.Dir, name) }
	return errors.Join(
		writeFile(at(verdictFile), func(f *os.File) error { return checker.WriteResult(f, o.Result) }),
		writeFile(at(junitFile), func(f *os.File) error { return report.JUnit(f, o.input) }),
		writeFile(at(markdownFile), func(f *os.File) error { return report.Markdown(f, o.input) }),
		writeFile(at(reportFile), func(f *os.File) error { return report.HTML(f, o.input) }),
	)
}
