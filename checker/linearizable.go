package checker

import (
	"context"
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// LinearizableOptions bound the search and help to tell the story.
type LinearizableOptions struct {
	// KeyTime and TotalTime limit Porcupine for one key and for all together.
	KeyTime, TotalTime time.Duration
	// Memory is the most that a search may keep for a key, in bytes, by account.
	// Porcupine is not asked where it is sure to need more.
	Memory int64
	// Bucket names the bucket of a key, or is nil; stories say who led it.
	Bucket func(key string) string
	// Workers judge keys in parallel; 0 takes one per processor.
	Workers int
}

// DefaultLinearizable are limits that fit a laptop.
func DefaultLinearizable() LinearizableOptions {
	return LinearizableOptions{KeyTime: 10 * time.Second, TotalTime: 5 * time.Minute, Memory: 512 << 20}
}

// LinearizableData is the Data of the linearizable checker.
type LinearizableData struct {
	Keys           int `json:"keys"`
	Operations     int `json:"operations"`   // that were judged
	Acknowledged   int `json:"acknowledged"` // of these, with a known outcome
	CrashedWrites  int `json:"crashed_writes"`
	Failed         int `json:"failed"`        // dropped: they did not happen
	UnknownReads   int `json:"unknown_reads"` // dropped: they saw nothing
	LongestKey     int `json:"longest_key"`   // operations
	MostOpen       int `json:"most_open"`     // operations open at once on a key
	PorcupineOK    int `json:"porcupine_judged"`
	PorcupineTime  int `json:"porcupine_timed_out"` // or out of memory
	PorcupineNever int `json:"porcupine_not_asked"`
	// By the exact algorithm beside it: zones for unique writes, chains if there
	// is compare-and-set too, the window search for all else.
	ZonesJudged  int `json:"zones_judged"`
	ChainsJudged int `json:"chains_judged"`
	WindowJudged int `json:"window_judged"`
	Undecidable  int `json:"fast_undecided"` // it ran out of time, memory or room
	// Violating and Undecided are keys, sorted.
	Violating []string `json:"violating"`
	Undecided []string `json:"undecided"`
}

type linearizable struct{ opts LinearizableOptions }

// NewLinearizable checks that every key is a linearizable register, with reads,
// writes and compare-and-set. Two algorithms judge: Porcupine each key within its
// limits, and an exact one every key, which is linear where written values are
// unique and else the window search within the same limits. They must agree; a
// difference is a failure of the harness and shows both answers. A key that neither
// decides is unknown, never valid. The verdict has a part for each key that is not
// valid. Contract: see registers. Data: LinearizableData.
func NewLinearizable(opts LinearizableOptions) Checker { return linearizable{opts} }

func (linearizable) Name() string { return "linearizable" }

// The exact algorithms, as verdicts name them.
const (
	byZones  = "zones"
	byChains = "chains"
	byWindow = "window search"
)

// keyResult is what both algorithms say of a key.
type keyResult struct {
	fast       answer
	path       string // the exact algorithm that answered, or tried last
	fastReason string // why it gave no answer
	zones      zoneAnswer
	porcupine  answer
	reason     string // why Porcupine gave no answer
}

func (c linearizable) Check(ctx context.Context, h history.History) (Verdict, error) {
	keys, err := registers(h)
	if err != nil {
		return Verdict{}, err
	}
	t, err := newTimeline(h)
	if err != nil {
		return Verdict{}, err
	}
	results := c.judgeAll(ctx, h, keys)
	if err := ctx.Err(); err != nil {
		return Verdict{}, fmt.Errorf("judge %d keys: %w", len(keys), err)
	}
	v := Verdict{Checker: c.Name()}
	data := LinearizableData{Violating: []string{}, Undecided: []string{}}
	for i, k := range keys {
		data.add(k, results[i])
		part := c.verdict(ctx, h, t, k, results[i])
		if part.Validity == Valid {
			continue
		}
		v.Parts = append(v.Parts, part)
		if part.Class == Property && part.Validity == Invalid {
			data.Violating = append(data.Violating, k.key)
		} else {
			data.Undecided = append(data.Undecided, k.key)
		}
	}
	sort.Strings(data.Violating)
	sort.Strings(data.Undecided)
	sort.SliceStable(v.Parts, func(i, j int) bool {
		a, b := v.Parts[i], v.Parts[j]
		if a.Validity != b.Validity {
			return a.Validity > b.Validity
		}
		if a.At != b.At {
			return a.At < b.At
		}
		return a.Subject < b.Subject
	})
	c.conclude(&v, data)
	return withData(v, data)
}

// conclude sets the whole from its parts.
func (linearizable) conclude(v *Verdict, data LinearizableData) {
	for _, part := range v.Parts {
		if part.Class == Property {
			v.Validity = max(v.Validity, part.Validity)
		} else {
			v.Validity = max(v.Validity, Unknown)
		}
	}
	asked := fmt.Sprintf("%s, %s; Porcupine judged %d of them (timed out %d, not asked %d), %s",
		plural(data.Keys, "key"), plural(data.Acknowledged, "acknowledged operation"),
		data.PorcupineOK, data.PorcupineTime, data.PorcupineNever, fastSummary(data))
	switch {
	case data.Acknowledged == 0:
		v.Validity, v.Reason = max(v.Validity, Unknown), ReasonVacuous
		v.Summary = "no acknowledged read or write to judge"
	case v.Validity == Invalid:
		first := v.Parts[0]
		v.At, v.Story, v.Subject = first.At, first.Story, first.Subject
		v.Summary = fmt.Sprintf("%s not linearizable: %s; %s", plural(len(data.Violating), "key"), first.Summary, asked)
	case v.Validity == Unknown:
		v.Reason = v.Parts[0].Reason
		v.Summary = fmt.Sprintf("%s undecided (%s); %s", plural(len(data.Undecided), "key"), v.Reason, asked)
	default:
		v.Summary = "every key linearizable: " + asked
	}
}

func (d *LinearizableData) add(k register, r keyResult) {
	d.Keys++
	d.Operations += len(k.spans)
	d.Acknowledged += k.acknowledged()
	d.CrashedWrites += k.crashedWrites
	d.Failed += k.failed
	d.UnknownReads += k.unknownReads
	d.LongestKey = max(d.LongestKey, len(k.spans))
	d.MostOpen = max(d.MostOpen, k.maxOpen)
	switch r.porcupine {
	case notAsked:
		d.PorcupineNever++
	case timedOut:
		d.PorcupineTime++
	default:
		d.PorcupineOK++
	}
	switch {
	case r.fast != legal && r.fast != illegal:
		d.Undecidable++
	case r.path == byZones:
		d.ZonesJudged++
	case r.path == byChains:
		d.ChainsJudged++
	default:
		d.WindowJudged++
	}
}

func fastSummary(d LinearizableData) string {
	var parts []string
	for _, p := range []struct {
		n    int
		name string
	}{{d.ZonesJudged, "the zones"}, {d.ChainsJudged, "the chains"}, {d.WindowJudged, "the window search"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.n))
		}
	}
	if len(parts) == 0 {
		return "nothing else any"
	}
	return strings.Join(parts, ", ")
}

