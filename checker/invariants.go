package checker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/history"
)

// InvariantsData is the Data of the invariants checker.
type InvariantsData struct {
	Checked    map[string]int `json:"checked"`    // events looked at, by kind
	Violations map[string]int `json:"violations"` // by invariant
	// AdvertisedBack counts answers of a server that went back to a lower leader
	// epoch while its process lived: no invariant of every system, but a smell.
	AdvertisedBack int `json:"advertised_back"`
}

type invariants struct{}

// NewInvariants checks the protocol's invariants (section 5): the shape of every
// LeaderAndIsr (leader -1 or in the ISR, the ISR among the replicas); leader
// epoch, bucket epoch and coordinator epoch in ZooKeeper never go back, in zxid
// order; a replica's high watermark never goes back within an incarnation, nor
// that which admitted leaders of a bucket serve; no truncation below the
// replica's own high watermark; no violation that a node reports of itself, and
// no panic of a node. One part for each kind of violation and subject, at most 20.
// Without any event to look at the answer is Unknown. Data: InvariantsData.
func NewInvariants() Checker { return invariants{} }

func (invariants) Name() string { return "invariants" }

// broken gathers violations.
type broken struct {
	t     *timeline
	data  InvariantsData
	parts []Verdict
	seen  map[string]bool // invariant and subject: one part each
}

const maxInvariantParts = 20

func (invariants) Check(_ context.Context, h history.History) (Verdict, error) {
	t, err := newTimeline(h)
	if err != nil {
		return Verdict{}, err
	}
	b := &broken{t: t, seen: map[string]bool{}, data: InvariantsData{Checked: map[string]int{}, Violations: map[string]int{}}}
	for _, check := range []func(history.History) error{
		b.leaderAndISR, b.claimedEpochs, b.highWatermarks, b.truncations, b.reported, b.advertised,
	} {
		if err := check(h); err != nil {
			return Verdict{}, err
		}
	}
	v := Verdict{Checker: "invariants"}
	slices.SortStableFunc(b.parts, func(x, y Verdict) int { return cmp.Compare(x.At, y.At) })
	v.Parts = b.parts[:min(len(b.parts), maxInvariantParts)]
	looked := 0
	for _, n := range b.data.Checked { // a sum: order does not matter
		looked += n
	}
	switch {
	case len(v.Parts) > 0:
		first := v.Parts[0]
		v.Validity, v.At, v.Story, v.Subject, v.Evidence = Invalid, first.At, first.Story, first.Subject, first.Evidence
		var names []string
		for _, name := range sortedKeys(b.data.Violations) {
			names = append(names, fmt.Sprintf("%s %d×", name, b.data.Violations[name]))
		}
		v.Summary = fmt.Sprintf("broken: %s; first %s", strings.Join(names, ", "), first.Summary)
	case looked == 0:
		v.Validity, v.Reason, v.Summary = Unknown, ReasonVacuous, "no event to look at"
	default:
		v.Summary = fmt.Sprintf("%s looked at, no invariant broken", plural(looked, "event"))
	}
	return withData(v, b.data)
}

// found adds a violation; story is a sentence without its full stop.
func (b *broken) found(invariant, subject string, op history.Op, story string, evidence ...int) {
	b.data.Violations[invariant]++
	key := invariant + "\x00" + subject
	if b.seen[key] {
		return
	}
	b.seen[key] = true
	v := Verdict{
		Checker: "invariants", Validity: Invalid, Subject: subject, At: op.Time,
		Evidence: lines(append(evidence, op.Index)...),
		Summary:  fmt.Sprintf("%s: %s at %s", invariant, subject, seconds(op.Time)),
	}
	v.Story = fmt.Sprintf("%s (%s): %s (line %d, %s). ", upper(invariant), subject, story, op.Index+1, seconds(op.Time))
	if _, ok := b.t.lais[subject]; ok {
		v.Story += upper(b.t.leaders(subject, op.Time)) + ". "
	}
	v.Story += upper(b.t.inForce(op.Time, op.Time)) + "."
	b.parts = append(b.parts, v)
}

