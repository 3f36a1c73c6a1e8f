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

// explain tells a violation that the zones found: the two operations that
// conflict, what each rests on, who led, and which faults were in force.
func (c linearizable) explain(h history.History, t *timeline, k register, z zoneAnswer) Verdict {
	v := Verdict{Checker: "linearizable", Validity: Invalid, Subject: k.key}
	var what, text string
	var spans []int
	switch z.fault {
	case zonesUnwritten:
		what, text, spans = k.unwritten(h, z.a)
		if line, ok := k.aborted[z.a]; ok {
			v.Evidence = append(v.Evidence, int(line))
			if j, ok := h.Partner(int(line)); ok {
				v.Evidence = append(v.Evidence, j)
			}
		}
	case zonesEarly:
		p := proofOf(k.spans, z.a)
		spans = []int{p.first, p.write}
		what = "read from the future"
		text = fmt.Sprintf("%s before its write was called: %s.", k.describe(h, p.first), k.describe(h, p.write))
	default:
		what, text, spans = k.conflict(h, z)
	}
	v.Evidence = append(v.Evidence, k.lines(h, spans...)...)
	c.tell(&v, h, t, k, spans[0], what, text)
	return v
}

// tell writes summary and story around the operation that shows the fault.
func (c linearizable) tell(v *Verdict, h history.History, t *timeline, k register, shown int, what, text string) {
	ops := h.Ops()
	call := ops[k.invoke[shown]].Time
	v.At = call
	if j, ok := h.Partner(int(k.invoke[shown])); ok {
		v.At = ops[j].Time
	}
	v.Summary = fmt.Sprintf("%s on key %s at %s", what, k.key, seconds(v.At))
	story := []string{fmt.Sprintf("%s on key %s: %s", what, k.key, text)}
	if c.opts.Bucket != nil {
		story = append(story, upper(t.leaders(c.opts.Bucket(k.key), call))+".")
	}
	story = append(story, upper(t.inForce(call, v.At))+".")
	v.Story = strings.Join(story, " ")
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// unwritten: a value that no operation can have put there.
func (r register) unwritten(h history.History, value int32) (what, text string, spans []int) {
	p := proofOf(r.spans, value)
	if line, ok := r.aborted[value]; ok {
		return "aborted read", fmt.Sprintf("%s, but the only write of it, line %d, was refused for good.", r.describe(h, p.first), line+1), []int{p.first}
	}
	return "phantom read", fmt.Sprintf("%s, which nobody wrote.", r.describe(h, p.first)), []int{p.first}
}

// conflict: the older value was read after the newer one had taken effect. The
// older cluster's last call is always a read, since the newer one's write was
// called after the older one's. spans[0] is that read.
func (r register) conflict(h history.History, z zoneAnswer) (what, text string, spans []int) {
	older, newer := proofOf(r.spans, z.a), proofOf(r.spans, z.b)
	if r.writeCall(newer) < r.writeCall(older) {
		older, newer = newer, older
	}
	was := "had taken effect before"
	what = "stale read"
	if newer.reads == 0 {
		what = "lost write"
		was = "had been acknowledged before and was never seen"
	}
	text = fmt.Sprintf("%s, although %s %s: %s.", r.describe(h, older.last), r.values[newer.value], was, r.describe(h, newer.first))
	if older.first >= 0 && older.first != older.last {
		text += fmt.Sprintf(" And %s cannot come after it: %s, before %s.", r.values[older.value], r.describe(h, older.first), r.describe(h, newer.last))
	}
	return what, text, []int{older.last, newer.first, older.first, newer.last, older.write, newer.write}
}

func (r register) writeCall(p clusterProof) int32 {
	if p.write < 0 {
		return noCall
	}
	return r.spans[p.write].Call
}

// explainSearch tells a violation that only the search found (values are
// repeated): the shortest prefix that is already wrong, thinned out.
//
// Porcupine is asked about what is left, whatever found it: if it finds an order,
// one of the two is wrong, and it is not the system under test that stands accused.
func (c linearizable) explainSearch(ctx context.Context, h history.History, t *timeline, k register, r keyResult) Verdict {
	v := Verdict{Checker: "linearizable", Validity: Invalid, Subject: k.key}
	small := shrink(ctx, k, c.opts.KeyTime)
	if p, _ := askPorcupine(registerModel(small.values), small.operations(h), porcupineLimits{pictureTime, c.opts.Memory}); p == legal {
		v.Class, v.Reason, v.Evidence = Harness, ReasonDisagree, small.lines(h, allSpans(len(small.spans))...)
		v.Summary = fmt.Sprintf("key %s: the %s say %v, Porcupine finds an order for the %s that are to have none",
			k.key, r.path, r.fast, plural(len(small.spans), "operation"))
		return v
	}
	last, at := 0, int32(-1)
	for i, s := range small.spans {
		if s.Ret != forever && s.Ret > at {
			last, at = i, s.Ret
		}
	}
	v.Evidence = small.lines(h, allSpans(len(small.spans))...)
	var steps []string
	for i := range small.spans {
		steps = append(steps, small.describe(h, i))
	}
	c.tell(&v, h, t, small, last, "no order explains it",
		fmt.Sprintf("these %s have none: %s.", plural(len(steps), "operation"), strings.Join(steps, "; ")))
	return v
}

// shrink finds a small sub-history that is still not linearizable. It takes out
// only what cannot make a good history bad: what comes after the shortest bad
// prefix, reads, and writes whose value nobody reads.
func shrink(ctx context.Context, k register, limit time.Duration) register {
	deadline := time.Now().Add(cmp.Or(limit, pictureTime))
	f := &fastPaths{}
	bad := func(r register) bool {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
		return f.judge(r, windowLimits{deadline: deadline, memory: shrinkMemory}).fast == illegal
	}
	low, high := int32(0), int32(2*len(k.spans)) // prefix(high) is bad
	for low+1 < high {
		if mid := (low + high) / 2; bad(k.prefix(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	small := k.prefix(high)
	if !bad(small) { // a time limit cut the search short
		small = k
	}
	for i, s := range slices.Backward(small.spans) {
		if s.Write && small.needed(s.Value) {
			continue
		}
		if less := small.without(i); bad(less) {
			small = less
		}
	}
	return small
}

// shrinkMemory bounds each search on the way.
const shrinkMemory = 64 << 20

// prefix is what was known before a position: later operations are not there,
// open reads saw nothing, open writes are open.
func (r register) prefix(position int32) register {
	out := r
	out.spans, out.invoke, out.froms = nil, nil, nil
	for i, s := range r.spans {
		if s.Call >= position {
			continue
		}
		if s.Ret >= position {
			if !s.Write {
				continue
			}
			s.Ret = forever
		}
		out.spans = append(out.spans, s)
		out.invoke = append(out.invoke, r.invoke[i])
		if r.froms != nil {
			out.froms = append(out.froms, r.froms[i])
		}
	}
	return out
}

// needed: somebody reads the value, or expects it.
func (r register) needed(value int32) bool {
	return proofOf(r.spans, value).reads > 0 || slices.Contains(r.froms, value)
}

func (r register) without(i int) register {
	out := r
	out.spans = append(append([]span(nil), r.spans[:i]...), r.spans[i+1:]...)
	out.invoke = append(append([]int32(nil), r.invoke[:i]...), r.invoke[i+1:]...)
	if r.froms != nil {
		out.froms = append(append([]int32(nil), r.froms[:i]...), r.froms[i+1:]...)
	}
	return out
}

// pictureTime bounds the search that a picture needs.
const pictureTime = 10 * time.Second

// Picture renders Porcupine's own page (one self-contained HTML file) for the
// operations on one key. Of a key that is not linearizable it shows how far each
// partial order gets. A key whose picture would be too large is drawn from the
// small sub-history that explains its violation.
func Picture(h history.History, key string) ([]byte, error) {
	keys, err := registers(h)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.key != key {
			continue
		}
		const drawable = 400
		if len(k.spans) > drawable && k.froms == nil {
			k = k.around((&zoner{}).judge(k.spans, len(k.values)))
		}
		if len(k.spans) > 4*drawable {
			return nil, fmt.Errorf("draw key %s: %d operations are too many for a picture", key, len(k.spans))
		}
		return porcupinePicture(registerModel(k.values), k.operations(h), pictureTime)
	}
	return nil, fmt.Errorf("draw key %s: the history has no operation on it", key)
}

// around keeps only the operations of the clusters that a proof names.
func (r register) around(z zoneAnswer) register {
	if z.answer() != illegal {
		return r
	}
	out := r
	out.spans, out.invoke = nil, nil
	for i, s := range r.spans {
		if s.Value == z.a || z.fault == zonesConflict && s.Value == z.b {
			out.spans = append(out.spans, s)
			out.invoke = append(out.invoke, r.invoke[i])
		}
	}
	return out
}
