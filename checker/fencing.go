package checker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// FencingData is the Data of the fencing checker. Times are nanoseconds since
// the start of the run.
type FencingData struct {
	Terms        []TermRow     `json:"terms"`        // in zxid order
	Transactions int           `json:"transactions"` // committed ones of terms, that were judged
	Exempt       int           `json:"exempt"`       // of superseded terms, but only their own clean-up
	Refused      int           `json:"refused"`      // of superseded terms, refused by ZooKeeper: fencing at work
	Unknown      int           `json:"unknown"`      // of superseded terms, outcome unknown
	Obeyed       int           `json:"obeyed"`       // acts of tablets that were judged
	ZooKeeper    []FencedWrite `json:"zookeeper"`    // violations
	Tablets      []FencedOrder `json:"tablets"`      // violations
	Clients      []FencedReply `json:"clients"`      // violations
	Allowed      []OldOrder    `json:"allowed"`      // obedience of tablets that had not heard of the later term
}

// TermRow is one term. Until is where it was fenced or resigned, else the end.
type TermRow struct {
	Coordinator string `json:"coordinator"`
	Zxid        int64  `json:"zxid"`
	Session     int64  `json:"session"`
	Epoch       int64  `json:"epoch"`
	At          int64  `json:"at"`
	Until       int64  `json:"until"`
	State       string `json:"state"`
	Reason      string `json:"reason,omitempty"`
}

// FencedWrite is a transaction of an old term that ZooKeeper took.
type FencedWrite struct {
	Old   TermRow  `json:"old"`
	New   TermRow  `json:"new"`
	Zxid  int64    `json:"zxid"`
	Op    string   `json:"op"`
	Paths []string `json:"paths"`
	Guard string   `json:"guard,omitempty"`
	Line  int      `json:"line"` // index of the event
}

// FencedOrder is an order of an old term that a tablet obeyed after it had
// processed one of a later term.
type FencedOrder struct {
	Server int     `json:"server"`
	API    string  `json:"api"`
	Bucket string  `json:"bucket,omitempty"`
	Old    TermRow `json:"old"`
	New    TermRow `json:"new"`
	Line   int     `json:"line"`
	NewAt  int     `json:"new_line"` // where it processed the later one
}

// FencedReply is an operation acknowledged to a client by an old term.
type FencedReply struct {
	Line int    `json:"line"` // index of the completion
	F    string `json:"f"`
	Zxid int64  `json:"zxid"` // its transaction
}

// OldOrder counts what a tablet obeyed of a superseded term before it had heard
// of the later one. Longest is the time since the later term began.
type OldOrder struct {
	Server      int    `json:"server"`
	Coordinator string `json:"coordinator"`
	TermZxid    int64  `json:"term_zxid"`
	LaterZxid   int64  `json:"later_zxid"`
	Count       int    `json:"count"`
	Longest     int64  `json:"longest"`
}

type fencing struct{}

// NewFencing checks that no coordinator's term has an effect after a later one
// took over (section 5 of the protocol, "Fencing"): in ZooKeeper by the order of
// zxids (events txn), in tablets by what they had processed before, restarts
// included (events obeyed), and towards clients by the transaction behind an
// acknowledged operation. Without any term the answer is Unknown. Contract: the
// observer's events read well. Data: FencingData.
func NewFencing() Checker { return fencing{} }

func (fencing) Name() string { return "fencing" }

// maxFencingParts bounds the parts of a verdict; Data holds all.
const maxFencingParts = 20

func (c fencing) Check(_ context.Context, h history.History) (Verdict, error) {
	ts, err := newTerms(h)
	if err != nil {
		return Verdict{}, err
	}
	t, err := newTimeline(h)
	if err != nil {
		return Verdict{}, err
	}
	data := FencingData{Terms: []TermRow{}, ZooKeeper: []FencedWrite{}, Tablets: []FencedOrder{}, Clients: []FencedReply{}, Allowed: []OldOrder{}}
	for _, x := range ts {
		data.Terms = append(data.Terms, x.row())
	}
	v := Verdict{Checker: c.Name()}
	parts, err := c.zookeeper(h, t, ts, &data)
	if err != nil {
		return Verdict{}, err
	}
	v.Parts = append(v.Parts, parts...)
	parts, err = c.tablets(h, t, ts, &data)
	if err != nil {
		return Verdict{}, err
	}
	v.Parts = append(v.Parts, parts...)
	slices.SortStableFunc(v.Parts, func(a, b Verdict) int { return cmp.Compare(a.At, b.At) })
	if len(v.Parts) > maxFencingParts {
		v.Parts = v.Parts[:maxFencingParts]
	}
	c.conclude(&v, data)
	return withData(v, data)
}

func (t term) row() TermRow {
	return TermRow{t.Coordinator, t.Zxid, t.Session, t.Epoch, int64(t.From), int64(t.To), t.State, t.Reason}
}