// judgeAll judges the keys in parallel; results stand where their keys stand.
func (c linearizable) judgeAll(ctx context.Context, h history.History, keys []register) []keyResult {
	results := make([]keyResult, len(keys))
	deadline := time.Now().Add(c.opts.TotalTime)
	next := make(chan int)
	var wg sync.WaitGroup
	workers := c.opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for range min(workers, max(len(keys), 1)) {
		wg.Go(func() {
			f := &fastPaths{}
			for i := range next {
				results[i] = c.judge(h, keys[i], f, deadline)
			}
		})
	}
	for i := range keys {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// fastPaths are the exact algorithms with their buffers.
type fastPaths struct {
	zones  zoner
	chains chainer
}

// judge takes the first algorithm that applies.
func (f *fastPaths) judge(k register, limits windowLimits) (r keyResult) {
	if k.froms == nil {
		r.path = byZones
		r.zones = f.zones.judge(k.spans, len(k.values))
		r.fast = r.zones.answer()
		if r.fast == illegal && !verifyZones(k.spans, r.zones) {
			r.fast, r.fastReason = legal, "a proof that does not hold" // whatever Porcupine says, they differ or are both wrong
		}
	} else {
		r.path = byChains
		r.fast = f.chains.judge(k.ops(), len(k.values)).answer()
	}
	if r.fast == notAsked {
		r.path = byWindow
		a := searchRegister(k.ops(), len(k.values), limits)
		r.fast, r.fastReason = a.answer, a.reason
	}
	return r
}

// judge asks both algorithms about one key. Porcupine is not asked when it is
// predicted not to fit: "not asked" is not "agreed".
func (c linearizable) judge(h history.History, k register, f *fastPaths, deadline time.Time) keyResult {
	limit := func() time.Duration {
		left := c.opts.KeyTime
		if c.opts.TotalTime > 0 && (left <= 0 || time.Until(deadline) < left) {
			left = max(time.Until(deadline), 1)
		}
		return left
	}
	r := f.judge(k, windowLimitsFor(limit(), c.opts.Memory))
	if c.opts.TotalTime > 0 && time.Now().After(deadline) {
		r.reason = ReasonTime
		return r
	}
	if need := porcupineMemory(len(k.spans)); c.opts.Memory > 0 && need > c.opts.Memory {
		r.reason = ReasonMemory
		return r
	}
	r.porcupine, r.reason = askPorcupine(registerModel(k.values), k.operations(h), porcupineLimits{limit(), c.opts.Memory})
	return r
}

// verdict turns the two answers into one.
func (c linearizable) verdict(ctx context.Context, h history.History, t *timeline, k register, r keyResult) Verdict {
	fast, p := r.fast, r.porcupine
	v := Verdict{Checker: "linearizable", Subject: k.key}
	decided := func(a answer) bool { return a == legal || a == illegal }
	if decided(fast) && decided(p) && fast != p || r.zones.answer() == illegal && fast != illegal {
		v.Class, v.Validity, v.Reason = Harness, Invalid, ReasonDisagree
		v.Summary = fmt.Sprintf("key %s: the %s say %v, Porcupine %v", k.key, r.path, fast, p)
		v.Story = fmt.Sprintf("%s: %v %+v %s, values %v; Porcupine: %v %s; %s", r.path, fast, r.zones, r.fastReason, k.named(r.zones), p, r.reason,
			plural(len(k.spans), "operation"))
		v.Evidence = k.lines(h, allSpans(len(k.spans))...)
		return v
	}
	switch {
	case fast == illegal && r.path == byZones:
		return c.explain(h, t, k, r.zones)
	case fast == illegal || p == illegal:
		return c.explainSearch(ctx, h, t, k, r)
	case fast == legal || p == legal:
		return v
	}
	v.Validity, v.Reason = Unknown, r.fastReason
	v.Summary = fmt.Sprintf("key %s: the %s was %v (%s), Porcupine %v (%s); %s, %d open at once",
		k.key, r.path, fast, r.fastReason, p, r.reason, plural(len(k.spans), "operation"), k.maxOpen)
	return v
}

func (r register) named(z zoneAnswer) []string {
	var names []string
	for _, v := range []int32{z.a, z.b} {
		if int(v) >= 0 && int(v) < len(r.values) {
			names = append(names, string(r.values[v]))
		}
	}
	return names
}

func allSpans(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// lines gives the history indices of the spans' invocations and completions,
// sorted, each once.
func (r register) lines(h history.History, spans ...int) []int {
	seen := map[int]bool{}
	for _, s := range spans {
		if s < 0 {
			continue
		}
		i := int(r.invoke[s])
		seen[i] = true
		if j, ok := h.Partner(i); ok {
			seen[j] = true
		}
	}
	return sortedKeys(seen)
}

// describe tells one operation with its lines: who did what, and who answered.
func (r register) describe(h history.History, s int) string {
	ops := h.Ops()
	i := int(r.invoke[s])
	var text strings.Builder
	verb := "read"
	switch {
	case s < len(r.froms) && r.froms[s] != noFrom:
		verb = fmt.Sprintf("set %s to", r.values[r.froms[s]])
	case r.spans[s].Write:
		verb = "wrote"
	}
	fmt.Fprintf(&text, "process %d %s %s", ops[i].Process, verb, r.values[r.spans[s].Value])
	j, done := h.Partner(i)
	switch {
	case !done:
		fmt.Fprintf(&text, " (line %d, from %s, no answer)", i+1, seconds(ops[i].Time))
	case ops[j].Type == history.Info:
		fmt.Fprintf(&text, " (lines %d and %d, from %s, outcome unknown)", i+1, j+1, seconds(ops[i].Time))
	default:
		fmt.Fprintf(&text, " (lines %d and %d, %s to %s", i+1, j+1, seconds(ops[i].Time), seconds(ops[j].Time))
		if ops[j].Node != "" {
			fmt.Fprintf(&text, ", answered by %s", ops[j].Node)
		}
		text.WriteString(")")
	}
	return text.String()
}
