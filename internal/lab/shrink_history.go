package lab

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/history"
)

// unit is what is removed from a history at once.
type unit struct {
	group string // units of one group stand together
	lines []int
	needs int // the unit without which this one would lie, or -1
}

// history looks for the smallest part of a run's history that its checker still
// rejects for the same reason. For linearizability every part that is tried is
// an honest one: reads go alone and writes with all reads of their value, which
// leaves a linearizable history linearizable. Other checkers judge events, of
// which only those of whole buckets go.
func (s *shrinker) history(f failing) history.History {
	whole := f.outcome.input.History
	judge := s.judge(f)
	if judge == nil {
		return whole
	}
	always, units := units(whole, s.target.Checker == "linearizable")
	all := make([]int, len(units))
	for i := range all {
		all[i] = i
	}
	smallest := whole
	s.ddmin(all, func(keep []int) bool {
		part, ok := part(whole, always, units, keep)
		if !ok || !judge(part) {
			return false
		}
		if part.Len() < smallest.Len() {
			smallest = part
		}
		return true
	})
	return smallest
}

// judge asks the checker of the finding alone; nil if it is none of histories.
func (s *shrinker) judge(f failing) func(h history.History) bool {
	checkers, err := checkersOf(f.outcome.plan, history.Report{})
	if err != nil {
		return nil
	}
	for _, c := range checkers {
		if c.Name() == s.target.Checker {
			return func(h history.History) bool {
				s.checks++
				return slices.Contains(checker.Fingerprints(checker.CheckAll(s.ctx, h, c)), s.target)
			}
		}
	}
	return nil
}

// ddmin is delta debugging: it removes ever smaller parts of the list as long as
// what is left still fails, and gives what is left.
func (s *shrinker) ddmin(list []int, fails func(keep []int) bool) []int {
	for parts := 2; len(list) > 1 && !s.over(); {
		parts = min(parts, len(list))
		removed := false
		for i := 0; i < parts && !s.over(); {
			rest := slices.Concat(list[:i*len(list)/parts], list[(i+1)*len(list)/parts:])
			if fails(rest) {
				list, parts, removed = rest, min(max(parts-1, 1), len(rest)), true
				continue // the next part has moved to this place
			}
			i++
		}
		switch {
		case parts >= len(list) && !removed:
			return list
		case !removed || parts < 2:
			parts = max(parts, 1) * 2
		}
	}
	return list
}

// units cuts a history up: the lines that always stay, and what may go.
func units(h history.History, register bool) (always []int, out []unit) {
	events := map[string]int{} // places of the groups of events
	writes := map[string]int{} // places of writes, by key and value
	reads := map[int]string{}  // what a unit read
	add := func(u unit) { out = append(out, u) }
	for i, op := range h.Ops() {
		switch {
		case op.Process >= 0 && op.Type == history.Invoke:
			u := unit{group: "op", lines: []int{i}, needs: -1}
			end, completed := h.Partner(i)
			if completed {
				u.lines = append(u.lines, end)
			}
			if kv, err := history.KeyValueOf(op); register && err == nil && kv.Key != "" {
				u.group = "key " + kv.Key
				if op.F == "write" {
					writes[kv.Key+"\x00"+string(kv.Value)] = len(out)
				} else if completed && h.Ops()[end].Type == history.Ok {
					if got, err := history.KeyValueOf(h.Ops()[end]); err == nil {
						reads[len(out)] = got.Key + "\x00" + string(got.Value)
					}
				}
			}
			add(u)
		case op.Process >= 0:
		default:
			group, may := eventGroup(op, register)
			if !may {
				always = append(always, i)
				continue
			}
			place, known := events[group]
			if !known {
				place = len(out)
				events[group] = place
				add(unit{group: group, needs: -1})
			}
			out[place].lines = append(out[place].lines, i)
		}
	}
	for place := range out {
		if value, isRead := reads[place]; isRead {
			if write, known := writes[value]; known {
				out[place].needs = write
			}
		}
	}
	return always, inGroups(out)
}

// inGroups orders units by their groups, so that a part of the list is a part of
// the story; what they need is renumbered.
func inGroups(in []unit) []unit {
	order := make([]int, len(in))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(in[a].group, in[b].group) })
	place := make([]int, len(in))
	for to, from := range order {
		place[from] = to
	}
	out := make([]unit, len(in))
	for to, from := range order {
		out[to] = in[from]
		if out[to].needs >= 0 {
			out[to].needs = place[out[to].needs]
		}
	}
	return out
}

// eventGroup tells what an event may go with. What the cluster as a whole did
// stays: who was in office, who was up, which faults were in force.
func eventGroup(op history.Op, register bool) (group string, may bool) {
	if op.Process != history.Observer {
		return "", false
	}
	switch op.F {
	case history.KindFault, history.KindPhase, history.KindTerm, history.KindNode, history.KindConverged:
		return "", false
	}
	var about struct {
		Bucket string `json:"bucket"`
	}
	_ = json.Unmarshal(op.Value, &about) // an event without a bucket has none
	switch {
	case about.Bucket != "" && register:
		return "event " + about.Bucket + " " + op.F, true
	case about.Bucket != "":
		return "event " + about.Bucket, true
	case register:
		return "event " + op.F, true
	}
	return "", false
}

// part is the history of some units and of the lines that always stay.
func part(h history.History, always []int, units []unit, keep []int) (history.History, bool) {
	kept := make([]bool, len(units))
	for _, i := range keep {
		kept[i] = true
	}
	lines := slices.Clone(always)
	for i, u := range units {
		if kept[i] && (u.needs < 0 || kept[u.needs]) {
			lines = append(lines, u.lines...)
		}
	}
	slices.Sort(lines)
	ops := make([]history.Op, len(lines))
	for i, line := range lines {
		ops[i] = h.Ops()[line]
		ops[i].Index = i
	}
	part, err := history.New(ops)
	return part, err == nil
}
