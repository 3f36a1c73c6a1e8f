package report

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// span is one coloured stretch of a lane. Kind names its colour and pattern.
type span struct {
	From, To time.Duration
	Kind     string // serving, elected, zombie, leader, none, connected, …
	Label    string
}

// lane is one row of the swim lanes.
type lane struct {
	Group, Name string
	Spans       []span
}

// laneBuilder turns state changes into spans: each change ends the one before.
type laneBuilder struct {
	order []string
	lanes map[string]*lane
	end   time.Duration
}

func newLaneBuilder(end time.Duration) *laneBuilder {
	return &laneBuilder{lanes: map[string]*lane{}, end: end}
}

// set begins a new span at a time; kind "" only ends the last one.
func (b *laneBuilder) set(group, name string, at time.Duration, kind, label string) {
	key := group + "\x00" + name
	l := b.lanes[key]
	if l == nil {
		l = &lane{Group: group, Name: name}
		b.lanes[key] = l
		b.order = append(b.order, key)
	}
	if n := len(l.Spans); n > 0 && l.Spans[n-1].To == b.end {
		if l.Spans[n-1].Kind == kind && l.Spans[n-1].Label == label {
			return
		}
		l.Spans[n-1].To = at
	}
	if kind != "" {
		l.Spans = append(l.Spans, span{From: at, To: b.end, Kind: kind, Label: label})
	}
}

// list returns the lanes by group in the order of groups, then by name.
func (b *laneBuilder) list(groups ...string) []lane {
	rank := map[string]int{}
	for i, g := range groups {
		rank[g] = i
	}
	out := make([]lane, 0, len(b.order))
	for _, key := range b.order {
		out = append(out, *b.lanes[key])
	}
	sort.SliceStable(out, func(i, j int) bool {
		if rank[out[i].Group] != rank[out[j].Group] {
			return rank[out[i].Group] < rank[out[j].Group]
		}
		return naturalLess(out[i].Name, out[j].Name)
	})
	return out
}

