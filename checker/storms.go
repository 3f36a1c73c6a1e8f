package checker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

type storms struct{ opts StormOptions }

// NewStorms looks for retry storms (section 5 of the protocol): refusals and
// hangs by bucket, client, API and minute, each refusal with its cause, and the
// windows from advertised to admitted. A storm is Invalid and bound to time; one
// part for each, the first 20. Contract: the observer's events read well.
// Data: StormData.
func NewStorms(opts StormOptions) Checker { return storms{opts} }

func (storms) Name() string { return "storms" }

// refusal is one refused attempt, judged.
type refusal struct {
	at   time.Duration
	line int
	history.Refused
	cause
	place place
}

// maxStormParts bounds the parts of a verdict; Data counts them all.
const maxStormParts = 20

func (c storms) Check(_ context.Context, h history.History) (Verdict, error) {
	scan, err := c.scan(h)
	if err != nil {
		return Verdict{}, err
	}
	data := scan.data(h, c.opts)
	if data.Windows, err = admitWindows(h, scan.refusals); err != nil {
		return Verdict{}, err
	}
	if data.Ready, err = readyWindows(h); err != nil {
		return Verdict{}, err
	}
	fillWindows(&data)
	judged := c.opts.judged(scan.refusals)
	data.Storms = append(append(data.Storms, c.rates(judged)...), scan.runs...)
	if len(judged) < len(scan.refusals) {
		for _, s := range c.rates(scan.refusals) {
			if !overlaps(s, data.Storms) {
				scan.spared = append(scan.spared, s)
			}
		}
		data.Spared = append(data.Spared, scan.spared...)
	}
	for _, list := range [][]Storm{data.Storms, data.Spared} {
		slices.SortFunc(list, func(a, b Storm) int {
			return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Client, b.Client))
		})
	}
	t, err := newTimeline(h)
	if err != nil {
		return Verdict{}, err
	}
	return withData(c.verdict(data, t), data)
}

func (c storms) verdict(data StormData, t *timeline) Verdict {
	v := Verdict{Checker: c.Name(), TimeBound: true}
	v.Summary = fmt.Sprintf("no storm; %s (%d premature, %d stale, %d lost, %d no leader), %s, %.2f attempts and %.2f metadata requests an acknowledged operation",
		plural(data.Refusals, "refusal"), data.Premature, data.Stale, data.Lost, data.NoLeader, plural(data.Hangs, "hang"),
		data.AttemptsPerSuccess, data.MetadataPerSuccess)
	if data.Attempts == 0 && data.Acknowledged == 0 && data.Refusals == 0 && data.Hangs == 0 {
		v.Validity, v.Reason, v.Summary = Unknown, ReasonVacuous, "no client operation was attempted"
		return v
	}
	if len(data.Storms) == 0 {
		if n := len(data.Spared); n > 0 {
			v.Summary += fmt.Sprintf("; %s of lost refusals, which nobody can prevent", plural(n, "burst"))
		}
		return v
	}
	for i, s := range data.Storms {
		if i == maxStormParts {
			break
		}
		v.Parts = append(v.Parts, c.part(s, data, t))
	}
	first := v.Parts[0]
	v.Validity, v.At, v.Story, v.Subject, v.Evidence = Invalid, first.At, first.Story, first.Subject, first.Evidence
	v.Summary = fmt.Sprintf("%s, first %s; in all %d refusals (%d premature, %d stale, %d lost, %d no leader), %.0f premature in the worst minute",
		plural(len(data.Storms), "storm"), first.Summary, data.Refusals, data.Premature, data.Stale, data.Lost, data.NoLeader, data.PrematurePerMinute)
	return v
}

func (c storms) part(s Storm, data StormData, t *timeline) Verdict {
	v := Verdict{Checker: c.Name(), Validity: Invalid, TimeBound: true, Subject: s.Bucket, At: time.Duration(s.From), Evidence: []int{s.first, s.last}}
	from, to := time.Duration(s.From), time.Duration(s.To)
	who := "clients were refused"
	if s.Kind == "run" {
		who = fmt.Sprintf("%s was refused running at leader epoch %d", s.Client, s.LeaderEpoch)
	}
	v.Summary = fmt.Sprintf("%s %s %d times from %s to %s", s.Bucket, who, s.Refusals, seconds(from), seconds(to))
	v.Story = fmt.Sprintf("%s: %d premature, %d stale, %d lost, %d no leader.", v.Summary, s.Premature, s.Stale, s.Lost, s.NoLeader)
	for _, w := range data.Windows {
		if w.Bucket == s.Bucket && w.Advertised <= s.To && w.Admitted >= s.From && w.Width > 0 {
			end := "and had not admitted it when the window closed"
			if !w.Open {
				end = fmt.Sprintf("and admitted it at %s, %s later", seconds(time.Duration(w.Admitted)), time.Duration(w.Width).Round(time.Millisecond))
			}
			v.Story += fmt.Sprintf(" Tablet %d was advertised by tablet %d at leader epoch %d at %s %s; %d premature refusals fell into that window.",
				w.Leader, w.By, w.LeaderEpoch, seconds(time.Duration(w.Advertised)), end, w.Premature)
			break
		}
	}
	v.Story += " " + upper(t.leaders(s.Bucket, from)) + ". " + upper(t.inForce(from, to)) + "."
	return v
}

// rates finds the stretches in which a bucket was refused at least Limit times
// within Window. Stretches that overlap are one storm.
func (c storms) rates(refusals []refusal) []Storm {
	byBucket := map[string][]refusal{}
	for _, r := range refusals {
		byBucket[r.Bucket] = append(byBucket[r.Bucket], r)
	}
	var out []Storm
	for _, bucket := range sortedKeys(byBucket) {
		list := byBucket[bucket]
		from := -1 // first refusal of the storm that is being widened
		to := -1
		flush := func() {
			if from >= 0 {
				out = append(out, newStorm("rate", list[from:to+1]))
			}
		}
		low := 0
		for high := range list {
			for list[high].at-list[low].at > c.opts.Window {
				low++
			}
			if high-low+1 < c.opts.Limit {
				continue
			}
			if from < 0 || low > to {
				flush()
				from = low
			}
			to = high
		}
		flush()
	}
	return out
}

// overlaps tells a storm of a bucket that touches one of the list.
func overlaps(s Storm, list []Storm) bool {
	return slices.ContainsFunc(list, func(o Storm) bool {
		return o.Kind == s.Kind && o.Bucket == s.Bucket && o.From <= s.To && s.From <= o.To
	})
}

func newStorm(kind string, list []refusal) Storm {
	first, last := list[0], list[len(list)-1]
	s := Storm{Kind: kind, Bucket: first.Bucket, From: int64(first.at), To: int64(last.at), LeaderEpoch: first.place.epoch, first: first.line, last: last.line}
	if kind == "run" {
		s.Client = first.Client
	}
	for _, r := range list {
		s.add(r.cause)
	}
	return s
}
