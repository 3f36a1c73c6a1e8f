package history

import (
	"encoding/json"
	"iter"
	"math"
	"time"
)

// Forever is the time of a completion that never came.
const Forever = time.Duration(math.MaxInt64)

// none marks a line without a partner: an event, or an invocation that was
// never completed.
const none = -1

// History is a well-formed sequence of operations, in order of Index.
type History struct {
	ops []Op
	// partner holds for every invocation the index of its completion and for
	// every completion that of its invocation.
	partner []int32
}

// Ops returns the operations; the slice must not be changed.
func (h History) Ops() []Op { return h.ops }

// Len is the number of lines.
func (h History) Len() int { return len(h.ops) }

// End is the time of the last line, 0 for an empty history.
func (h History) End() time.Duration {
	if len(h.ops) == 0 {
		return 0
	}
	return h.ops[len(h.ops)-1].Time
}

// Pairs gives every invocation, in order of Index, with its completion; those of
// the nemesis too (see Op.Client). An invocation that was never completed comes
// with an Info of index -1 at Forever. Note that an operation that ended in
// Info may take effect after that, so only Ok and Fail bound it.
func (h History) Pairs() iter.Seq2[Op, Op] {
	return func(yield func(Op, Op) bool) {
		for i, op := range h.ops {
			if op.Type != Invoke {
				continue
			}
			if !yield(op, h.completion(i)) {
				return
			}
		}
	}
}

func (h History) completion(i int) Op {
	if j := h.partner[i]; j != none {
		return h.ops[j]
	}
	op := h.ops[i]
	return Op{Index: none, Time: Forever, Process: op.Process, Type: Info, F: op.F, Error: "no completion"}
}

// Partner gives the index of the other half of the operation at index i, or
// false for an event and for an invocation that was never completed.
func (h History) Partner(i int) (int, bool) {
	if i < 0 || i >= len(h.partner) || h.partner[i] == none {
		return none, false
	}
	return int(h.partner[i]), true
}

// New checks that ops are a history and pairs them up. It refuses, as a
// *LineError: indices with gaps, times below zero or going back, unknown types
// and processes, a nameless function, an event that is not of type Info, a
// completion without an invocation or of another function, a second completion,
// an invocation of a client that has one open or whose last one ended in Info.
// The nemesis may have several invocations open: its completions belong to the
// oldest open one of the same function (and the same "id" in the value, if both
// have one). The slice is kept and must not be changed afterwards.
func New(ops []Op) (History, error) {
	if len(ops) >= math.MaxInt32 {
		return History{}, lineErrorf(math.MaxInt32, ErrIllFormed, "more lines than an index can count")
	}
	p := pairing{ops: ops, partner: make([]int32, len(ops)), far: map[Process]int32{}}
	var last time.Duration
	for i := range ops {
		op := &ops[i]
		if op.Index != i {
			return History{}, lineErrorf(i+1, ErrIllFormed, "index %d where %d is due", op.Index, i)
		}
		if op.Time < 0 {
			return History{}, lineErrorf(i+1, ErrIllFormed, "time %d is below zero", op.Time)
		}
		if op.Time < last {
			return History{}, lineErrorf(i+1, ErrIllFormed, "time %d goes back, the line before has %d", op.Time, last)
		}
		last = op.Time
		p.partner[i] = none
		if err := p.add(op); err != nil {
			return History{}, err
		}
	}
	return History{ops: ops, partner: p.partner}, nil
}

// pairing finds the completion of each invocation.
type pairing struct {
	ops     []Op
	partner []int32
	near    []int32           // by process: 0 free, i+1 open since i, retired after Info
	far     map[Process]int32 // the same for process numbers too high for a table
	nemesis []openFault
}

const retired = math.MaxInt32

type openFault struct {
	index int32
	f     string
	id    string
}

func (p *pairing) add(op *Op) error {
	switch {
	case op.Type > Info:
		return lineErrorf(op.Index+1, ErrIllFormed, "type %d is unknown", uint8(op.Type))
	case op.F == "":
		return lineErrorf(op.Index+1, ErrIllFormed, "the function has no name")
	case op.Process < Observer:
		return lineErrorf(op.Index+1, ErrIllFormed, "process %d is unknown", op.Process)
	case op.Process == Observer:
		if op.Type != Info {
			return lineErrorf(op.Index+1, ErrIllFormed, "an observer's line has type %v, want info", op.Type)
		}
		return nil
	case op.Process == Nemesis:
		return p.addNemesis(op)
	}
	return p.addClient(op)
}

const nearLimit = 1 << 20

func (p *pairing) state(process Process) int32 {
	if process >= nearLimit {
		return p.far[process]
	}
	if int(process) >= len(p.near) {
		p.near = append(p.near, make([]int32, int(process)+64-len(p.near))...)
	}
	return p.near[process]
}

func (p *pairing) set(process Process, state int32) {
	if process >= nearLimit {
		p.far[process] = state
		return
	}
	p.near[process] = state
}

func (p *pairing) addClient(op *Op) error {
	i, state := int32(op.Index), p.state(op.Process)
	if op.Type == Invoke {
		switch state {
		case 0:
			p.set(op.Process, i+1)
			return nil
		case retired:
			return lineErrorf(op.Index+1, ErrIllFormed, "process %d was retired by an info and invokes again", op.Process)
		}
		return lineErrorf(op.Index+1, ErrIllFormed, "process %d invokes while its operation of line %d is open", op.Process, state)
	}
	if state == 0 || state == retired {
		return lineErrorf(op.Index+1, ErrIllFormed, "process %d completes (%v) what it has not invoked, or completed before", op.Process, op.Type)
	}
	return p.complete(op, state-1)
}

func (p *pairing) complete(op *Op, invoke int32) error {
	if f := p.ops[invoke].F; f != op.F {
		return lineErrorf(op.Index+1, ErrIllFormed, "process %d completes %q, but its line %d invoked %q", op.Process, op.F, invoke+1, f)
	}
	p.partner[invoke], p.partner[op.Index] = int32(op.Index), invoke
	if op.Type == Info {
		p.set(op.Process, retired)
	} else {
		p.set(op.Process, 0)
	}
	return nil
}

func (p *pairing) addNemesis(op *Op) error {
	if op.Type == Invoke {
		p.nemesis = append(p.nemesis, openFault{int32(op.Index), op.F, faultID(op.Value)})
		return nil
	}
	id := faultID(op.Value)
	for k, open := range p.nemesis {
		if open.f == op.F && (open.id == "" || id == "" || open.id == id) {
			p.partner[open.index], p.partner[op.Index] = int32(op.Index), open.index
			p.nemesis = append(p.nemesis[:k], p.nemesis[k+1:]...)
			return nil
		}
	}
	return lineErrorf(op.Index+1, ErrIllFormed, "the nemesis completes %q, which is not open", op.F)
}

// faultID is the schedule entry that a value of the nemesis names, if any.
func faultID(value json.RawMessage) string {
	var v struct {
		ID json.RawMessage `json:"id"`
	}
	if len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &v) != nil {
		return ""
	}
	return string(v.ID)
}