// naturalLess orders names with numbers in them as people do: 2 before 10.
func naturalLess(a, b string) bool {
	for a != "" && b != "" {
		na, restA := leadingNumber(a)
		nb, restB := leadingNumber(b)
		if na >= 0 && nb >= 0 {
			if na != nb {
				return na < nb
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

func leadingNumber(s string) (int, string) {
	i := 0
	for i < len(s) && i < 9 && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(s[:i])
	if err != nil {
		return -1, s
	}
	return n, s[i:]
}

// The groups of lanes, in the order of the page.
const (
	groupFaults       = "faults"
	groupNodes        = "processes"
	groupCoordinators = "coordinators"
	groupSessions     = "ZooKeeper sessions"
	groupBuckets      = "bucket leaders"
	groupISR          = "in-sync replicas"
)

// buildLanes reads the observer events of a history into swim lanes.
func buildLanes(h history.History, end time.Duration, faults []band) []lane {
	b := newLaneBuilder(end)
	for _, f := range faults {
		name := fmt.Sprintf("%s #%d", f.name, f.id)
		b.set(groupFaults, name, f.from, "fault", fmt.Sprintf("%v %s", f.target, f.effect))
		b.set(groupFaults, name, f.to, "", "")
	}
	terms := &termLanes{builder: b}
	advertised := map[string]map[int]int{} // bucket -> server -> leader it names
	for _, op := range h.Ops() {
		if torndown(op) {
			break
		}
		if op.Process != history.Observer {
			continue
		}
		switch op.F {
		case history.KindTerm:
			if e, err := history.Decode[history.Term](op); err == nil {
				terms.add(op.Time, e)
			}
		case history.KindSession:
			if e, err := history.Decode[history.Session](op); err == nil {
				b.set(groupSessions, e.Node, op.Time, sessionKind(e.State), fmt.Sprintf("0x%x %s", uint64(e.ID), e.State))
			}
		case history.KindNode:
			if e, err := history.Decode[history.Node](op); err == nil {
				b.set(groupNodes, e.Node, op.Time, "node-"+e.State, e.State)
				terms.node(op.Time, e)
			}
		case history.KindLAI:
			if e, err := history.Decode[history.LAI](op); err == nil {
				b.set(groupBuckets, e.Bucket+" by ZooKeeper", op.Time, leaderKind(e.Leader), leaderLabel(e.Leader, e.LeaderEpoch))
				b.set(groupISR, e.Bucket, op.Time, fmt.Sprintf("isr-%d", min(len(e.ISR), 5)), fmt.Sprintf("ISR %v, bucket epoch %d", e.ISR, e.BucketEpoch))
			}
		case history.KindRole:
			if e, err := history.Decode[history.Role](op); err == nil {
				addRole(b, op.Time, e)
			}
		case history.KindAdvertised:
			if e, err := history.Decode[history.Advertised](op); err == nil {
				addAdvertised(b, advertised, op.Time, e)
			}
		}
	}
	return b.list(groupFaults, groupNodes, groupCoordinators, groupSessions, groupBuckets, groupISR)
}

func sessionKind(state string) string { return "session-" + state }

func leaderKind(leader int) string {
	if leader < 0 {
		return "none"
	}
	return fmt.Sprintf("server-%d", leader%6)
}

func leaderLabel(leader, epoch int) string {
	if leader < 0 {
		return fmt.Sprintf("no leader, leader epoch %d", epoch)
	}
	return fmt.Sprintf("tablet %d, leader epoch %d", leader, epoch)
}

// addRole draws who would serve a bucket: admitted in full, activating hatched.
func addRole(b *laneBuilder, at time.Duration, e history.Role) {
	name := e.Bucket + " admitted"
	switch e.State {
	case history.RoleAdmitted:
		b.set(groupBuckets, name, at, leaderKind(e.Server), leaderLabel(e.Server, e.LeaderEpoch))
	case history.RoleActivating:
		b.set(groupBuckets, name, at, "activating", fmt.Sprintf("tablet %d activates leader epoch %d", e.Server, e.LeaderEpoch))
	case history.RoleResigned, history.RoleFailed, history.RoleFollowing:
		key := groupBuckets + "\x00" + name
		if l := b.lanes[key]; l != nil && len(l.Spans) > 0 {
			last := l.Spans[len(l.Spans)-1]
			if last.Kind == leaderKind(e.Server) || last.Kind == "activating" {
				b.set(groupBuckets, name, at, "none", fmt.Sprintf("tablet %d %s", e.Server, e.State))
			}
		}
	}
}

// addAdvertised draws the leader that most servers name.
func addAdvertised(b *laneBuilder, seen map[string]map[int]int, at time.Duration, e history.Advertised) {
	if seen[e.Bucket] == nil {
		seen[e.Bucket] = map[int]int{}
	}
	seen[e.Bucket][e.By] = e.Leader
	votes := map[int]int{}
	for _, leader := range seen[e.Bucket] {
		votes[leader]++
	}
	best := -1
	leaders := make([]int, 0, len(votes))
	for leader := range votes {
		leaders = append(leaders, leader)
	}
	slices.Sort(leaders)
	for _, leader := range leaders {
		if best < 0 && leader < 0 {
			continue
		}
		if best < 0 || votes[leader] > votes[best] {
			best = leader
		}
	}
	label := "no server names a leader"
	if best >= 0 {
		label = fmt.Sprintf("tablet %d, named by %d of %d servers", best, votes[best], len(seen[e.Bucket]))
	}
	b.set(groupBuckets, e.Bucket+" advertised", at, leaderKind(best), label)
}

// node ends the lane of a coordinator whose process is gone: it believes
// nothing any more.
func (t *termLanes) node(at time.Duration, e history.Node) {
	if e.State != history.NodeDown && e.State != history.NodePanicked {
		return
	}
	if l := t.builder.lanes[groupCoordinators+"\x00"+e.Node]; l != nil {
		t.builder.set(groupCoordinators, e.Node, at, "", "")
	}
	if t.current.Coordinator == e.Node {
		t.current = history.Term{}
	}
}

// termLanes draws coordinators: elected, serving, and zombie from the moment a
// later term began until this one noticed.
type termLanes struct {
	builder *laneBuilder
	current history.Term
}

func (t *termLanes) add(at time.Duration, e history.Term) {
	label := fmt.Sprintf("epoch %d, opened at zxid 0x%x, %s", e.Epoch, uint64(e.Zxid), e.State)
	switch e.State {
	case history.TermElected:
		if t.current.Coordinator != "" && t.current.Coordinator != e.Coordinator {
			t.builder.set(groupCoordinators, t.current.Coordinator, at, "zombie",
				fmt.Sprintf("believes it leads with epoch %d; epoch %d began elsewhere", t.current.Epoch, e.Epoch))
		}
		t.current = e
		t.builder.set(groupCoordinators, e.Coordinator, at, "elected", label)
	case history.TermServing:
		t.builder.set(groupCoordinators, e.Coordinator, at, "serving", label)
	default:
		t.builder.set(groupCoordinators, e.Coordinator, at, "standby", label)
		if t.current.Coordinator == e.Coordinator && t.current.Zxid == e.Zxid {
			t.current = history.Term{}
		}
	}
}
