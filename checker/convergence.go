package checker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// ConvergenceData is the Data of the convergence checker; nanoseconds.
type ConvergenceData struct {
	Recorded bool            `json:"recorded"` // the harness came as far as to ask
	LastHeal int64           `json:"last_heal"`
	Took     int64           `json:"took"`
	Limit    int64           `json:"limit"`
	Unmet    []history.Unmet `json:"unmet"`
	Unasked  string          `json:"unasked,omitempty"`
}

type convergence struct{}

// NewConvergence judges whether the cluster came to rest after the last heal, by
// the harness's own record (event converged): each named predicate that never
// held is an Invalid part, bound to time. Without the record, as in a run that
// was killed, the answer is Unknown (incomplete), and so the run is never
// valid. Data: ConvergenceData.
func NewConvergence() Checker { return convergence{} }

func (convergence) Name() string { return "convergence" }

func (c convergence) Check(_ context.Context, h history.History) (Verdict, error) {
	records, err := history.Events[history.Converged](h)
	if err != nil {
		return Verdict{}, err
	}
	faults, err := faultWindows(h)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Checker: c.Name(), TimeBound: true}
	data := ConvergenceData{Unmet: []history.Unmet{}}
	last := -1
	for _, f := range faults {
		if f.EndLine > last {
			last = f.EndLine
			data.LastHeal = int64(f.To)
		}
	}
	if len(records) == 0 {
		v.Validity, v.Reason = Unknown, ReasonIncomplete
		v.Summary = "the run ended before the harness asked whether the cluster had come to rest"
		return withData(v, data)
	}
	record := records[len(records)-1]
	data.Recorded, data.Took, data.Limit, data.Unasked = true, record.Event.Took, record.Event.Limit, record.Event.Unasked
	took := time.Duration(record.Event.Took).Round(time.Millisecond)
	switch {
	case len(record.Event.Unmet) > 0:
		data.Unmet = record.Event.Unmet
		v.Validity, v.At, v.Evidence = Invalid, record.Op.Time, lines(last, record.Op.Index)
		var names []string
		for _, u := range record.Event.Unmet {
			names = append(names, u.Name)
			v.Parts = append(v.Parts, Verdict{
				Checker: c.Name(), Validity: Invalid, TimeBound: true, Subject: u.Name, At: record.Op.Time, Evidence: v.Evidence,
				Summary: u.Name + ": " + u.Reason,
				Story:   fmt.Sprintf("%v after the last heal (%s) it did not hold that %s: %s.", took, seconds(time.Duration(data.LastHeal)), u.Name, u.Reason),
			})
		}
		v.Summary = fmt.Sprintf("not at rest %v after the last heal: %s", took, strings.Join(names, ", "))
		v.Story, v.Subject = v.Parts[0].Story, v.Parts[0].Subject
	case record.Event.Unasked != "":
		v.Validity, v.Reason = Unknown, ReasonNotReached
		v.Summary = "nobody could be asked whether the cluster had come to rest: " + record.Event.Unasked
	default:
		v.Summary = fmt.Sprintf("at rest %v after the last heal, %v allowed", took, time.Duration(record.Event.Limit))
	}
	return withData(v, data)
}