// leaderAndISR judges shapes line by line, and epochs in zxid order.
func (b *broken) leaderAndISR(h history.History) error {
	events, err := history.Events[history.LAI](h)
	if err != nil {
		return err
	}
	b.data.Checked[history.KindLAI] = len(events)
	replicas := map[string][]int{}
	for _, e := range events {
		lai := e.Event
		if len(lai.Replicas) > 0 {
			replicas[lai.Bucket] = lai.Replicas
		}
		if lai.Leader != -1 && !slices.Contains(lai.ISR, lai.Leader) {
			b.found("leader outside its ISR", lai.Bucket, e.Op, fmt.Sprintf("leader %d, ISR %v, leader epoch %d", lai.Leader, lai.ISR, lai.LeaderEpoch))
		}
		for _, server := range lai.ISR {
			if known := replicas[lai.Bucket]; len(known) > 0 && !slices.Contains(known, server) {
				b.found("ISR outside the replicas", lai.Bucket, e.Op, fmt.Sprintf("ISR %v, replicas %v", lai.ISR, known))
				break
			}
		}
	}
	// ZooKeeper's own order. A LeaderAndIsr may be reported by several nodes.
	slices.SortStableFunc(events, func(x, y history.Record[history.LAI]) int { return cmp.Compare(x.Event.Zxid, y.Event.Zxid) })
	last := map[string]history.Record[history.LAI]{}
	var newest history.Record[history.LAI]
	for _, e := range events {
		if e.Event.Zxid <= 0 {
			continue // of unknown place: nothing can be ordered by it
		}
		if before, ok := last[e.Event.Bucket]; ok && before.Event.Zxid < e.Event.Zxid {
			b.ordered(before, e)
		}
		last[e.Event.Bucket] = e
		if newest.Event.Zxid > 0 && newest.Event.Zxid < e.Event.Zxid && e.Event.CoordinatorEpoch < newest.Event.CoordinatorEpoch {
			b.found("coordinator epoch goes back", e.Event.Bucket, e.Op, fmt.Sprintf(
				"written at coordinator epoch %d, zxid %d, after %s had been written at coordinator epoch %d, zxid %d (line %d)",
				e.Event.CoordinatorEpoch, e.Event.Zxid, newest.Event.Bucket, newest.Event.CoordinatorEpoch, newest.Event.Zxid, newest.Op.Index+1), newest.Op.Index)
		}
		if e.Event.CoordinatorEpoch >= newest.Event.CoordinatorEpoch {
			newest = e
		}
	}
	return nil
}

func (b *broken) ordered(before, e history.Record[history.LAI]) {
	x, y := before.Event, e.Event
	for _, epoch := range []struct {
		name     string
		was, now int
	}{{"leader epoch", x.LeaderEpoch, y.LeaderEpoch}, {"bucket epoch", x.BucketEpoch, y.BucketEpoch}} {
		if epoch.now < epoch.was {
			b.found(epoch.name+" goes back", y.Bucket, e.Op, fmt.Sprintf(
				"%s %d at zxid %d (coordinator epoch %d) after %d at zxid %d (line %d, coordinator epoch %d)",
				epoch.name, epoch.now, y.Zxid, y.CoordinatorEpoch, epoch.was, x.Zxid, before.Op.Index+1, x.CoordinatorEpoch), before.Op.Index)
		}
	}
}

// claimedEpochs: the epoch that terms take never goes back in zxid order.
func (b *broken) claimedEpochs(h history.History) error {
	ts, err := newTerms(h)
	if err != nil {
		return err
	}
	b.data.Checked[history.KindTerm] = len(ts)
	for i := 1; i < len(ts); i++ {
		if ts[i].Epoch < ts[i-1].Epoch {
			b.found("coordinator epoch goes back", ts[i].Coordinator, h.Ops()[ts[i].Line], fmt.Sprintf("%s began after %s", ts[i], ts[i-1]), ts[i-1].Line)
		}
	}
	return nil
}

func (b *broken) truncations(h history.History) error {
	events, err := history.Events[history.Truncate](h)
	if err != nil {
		return err
	}
	b.data.Checked[history.KindTruncate] = len(events)
	for _, e := range events {
		if t := e.Event; t.To < t.HW {
			b.found("truncated below the high watermark", t.Bucket, e.Op, fmt.Sprintf(
				"tablet %d at leader epoch %d truncated its log from %d to %d, its own high watermark was %d", t.Server, t.LeaderEpoch, t.From, t.To, t.HW))
		}
	}
	return nil
}

// reported: what nodes found broken in themselves, and nodes that panicked.
func (b *broken) reported(h history.History) error {
	violations, err := history.Events[history.Violation](h)
	if err != nil {
		return err
	}
	for _, e := range violations {
		v := e.Event
		subject := cmp.Or(v.Bucket, fmt.Sprintf("tablet-%d", v.Server))
		b.found(v.Invariant, subject, e.Op, fmt.Sprintf("tablet %d reports: %s", v.Server, v.Detail))
	}
	nodes, err := history.Events[history.Node](h)
	if err != nil {
		return err
	}
	b.data.Checked[history.KindNode] = len(nodes)
	for _, e := range nodes {
		if e.Event.State == history.NodePanicked {
			b.found("node panicked", e.Event.Node, e.Op, e.Event.Error)
		}
	}
	return nil
}

// advertised counts answers that went back to a lower leader epoch.
func (b *broken) advertised(h history.History) error {
	events, err := history.Events[history.Advertised](h)
	if err != nil {
		return err
	}
	b.data.Checked[history.KindAdvertised] = len(events)
	best := map[place]int{}
	for _, e := range events {
		p := place{bucket: e.Event.Bucket, server: e.Event.By}
		if e.Event.LeaderEpoch < best[p] {
			b.data.AdvertisedBack++
		}
		best[p] = e.Event.LeaderEpoch
	}
	return nil
}
