package checker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// HarnessData is the Data of the harness checker.
type HarnessData struct {
	Stalls      []Span    `json:"stalls"`      // pauses of the host
	StalledFor  int64     `json:"stalled_for"` // ns in all
	Troubles    []Trouble `json:"troubles"`    // errors of the harness itself
	Overlap     float64   `json:"concurrency"` // mean number of open client operations
	Invocations int       `json:"invocations"` // of clients
	Unfinished  int       `json:"unfinished"`  // invocations without any completion
	Torn        bool      `json:"torn"`        // the last line was cut
	TornBytes   int       `json:"torn_bytes"`  // its length
}

// Span is a stretch of the run, in nanoseconds since its start.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Trouble is an error of the harness and when it happened.
type Trouble struct {
	What   string `json:"what"`
	Detail string `json:"detail"`
	At     int64  `json:"at"`
}

type harnessChecker struct{ report history.Report }

// NewHarness judges the harness by its own records (events "harness" and "stall"): an error
// of its own makes the run's silence worthless (Invalid, class Harness); a torn
// last line means that the history is a prefix (Unknown, incomplete). Stalls do
// not fail it; CheckAll lets them excuse time-bound findings. Data: HarnessData.
func NewHarness(report history.Report) Checker { return harnessChecker{report} }

func (harnessChecker) Name() string { return "harness" }

func (c harnessChecker) Check(_ context.Context, h history.History) (Verdict, error) {
	troubles, err := history.Events[history.Harness](h)
	if err != nil {
		return Verdict{}, err
	}
	stalls, err := stalls(h)
	if err != nil {
		return Verdict{}, err
	}
	data := HarnessData{Stalls: []Span{}, Troubles: []Trouble{}, Torn: c.report.Torn, TornBytes: c.report.TornBytes}
	v := Verdict{Checker: c.Name(), Class: Harness}
	for _, s := range stalls {
		data.Stalls = append(data.Stalls, Span{int64(s.From), int64(s.To)})
		data.StalledFor += int64(s.To - s.From)
	}
	for _, t := range troubles {
		if len(data.Troubles) == 0 {
			v.At, v.Story = t.Op.Time, t.Event.Problem+": "+t.Event.Detail
		}
		data.Troubles = append(data.Troubles, Trouble{t.Event.Problem, t.Event.Detail, int64(t.Op.Time)})
		v.Evidence = append(v.Evidence, t.Op.Index)
	}
	data.count(h)
	switch {
	case len(data.Troubles) > 0:
		v.Validity, v.Reason = Invalid, ReasonCrash
		v.Summary = fmt.Sprintf("%s of the harness, first %s", plural(len(data.Troubles), "error"), v.Story)
	case data.Torn:
		v.Validity, v.Reason = Unknown, ReasonIncomplete
		v.Summary = fmt.Sprintf("the last line was torn (%d bytes dropped): the history is a prefix of the run", data.TornBytes)
	default:
		v.Summary = fmt.Sprintf("no error of the harness, the host stalled %s for %v in all",
			plural(len(data.Stalls), "time"), time.Duration(data.StalledFor).Round(time.Millisecond))
	}
	return withData(v, data)
}

func (d *HarnessData) count(h history.History) {
	open, area, last := 0, 0.0, time.Duration(0)
	for i, op := range h.Ops() {
		area += float64(open) * float64(op.Time-last)
		last = op.Time
		if !op.Client() {
			continue
		}
		if op.Type != history.Invoke {
			open--
			continue
		}
		open++
		d.Invocations++
		if _, done := h.Partner(i); !done {
			d.Unfinished++
		}
	}
	if last > 0 {
		d.Overlap = area / float64(last)
	}
}

// stall is a stretch in which the host did not run the harness. The loop
// notices it when it is over, by as much as it was late.
type stall struct{ From, To time.Duration }

func stalls(h history.History) ([]stall, error) {
	events, err := history.Events[history.Stall](h)
	if err != nil {
		return nil, err
	}
	var out []stall
	for _, e := range events {
		late := time.Duration(max(e.Event.Late, 0))
		out = append(out, stall{max(e.Op.Time-late, 0), e.Op.Time})
	}
	return out, nil
}

// withData puts a checker's own result into its verdict.
func withData(v Verdict, data any) (Verdict, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return Verdict{}, fmt.Errorf("encode data of %s: %w", v.Checker, err)
	}
	v.Data = raw
	return v, nil
}

// plural writes "1 error", "2 errors".
func plural(n int, word string) string {
	switch {
	case n == 1:
		return "1 " + word
	case strings.HasSuffix(word, "ch"):
		word += "e"
	}
	return fmt.Sprintf("%d %ss", n, word)
}