func (fencing) conclude(v *Verdict, data FencingData) {
	allowed, longest := 0, int64(0)
	for _, a := range data.Allowed {
		allowed += a.Count
		longest = max(longest, a.Longest)
	}
	counts := fmt.Sprintf("%s, %s and %s judged; of superseded terms ZooKeeper refused %s, and %s obeyed by tablets that had not heard of the later term, for up to %v",
		plural(len(data.Terms), "term"), plural(data.Transactions, "transaction"), plural(data.Obeyed, "order"), plural(data.Refused, "transaction"), was(allowed, "order"), time.Duration(longest).Round(time.Millisecond))
	switch {
	case len(data.Terms) == 0:
		v.Validity, v.Reason, v.Summary = Unknown, ReasonVacuous, "no coordinator was ever elected"
	case len(v.Parts) > 0:
		first := v.Parts[0]
		v.Validity, v.At, v.Story, v.Subject, v.Evidence = Invalid, first.At, first.Story, first.Subject, first.Evidence
		v.Summary = fmt.Sprintf("an old term acted after a later one: %s in ZooKeeper, %d in tablets, %d towards clients; first %s; %s",
			plural(len(data.ZooKeeper), "time"), len(data.Tablets), len(data.Clients), first.Summary, counts)
	default:
		v.Summary = "no effect of an old term after a later one; " + counts
	}
}

func was(n int, word string) string {
	if n == 1 {
		return "1 " + word + " was"
	}
	return plural(n, word) + " were"
}

// zookeeper judges transactions by the order that ZooKeeper itself gave them.
func (c fencing) zookeeper(h history.History, t *timeline, ts terms, data *FencingData) ([]Verdict, error) {
	txns, err := history.Events[history.Txn](h)
	if err != nil {
		return nil, err
	}
	var parts []Verdict
	for _, e := range txns {
		txn := e.Event
		if txn.Error != "" || txn.Zxid <= 0 {
			c.refused(ts, e, data)
			continue
		}
		i, ok := ts.of(txn.Node, txn.Session, txn.Zxid)
		if !ok {
			continue
		}
		data.Transactions++
		newer, superseded := ts.later(i, txn.Zxid)
		if !superseded {
			continue
		}
		if txn.Ephemeral || txn.Op == "closeSession" || takesEpoch(txn) {
			data.Exempt++
			continue
		}
		data.ZooKeeper = append(data.ZooKeeper, FencedWrite{ts[i].row(), newer.row(), txn.Zxid, txn.Op, txn.Paths, txn.Guard, e.Op.Index})
		parts = append(parts, c.write(h, t, ts[i], newer, e, data))
	}
	return parts, nil
}

// takesEpoch says that the transaction takes the next coordinator epoch. It opens
// a term, and belongs to no earlier one of its process: if its answer is lost the
// epoch is claimed by nobody, and the process takes another.
func takesEpoch(txn history.Txn) bool {
	return txn.Op == "set" && len(txn.Paths) == 1 && strings.HasSuffix(txn.Paths[0], "/coordinators/epoch")
}

// refused counts what old terms tried in vain, and what nobody knows.
func (fencing) refused(ts terms, e history.Record[history.Txn], data *FencingData) {
	for _, x := range slices.Backward(ts) {
		if x.Session != e.Event.Session {
			continue
		}
		if _, superseded := ts.supersededAt(x.Zxid, e.Op.Time); superseded {
			if e.Event.Error == "unknown" {
				data.Unknown++
			} else {
				data.Refused++
			}
		}
		return
	}
}

func (c fencing) write(h history.History, t *timeline, old, newer term, e history.Record[history.Txn], data *FencingData) Verdict {
	txn := e.Event
	path := strings.Join(txn.Paths, ", ")
	guard := "without any guard"
	if txn.Guard != "" {
		guard = "guarded by " + txn.Guard
	}
	session := ""
	if txn.Session != old.Session {
		session = fmt.Sprintf(" from a later session 0x%x of the same process", uint64(txn.Session))
	}
	v := Verdict{
		Checker: c.Name(), Validity: Invalid, Subject: path, At: e.Op.Time,
		Evidence: lines(old.Line, newer.Line, e.Op.Index),
		Summary:  fmt.Sprintf("%s wrote %s at zxid %d, after zxid %d", old.Coordinator, path, txn.Zxid, newer.Zxid),
	}
	v.Story = fmt.Sprintf("%s: %s of %s committed at zxid %d (line %d, %s)%s, %s, although %s had begun at zxid %d (line %d). %s.",
		upper(old.String()), txn.Op, path, txn.Zxid, e.Op.Index+1, seconds(e.Op.Time), session, guard, newer, newer.Zxid, newer.Line+1,
		upper(t.inForce(newer.From, e.Op.Time)))
	if len(data.ZooKeeper) > maxFencingParts {
		return v // the search below is too dear for more than are shown
	}
	if line, f, ok := acknowledgedBy(h, e); ok {
		data.Clients = append(data.Clients, FencedReply{line, f, txn.Zxid})
		v.Evidence = append(v.Evidence, line)
		v.Story += fmt.Sprintf(" It was acknowledged to a client as %s (line %d).", f, line+1)
	}
	return v
}

