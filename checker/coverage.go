package checker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// CoverageOptions say what a run must have exercised.
type CoverageOptions struct {
	Planned []PlannedFault
	// MinAcknowledged is the least number of acknowledged client operations; a
	// run with fewer is vacuous. At least one is asked for.
	MinAcknowledged int
}

// CoverageData is the Data of the coverage checker, faults in the order of the plan.
type CoverageData struct {
	Acknowledged int             `json:"acknowledged"`
	Required     int             `json:"required"`
	Faults       []FaultCoverage `json:"faults"`
	Unplanned    []string        `json:"unplanned"` // faults that happened without a plan
	// ByFunction counts the acknowledged operations of each function.
	ByFunction map[string]int `json:"by_function"`
}

// FaultCoverage is what a planned fault came to.
type FaultCoverage struct {
	Name    string          `json:"name"`
	Min     int             `json:"min"`  // windows asked for
	Full    int             `json:"full"` // windows with full effect
	Overlap int             `json:"overlap"`
	Windows []WindowEffects `json:"windows"`
}

// WindowEffects is one window of a fault. Missing names the effects that were
// not seen. Overlap counts the client operations that were open in it.
type WindowEffects struct {
	ID      int      `json:"id"`
	From    int64    `json:"from"`
	To      int64    `json:"to"`
	Target  []string `json:"target"`
	Overlap int      `json:"overlap"`
	Missing []string `json:"missing,omitempty"`
}

type coverage struct{ opts CoverageOptions }

// NewCoverage judges whether the run exercised what it planned (section 5 of the
// protocol, "Coverage"): each planned fault needs Min windows in which all its
// effects were seen, and the run needs acknowledged operations. What is missing
// makes it Unknown, never Invalid. A run that planned no fault is judged by its
// operations alone, and says so. Data: CoverageData.
func NewCoverage(opts CoverageOptions) Checker { return coverage{opts} }

func (coverage) Name() string { return "coverage" }

func (c coverage) Check(_ context.Context, h history.History) (Verdict, error) {
	windows, err := faultWindows(h)
	if err != nil {
		return Verdict{}, err
	}
	events := newEventIndex(h)
	ops := newOverlap(h)
	data := CoverageData{Required: max(c.opts.MinAcknowledged, 1), Faults: []FaultCoverage{}, Unplanned: []string{}, ByFunction: map[string]int{}}
	for _, op := range h.Ops() {
		if op.Client() && op.Type == history.Ok {
			data.Acknowledged++
			data.ByFunction[op.F]++
		}
	}
	v := Verdict{Checker: c.Name(), Class: Coverage}
	for _, planned := range c.opts.Planned {
		fc := FaultCoverage{Name: planned.Name, Min: max(planned.Min, 1), Windows: []WindowEffects{}}
		for _, w := range windows {
			if w.Name != planned.Name {
				continue
			}
			we := events.judge(planned.Effects, w, ops)
			fc.Overlap += we.Overlap
			if len(we.Missing) == 0 {
				fc.Full++
			}
			fc.Windows = append(fc.Windows, we)
		}
		data.Faults = append(data.Faults, fc)
		v.Parts = append(v.Parts, c.part(fc))
	}
	data.Unplanned = unplanned(c.opts.Planned, windows)
	c.conclude(&v, data)
	return withData(v, data)
}

func (c coverage) part(fc FaultCoverage) Verdict {
	v := Verdict{Checker: c.Name(), Class: Coverage, Subject: fc.Name}
	v.Summary = fmt.Sprintf("%s: %d of %s with full effect, %d asked for", fc.Name, fc.Full, plural(len(fc.Windows), "window"), fc.Min)
	if fc.Full >= fc.Min {
		return v
	}
	v.Validity, v.Reason = Unknown, ReasonVacuous
	for _, w := range fc.Windows {
		if len(w.Missing) > 0 {
			v.At = time.Duration(w.From)
			v.Story = fmt.Sprintf("%s #%d on %s, %s to %s: %s.", fc.Name, w.ID, strings.Join(w.Target, ", "),
				seconds(time.Duration(w.From)), seconds(time.Duration(w.To)), strings.Join(w.Missing, "; "))
			break
		}
	}
	return v
}

func (c coverage) conclude(v *Verdict, data CoverageData) {
	v.Validity = Merge(v.Parts...)
	planned := fmt.Sprintf("%s had full effect", plural(len(data.Faults), "planned fault"))
	if len(data.Faults) == 0 {
		planned = "no fault was planned"
	}
	switch {
	case data.Acknowledged < data.Required:
		v.Validity, v.Reason = Unknown, ReasonVacuous
		v.Summary = fmt.Sprintf("%s, at least %d asked for", plural(data.Acknowledged, "acknowledged operation"), data.Required)
	case v.Validity == Unknown:
		v.Reason = ReasonVacuous
		var missing []string
		for _, part := range v.Parts {
			if part.Validity != Valid {
				missing = append(missing, part.Summary)
				if v.Story == "" {
					v.Story = part.Story
				}
			}
		}
		v.Summary = strings.Join(missing, "; ")
	default:
		v.Summary = fmt.Sprintf("%s; %s", planned, plural(data.Acknowledged, "acknowledged operation"))
	}
}

