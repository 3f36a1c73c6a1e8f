package checker

import (
	"cmp"
	"slices"
	"time"
)

// registerSpec is the register with compare-and-set for the window search, with
// a look-ahead: when a value is left, the earliest return of an operation that
// still needs it must come after the call of somebody who can write it again.
type registerSpec struct {
	ops     []regOp
	classes []int32
	done    []bool
	// By value: operations that need it by return, and that write it by call.
	// The pointers stand at or before the first that is not done.
	needs, writes       [][]int32
	needAt, writeAt     []int32
	needRank, writeRank []int32 // by operation: its place in the list
}

// searchRegister judges a register with compare-and-set by the window search.
// Values are numbered 0..values-1.
func searchRegister(ops []regOp, values int, limits windowLimits) windowAnswer {
	ops, values, from := observable(ops, values)
	s := &registerSpec{ops: ops, done: make([]bool, len(ops)), needRank: make([]int32, len(ops)), writeRank: make([]int32, len(ops))}
	s.needs, s.writes = make([][]int32, values), make([][]int32, values)
	s.needAt, s.writeAt = make([]int32, values), make([]int32, values)
	intervals := make([]windowOp, len(ops))
	classes := map[[3]int32]int32{}
	for i, op := range ops {
		intervals[i] = windowOp{op.Call, op.Ret}
		key := [3]int32{int32(op.Kind), op.Value, op.From}
		class, known := classes[key]
		if !known {
			class = int32(len(classes))
			classes[key] = class
		}
		s.classes = append(s.classes, class)
		if op.Kind == opRead {
			s.needs[op.Value] = append(s.needs[op.Value], int32(i))
		}
		if op.Kind == opCAS && !op.crashed() {
			s.needs[op.From] = append(s.needs[op.From], int32(i))
		}
		if op.Kind == opWrite || op.Kind == opCAS {
			s.writes[op.Value] = append(s.writes[op.Value], int32(i))
		}
	}
	for v := range values {
		slices.SortFunc(s.needs[v], func(a, b int32) int { return cmp.Compare(ops[a].Ret, ops[b].Ret) })
		slices.SortFunc(s.writes[v], func(a, b int32) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
		for k, o := range s.needs[v] {
			s.needRank[o] = int32(k)
		}
		for k, o := range s.writes[v] {
			s.writeRank[o] = int32(k)
		}
	}
	a := searchWindow(intervals, initial, s, limits)
	for k, o := range a.witness {
		a.witness[k] = from[o]
	}
	return a
}

func (s *registerSpec) step(state, o int32) (int32, bool) {
	op := &s.ops[o]
	switch op.Kind {
	case opRead:
		return state, op.Value == state
	case opWrite:
		return op.Value, true
	case opFailedCAS:
		return state, op.From != state
	default:
		return op.Value, op.From == state
	}
}

func (s *registerSpec) readOnly(o int32) bool {
	return s.ops[o].Kind == opRead || s.ops[o].Kind == opFailedCAS
}

func (s *registerSpec) class(o int32) int32 { return s.classes[o] }

// helps: it writes what the front operation waits for.
func (s *registerSpec) helps(front, next, state int32) bool {
	op := &s.ops[front]
	switch op.Kind {
	case opRead:
		return next == op.Value
	case opCAS:
		return next == op.From
	case opFailedCAS:
		return next != op.From && state == op.From
	default:
		return false
	}
}

func (s *registerSpec) took(o int32) { s.done[o] = true }

func (s *registerSpec) undid(o int32) {
	s.done[o] = false
	op := &s.ops[o]
	switch op.Kind {
	case opRead:
		s.needAt[op.Value] = min(s.needAt[op.Value], s.needRank[o])
	case opCAS:
		if !op.crashed() {
			s.needAt[op.From] = min(s.needAt[op.From], s.needRank[o])
		}
		s.writeAt[op.Value] = min(s.writeAt[op.Value], s.writeRank[o])
	case opWrite:
		s.writeAt[op.Value] = min(s.writeAt[op.Value], s.writeRank[o])
	case opFailedCAS:
	}
}

func (s *registerSpec) hopeless(v int32) bool {
	needs, at := s.needs[v], s.needAt[v]
	for int(at) < len(needs) && s.done[needs[at]] {
		at++
	}
	s.needAt[v] = at
	if int(at) == len(needs) {
		return false
	}
	deadline := s.ops[needs[at]].Ret
	writes, w := s.writes[v], s.writeAt[v]
	for int(w) < len(writes) && s.done[writes[w]] {
		w++
	}
	s.writeAt[v] = w
	return int(w) == len(writes) || s.ops[writes[w]].Call > deadline
}

// observable takes out crashed operations that nobody can notice, and gives
// those that were noticed a deadline: if a value has one writer in the whole
// history, that writer crashed, and somebody saw the value, it took effect before
// the first who saw it returned. Positions are doubled to make room for that.
//
// From gives the place of each operation in ops.
func observable(ops []regOp, values int) (out []regOp, count int, from []int32) {
	writers, seen := make([]int32, values), make([]int32, values)
	for v := range seen {
		seen[v] = forever
	}
	failed := false
	looked := make([]bool, values)
	for _, op := range ops {
		switch op.Kind {
		case opWrite, opCAS:
			writers[op.Value]++
			if op.Kind == opCAS {
				looked[op.From] = true
				if !op.crashed() {
					seen[op.From] = min(seen[op.From], op.Ret)
				}
			}
		case opRead:
			looked[op.Value] = true
			seen[op.Value] = min(seen[op.Value], op.Ret)
		case opFailedCAS:
			failed, looked[op.From] = true, true
		}
	}
	other := int32(values) // any value that nobody looks for
	out, from = make([]regOp, 0, len(ops)), make([]int32, 0, len(ops))
	for i, op := range ops {
		op.Call *= 2
		if !op.crashed() {
			op.Ret *= 2
			out, from = append(out, op), append(from, int32(i))
			continue
		}
		switch {
		case op.Kind == opRead || op.Kind == opFailedCAS:
			continue
		case !looked[op.Value] && !failed:
			continue
		case !looked[op.Value]:
			op.Value = other
		case op.Value != initial && writers[op.Value] == 1 && seen[op.Value] != forever && 2*seen[op.Value]-1 > op.Call:
			op.Ret = 2*seen[op.Value] - 1
		}
		out, from = append(out, op), append(from, int32(i))
	}
	return out, values + 1, from
}

// windowLimitsFor makes limits that end after d, or never for zero.
func windowLimitsFor(d time.Duration, memory int64) windowLimits {
	l := windowLimits{memory: memory}
	if d > 0 {
		l.deadline = time.Now().Add(d)
	}
	return l
}