// acknowledgedBy finds the client operation that rests on a transaction: one
// that this coordinator answered with Ok, that was open when the transaction was
// seen, and whose value names an element of its path.
func acknowledgedBy(h history.History, e history.Record[history.Txn]) (line int, f string, ok bool) {
	elements := map[string]bool{}
	for _, path := range e.Event.Paths {
		for element := range strings.SplitSeq(path, "/") {
			elements[element] = element != ""
		}
	}
	ops := h.Ops()
	for j := e.Op.Index + 1; j < len(ops); j++ {
		op := ops[j]
		if !op.Client() || op.Type != history.Ok || op.Node != e.Event.Node {
			continue
		}
		i, paired := h.Partner(j)
		if paired && i < e.Op.Index && names(ops[i].Value, elements) {
			return j, op.F, true
		}
	}
	return 0, "", false
}

// names tells whether a value holds one of the words as a string.
func names(value json.RawMessage, words map[string]bool) bool {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return words[v]
	case map[string]any:
		for _, field := range v { // any will do: order does not matter
			if text, ok := field.(string); ok && words[text] {
				return true
			}
		}
	}
	return false
}

// tablets judges what each tablet did by what it had processed before, restarts
// included: a term that it once heard of stays heard of.
func (c fencing) tablets(h history.History, t *timeline, ts terms, data *FencingData) ([]Verdict, error) {
	events, err := history.Events[history.Obeyed](h)
	if err != nil {
		return nil, err
	}
	var parts []Verdict
	newest := map[int]history.Record[history.Obeyed]{}
	allowed := map[OldOrder]*OldOrder{} // by its first four fields
	for _, e := range events {
		o := e.Event
		if o.TermZxid <= 0 {
			continue
		}
		data.Obeyed++
		seen, any := newest[o.Server]
		switch {
		case !any || o.TermZxid >= seen.Event.TermZxid:
			newest[o.Server] = e
			if later, ok := ts.supersededAt(o.TermZxid, e.Op.Time); ok {
				key := OldOrder{Server: o.Server, Coordinator: o.Coordinator, TermZxid: o.TermZxid, LaterZxid: later.Zxid}
				if allowed[key] == nil {
					row := key
					allowed[key] = &row
				}
				allowed[key].Count++
				allowed[key].Longest = max(allowed[key].Longest, int64(e.Op.Time-later.From))
			}
		default:
			part, order := c.order(t, ts, seen, e)
			data.Tablets = append(data.Tablets, order)
			parts = append(parts, part)
		}
	}
	for _, row := range allowed {
		data.Allowed = append(data.Allowed, *row)
	}
	slices.SortFunc(data.Allowed, func(a, b OldOrder) int {
		return cmp.Or(cmp.Compare(a.TermZxid, b.TermZxid), cmp.Compare(a.Server, b.Server), cmp.Compare(a.LaterZxid, b.LaterZxid))
	})
	return parts, nil
}

func (c fencing) order(t *timeline, ts terms, seen, e history.Record[history.Obeyed]) (Verdict, FencedOrder) {
	o := e.Event
	old := ts.named(o.Coordinator, o.TermZxid)
	newer := ts.named(seen.Event.Coordinator, seen.Event.TermZxid)
	old.Epoch, newer.Epoch = o.Epoch, seen.Event.Epoch // what they claimed to this tablet
	about := ""
	if o.Bucket != "" {
		about = " about " + o.Bucket
	}
	v := Verdict{
		Checker: c.Name(), Validity: Invalid, Subject: cmp.Or(o.Bucket, fmt.Sprintf("tablet-%d", o.Server)), At: e.Op.Time,
		Evidence: lines(old.Line, newer.Line, seen.Op.Index, e.Op.Index),
		Summary:  fmt.Sprintf("tablet %d obeyed %s's %s of zxid %d after one of zxid %d", o.Server, o.Coordinator, o.API, o.TermZxid, newer.Zxid),
	}
	v.Story = fmt.Sprintf("Tablet %d obeyed %s%s (line %d, %s) of %s, although it had processed %s (line %d, %s) of %s. %s.",
		o.Server, o.API, about, e.Op.Index+1, seconds(e.Op.Time), old, seen.Event.API, seen.Op.Index+1, seconds(seen.Op.Time), newer,
		upper(t.inForce(seen.Op.Time, e.Op.Time)))
	return v, FencedOrder{o.Server, o.API, o.Bucket, old.row(), newer.row(), e.Op.Index, seen.Op.Index}
}

// lines sorts indices, each once, without those that are not there.
func lines(indices ...int) []int {
	slices.Sort(indices)
	indices = slices.Compact(indices)
	for len(indices) > 0 && indices[0] < 0 {
		indices = indices[1:]
	}
	return indices
}