func unplanned(plan []PlannedFault, windows []faultWindow) []string {
	seen := map[string]bool{}
	for _, w := range windows {
		seen[w.Name] = true
	}
	for _, p := range plan {
		delete(seen, p.Name)
	}
	return sortedKeys(seen)
}

// eventIndex finds the observer events of a kind in a stretch of time.
type eventIndex struct {
	byKind map[string][]history.Op
	fields map[int]map[string]json.RawMessage // decoded values, by line
}

func newEventIndex(h history.History) *eventIndex {
	e := &eventIndex{byKind: map[string][]history.Op{}, fields: map[int]map[string]json.RawMessage{}}
	for _, op := range h.Ops() {
		if op.Process == history.Observer {
			e.byKind[op.F] = append(e.byKind[op.F], op)
		}
	}
	return e
}

// judge says which of a fault's effects a window did not have.
func (e *eventIndex) judge(effects []Effect, w faultWindow, ops overlap) WindowEffects {
	we := WindowEffects{ID: w.ID, From: int64(w.From), To: int64(w.To), Target: w.Target, Overlap: ops.within(w.From, w.To)}
	for _, effect := range effects {
		if effect.Overlap > 0 {
			if n := ops.within(w.From, w.To+effect.After); n < effect.Overlap {
				we.Missing = append(we.Missing, fmt.Sprintf("%s open in it, %d asked for", plural(n, "operation"), effect.Overlap))
			}
		}
		if effect.Event == "" {
			continue
		}
		if n, need := e.count(effect, w), max(effect.Min, 1); n < need {
			we.Missing = append(we.Missing, fmt.Sprintf("%d of %d events %s", n, need, describeEffect(effect)))
		}
	}
	return we
}

func describeEffect(effect Effect) string {
	words := []string{effect.Event}
	for _, field := range sortedKeys(effect.Where) {
		words = append(words, field+"="+effect.Where[field])
	}
	if effect.OnTarget {
		words = append(words, "on a target")
	}
	return strings.Join(words, " ")
}

// count counts the events of the effect in the window, widened by After.
func (e *eventIndex) count(effect Effect, w faultWindow) int {
	list := e.byKind[effect.Event]
	from, _ := slices.BinarySearchFunc(list, w.From, func(op history.Op, at time.Duration) int {
		return cmp.Or(cmp.Compare(op.Time, at), 1) // the first at or after
	})
	n := 0
	for _, op := range list[from:] {
		if op.Time > w.To+effect.After {
			break
		}
		if e.matches(op, effect, w) {
			n++
		}
	}
	return n
}

func (e *eventIndex) matches(op history.Op, effect Effect, w faultWindow) bool {
	fields, ok := e.fields[op.Index]
	if !ok {
		if json.Unmarshal(op.Value, &fields) != nil {
			fields = map[string]json.RawMessage{}
		}
		e.fields[op.Index] = fields
	}
	for name, want := range effect.Where { // all must hold: order does not matter
		got, ok := fields[name]
		if !ok && name == "node" && op.Node != "" {
			got, ok = json.RawMessage(op.Node), true
		}
		if !ok || want != "*" && fieldText(got) != want {
			return false
		}
	}
	return !effect.OnTarget || onTarget(op, fields, w.Target)
}

// fieldText is a field as the text that Where holds: strings without quotes,
// everything else as JSON.
func fieldText(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return text
		}
	}
	return string(bytes.TrimSpace(raw))
}

// onTarget tells whether the event is about one of the nodes: its own node, its
// coordinator, or its server "tablet-<n>".
func onTarget(op history.Op, fields map[string]json.RawMessage, target []string) bool {
	for _, name := range []string{"node", "coordinator"} {
		if raw, ok := fields[name]; ok && slices.Contains(target, fieldText(raw)) {
			return true
		}
	}
	if raw, ok := fields["server"]; ok {
		if n, err := strconv.Atoi(fieldText(raw)); err == nil && slices.Contains(target, fmt.Sprintf("tablet-%d", n)) {
			return true
		}
	}
	return op.Node != "" && slices.Contains(target, op.Node)
}

// overlap counts how many client operations were open in a stretch: those called
// by its end, less those that had returned before its start. An operation that
// was never completed is open for ever.
type overlap struct{ calls, returns []time.Duration }

func newOverlap(h history.History) overlap {
	var o overlap
	for _, op := range h.Ops() {
		switch {
		case !op.Client():
		case op.Type == history.Invoke:
			o.calls = append(o.calls, op.Time)
		default:
			o.returns = append(o.returns, op.Time)
		}
	}
	return o
}

func (o overlap) within(from, to time.Duration) int {
	called, _ := slices.BinarySearchFunc(o.calls, to, func(t, at time.Duration) int { return cmp.Or(cmp.Compare(t, at), -1) })
	returned, _ := slices.BinarySearch(o.returns, from)
	return max(called-returned, 0)
}
