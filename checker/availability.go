package checker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// AvailabilityOptions bound what a run may take; zero does not judge.
type AvailabilityOptions struct {
	MaxGap      time.Duration // longest stretch without any acknowledged operation
	MaxRecovery time.Duration // from a fault's start to a bucket's first success
	// Bucket names the bucket of a key, or is nil: then successes are told apart
	// by the node that answered.
	Bucket func(key string) string
}

// AvailabilityData is the Data of the availability checker. Times are
// nanoseconds since the start of the run, durations nanoseconds.
type AvailabilityData struct {
	Acknowledged int             `json:"acknowledged"`
	Failed       int             `json:"failed"`
	Unknown      int             `json:"unknown"`
	From         int64           `json:"from"`         // the load: its phase, else the first invocation
	To           int64           `json:"to"`           // its end: of the phase, else the last completion
	Seconds      int             `json:"seconds"`      // started seconds of load
	Good         int             `json:"good"`         // of these, with an acknowledged operation
	Availability float64         `json:"availability"` // Good / Seconds
	LongestGap   Span            `json:"longest_gap"`  // between acknowledged operations
	Faults       []FaultRecovery `json:"faults"`
	// WorstRecovery is the longest from a fault's start to a bucket's first success.
	WorstRecovery int64 `json:"worst_recovery"`
}

// FaultRecovery is what a fault cost. The counts are of operations that ended in it.
type FaultRecovery struct {
	Name         string           `json:"name"`
	ID           int              `json:"id"`
	Target       []string         `json:"target"`
	From         int64            `json:"from"`
	To           int64            `json:"to"`
	Acknowledged int              `json:"acknowledged"`
	Failed       int              `json:"failed"`
	Unknown      int              `json:"unknown"`
	LongestGap   Span             `json:"longest_gap"`
	Buckets      []BucketRecovery `json:"buckets"`     // that a target led at the start
	Coordinator  *CoordinatorMove `json:"coordinator"` // if a target was a coordinator
}

// BucketRecovery is the way of a bucket to its next leader, in nanoseconds since
// the fault's start; -1 where it was not seen.
type BucketRecovery struct {
	Bucket      string `json:"bucket"`
	OldLeader   int    `json:"old_leader"`
	NewLeader   int    `json:"new_leader"`
	LeaderEpoch int    `json:"leader_epoch"`
	Detected    int64  `json:"detected"` // the target's session ended, or the bucket's LeaderAndIsr changed
	Elected     int64  `json:"elected"`
	Admitted    int64  `json:"admitted"`
	Success     int64  `json:"success"` // first acknowledged operation after that
}

// CoordinatorMove is the way to the next coordinator in office, as above.
type CoordinatorMove struct {
	Detected int64  `json:"detected"`
	Elected  int64  `json:"elected"`
	Serving  int64  `json:"serving"`
	Next     string `json:"next,omitempty"`
}

// recoveryReach is how long after its end a fault may still be the cause of an
// election.
const recoveryReach = 30 * time.Second

type availability struct{ opts AvailabilityOptions }

// NewAvailability measures how long clients went without success, and for every
// fault how long detection, election, admission and the first success took. It
// judges only the limits that are set; both are bound to time. Without an
// acknowledged operation the answer is Unknown. Data: AvailabilityData.
func NewAvailability(opts AvailabilityOptions) Checker { return availability{opts} }

func (availability) Name() string { return "availability" }

func (c availability) Check(_ context.Context, h history.History) (Verdict, error) {
	t, err := newTimeline(h)
	if err != nil {
		return Verdict{}, err
	}
	s, err := newSuccesses(h, c.opts.Bucket)
	if err != nil {
		return Verdict{}, err
	}
	r, err := newRecoveries(h, t, s)
	if err != nil {
		return Verdict{}, err
	}
	data := s.data()
	for _, f := range t.faults {
		fr := r.of(f)
		for _, b := range fr.Buckets {
			data.WorstRecovery = max(data.WorstRecovery, b.Success)
		}
		data.Faults = append(data.Faults, fr)
	}
	return withData(c.verdict(data, s, t), data)
}

