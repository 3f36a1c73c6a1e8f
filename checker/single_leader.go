package checker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fencepost-dev/fencepost/history"
)

// SingleLeaderData is the Data of the single-leader checker.
type SingleLeaderData struct {
	Buckets    int `json:"buckets"`
	Admissions int `json:"admissions"`
	Violations int `json:"violations"`
}

type singleLeader struct{}

// NewSingleLeader checks that at most one incarnation of one server is ever
// admitted as leader of a bucket at a leader epoch (rule S1: a restarted leader
// is re-elected at a higher one). Without any admission the answer is Unknown.
// Data: SingleLeaderData.
func NewSingleLeader() Checker { return singleLeader{} }

func (singleLeader) Name() string { return "single-leader" }

func (c singleLeader) Check(_ context.Context, h history.History) (Verdict, error) {
	t, err := newTimeline(h)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Checker: c.Name()}
	data := SingleLeaderData{Buckets: len(t.admissions)}
	for _, bucket := range sortedKeys(t.admissions) {
		first := map[int]admission{} // by leader epoch
		for _, a := range t.admissions[bucket] {
			data.Admissions++
			before, known := first[a.Epoch]
			if !known {
				first[a.Epoch] = a
				continue
			}
			if a.Server == before.Server && (a.Incarnation == before.Incarnation || a.Incarnation == 0 || before.Incarnation == 0) {
				continue
			}
			data.Violations++
			v.Parts = append(v.Parts, c.part(t, before, a))
		}
	}
	slices.SortStableFunc(v.Parts, func(a, b Verdict) int { return cmp.Compare(a.At, b.At) })
	v.Parts = v.Parts[:min(len(v.Parts), maxFencingParts)]
	switch {
	case data.Admissions == 0:
		v.Validity, v.Reason, v.Summary = Unknown, ReasonVacuous, "no leader was ever admitted"
	case data.Violations > 0:
		first := v.Parts[0]
		v.Validity, v.At, v.Story, v.Subject, v.Evidence = Invalid, first.At, first.Story, first.Subject, first.Evidence
		v.Summary = fmt.Sprintf("%s of a second leader at the same leader epoch; first %s", plural(data.Violations, "admission"), first.Summary)
	default:
		v.Summary = fmt.Sprintf("%s of %s, each leader epoch with one leader", plural(data.Admissions, "admission"), plural(data.Buckets, "bucket"))
	}
	return withData(v, data)
}

func (c singleLeader) part(t *timeline, a, b admission) Verdict {
	v := Verdict{
		Checker: c.Name(), Validity: Invalid, Subject: b.Bucket, At: b.From, Evidence: lines(a.Line, b.Line),
		Summary: fmt.Sprintf("%s at leader epoch %d: tablet %d, then tablet %d", b.Bucket, b.Epoch, a.Server, b.Server),
	}
	together := "which had left that role before"
	if a.To > b.From || !a.Ended {
		together = "which was still admitted"
	}
	v.Story = fmt.Sprintf("%s: tablet %d (incarnation %d) was admitted at leader epoch %d at %s (line %d), after tablet %d (incarnation %d) at %s (line %d), %s. %s. %s.",
		b.Bucket, b.Server, b.Incarnation, b.Epoch, seconds(b.From), b.Line+1, a.Server, a.Incarnation, seconds(a.From), a.Line+1, together,
		upper(t.leaders(b.Bucket, b.From)), upper(t.inForce(a.From, b.From)))
	return v
}