func (c availability) verdict(data AvailabilityData, s *successes, t *timeline) Verdict {
	v := Verdict{Checker: c.Name(), TimeBound: true}
	gap := time.Duration(data.LongestGap.To - data.LongestGap.From)
	v.Summary = fmt.Sprintf("%.1f %% of %s had a success, longest gap %v, slowest recovery of a bucket %v",
		100*data.Availability, plural(data.Seconds, "second"), gap.Round(time.Millisecond), time.Duration(data.WorstRecovery).Round(time.Millisecond))
	if data.Acknowledged == 0 {
		v.Validity, v.Reason, v.Summary = Unknown, ReasonVacuous, "no acknowledged operation"
		return v
	}
	if c.opts.MaxGap > 0 && gap > c.opts.MaxGap {
		from, to := time.Duration(data.LongestGap.From), time.Duration(data.LongestGap.To)
		v.Parts = append(v.Parts, Verdict{
			Checker: c.Name(), Validity: Invalid, TimeBound: true, At: from, Evidence: s.around(from, to),
			Summary: fmt.Sprintf("no success for %v", gap.Round(time.Millisecond)),
			Story: fmt.Sprintf("No operation was acknowledged from %s to %s, %v, at most %v is allowed. %s.",
				seconds(from), seconds(to), gap.Round(time.Millisecond), c.opts.MaxGap, upper(t.inForce(from, to))),
		})
	}
	for i, f := range data.Faults {
		if part, slow := c.slow(f, t.faults[i].Line, s.end); slow {
			v.Parts = append(v.Parts, part)
		}
	}
	if len(v.Parts) > 0 {
		first := v.Parts[0]
		v.Validity, v.At, v.Story, v.Subject, v.Evidence = Invalid, first.At, first.Story, first.Subject, first.Evidence
		v.Summary = first.Summary + "; " + v.Summary
	}
	return v
}

// slow is the fault's slowest bucket, if it took too long or never came back.
func (c availability) slow(f FaultRecovery, line int, end time.Duration) (Verdict, bool) {
	if c.opts.MaxRecovery <= 0 {
		return Verdict{}, false
	}
	worst, took := -1, c.opts.MaxRecovery
	for i, b := range f.Buckets {
		d := time.Duration(b.Success)
		if b.Success < 0 {
			d = end - time.Duration(f.From)
		}
		if d > took {
			worst, took = i, d
		}
	}
	if worst < 0 {
		return Verdict{}, false
	}
	b := f.Buckets[worst]
	step := func(ns int64) string {
		if ns < 0 {
			return "never"
		}
		return "after " + time.Duration(ns).Round(time.Millisecond).String()
	}
	return Verdict{
		Checker: c.Name(), Validity: Invalid, TimeBound: true, Subject: b.Bucket, At: time.Duration(f.From), Evidence: []int{line},
		Summary: fmt.Sprintf("%s needed %v after %s #%d", b.Bucket, took.Round(time.Millisecond), f.Name, f.ID),
		Story: fmt.Sprintf("%s #%d on %v at %s: %s, led by tablet %d, was detected %s, elected %s (tablet %d at leader epoch %d), admitted %s, served %s; at most %v is allowed.",
			f.Name, f.ID, f.Target, seconds(time.Duration(f.From)), b.Bucket, b.OldLeader, step(b.Detected), step(b.Elected),
			b.NewLeader, b.LeaderEpoch, step(b.Admitted), step(b.Success), c.opts.MaxRecovery),
	}, true
}

// success is an acknowledged operation.
type success struct {
	at   time.Duration
	line int
}

// successes are the ends of client operations.
type successes struct {
	all       []success
	by        map[place2][]time.Duration // (node, bucket or empty)
	failed    []time.Duration
	unknown   []time.Duration
	first     time.Duration
	last, end time.Duration
}

type place2 struct{ node, bucket string }

func newSuccesses(h history.History, bucket func(string) string) (*successes, error) {
	s := &successes{by: map[place2][]time.Duration{}, first: -1, end: h.End()}
	for _, op := range h.Ops() {
		if !op.Client() {
			continue
		}
		s.last = max(s.last, op.Time)
		switch op.Type {
		case history.Invoke:
			if s.first < 0 {
				s.first = op.Time
			}
		case history.Fail:
			s.failed = append(s.failed, op.Time)
		case history.Info:
			s.unknown = append(s.unknown, op.Time)
		case history.Ok:
			s.all = append(s.all, success{op.Time, op.Index})
			at := place2{node: op.Node}
			if bucket != nil && (op.F == fRead || op.F == fWrite) {
				kv, err := history.KeyValueOf(completed(h, op))
				if err != nil {
					return nil, err
				}
				at.bucket = bucket(kv.Key)
			}
			s.by[at] = append(s.by[at], op.Time)
		}
	}
	return s, s.load(h)
}

// load narrows the stretch that is judged to the load, if the phases tell it:
// before and after it nobody is asked for anything.
func (s *successes) load(h history.History) error {
	phases, err := history.Events[history.Phase](h)
	if err != nil {
		return err
	}
	for i, p := range phases {
		if p.Event.Name != history.PhaseLoad || s.first < 0 {
			continue
		}
		s.first = max(s.first, p.Op.Time)
		if i+1 < len(phases) {
			s.last = min(s.last, phases[i+1].Op.Time)
		}
	}
	return nil
}

// completed is a completion with a value: its own, or that of its invocation.
func completed(h history.History, op history.Op) history.Op {
	if len(op.Value) > 0 {
		return op
	}
	if i, ok := h.Partner(op.Index); ok {
		return h.Ops()[i]
	}
	return op
}

func (s *successes) data() AvailabilityData {
	d := AvailabilityData{
		Acknowledged: len(s.all), Failed: len(s.failed), Unknown: len(s.unknown), Faults: []FaultRecovery{}, To: int64(s.last),
	}
	if s.first < 0 {
		return d
	}
	d.From = int64(s.first)
	d.Seconds = int((s.last-s.first)/time.Second) + 1
	good := map[time.Duration]bool{}
	for _, x := range s.all {
		if x.at >= s.first && x.at <= s.last {
			good[(x.at-s.first)/time.Second] = true
		}
	}
	d.Good = len(good)
	d.Availability = float64(d.Good) / float64(d.Seconds)
	d.LongestGap = s.gap(s.first, s.last)
	return d
}

// gap is the longest stretch without a success between two moments.
func (s *successes) gap(from, to time.Duration) Span {
	i, _ := slices.BinarySearchFunc(s.all, from, func(x success, at time.Duration) int { return compareTimes(x.at, at) })
	best := Span{int64(from), int64(from)}
	last := from
	take := func(at time.Duration) {
		if int64(at-last) > best.To-best.From {
			best = Span{int64(last), int64(at)}
		}
		last = at
	}
	for ; i < len(s.all) && s.all[i].at <= to; i++ {
		take(s.all[i].at)
	}
	take(to)
	return best
}

// compareTimes places equal times at the first of them.
func compareTimes(a, b time.Duration) int {
	if a < b {
		return -1
	}
	return 1
}

// around gives the lines of the last success before a gap and the first after it.
func (s *successes) around(from, to time.Duration) []int {
	var out []int
	for _, x := range s.all {
		if x.at == from && len(out) == 0 || x.at == to {
			out = append(out, x.line)
		}
	}
	if len(out) == 0 && len(s.all) > 0 {
		out = append(out, s.all[len(s.all)-1].line)
	}
	return lines(out...)
}

func within(list []time.Duration, from, to time.Duration) int {
	i, _ := slices.BinarySearchFunc(list, from, compareTimes)
	j, _ := slices.BinarySearchFunc(list, to+1, compareTimes)
	return max(j-i, 0)
}
