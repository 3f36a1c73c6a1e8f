package checker

import (
	"html"
	"strconv"
)

// opKind is what an operation on a register with compare-and-set does.
type opKind uint8

const (
	opRead opKind = iota
	opWrite
	opCAS       // it succeeded, or its outcome is unknown
	opFailedCAS // it says that From was not there
)

// regOp is an operation on a register with compare-and-set. Positions are as in
// span; From is what a compare-and-set expects, Value what is read or written.
type regOp struct {
	Call, Ret   int32
	Value, From int32
	Kind        opKind
}

// crashed tells an operation whose outcome is unknown.
func (o *regOp) crashed() bool { return o.Ret == forever }

// registerModel is a register with compare-and-set, of numbered values, as
// Porcupine and the window search take it. A compare-and-set of unknown outcome
// may have done nothing, which a search that must place every operation has to be
// able to say. Values names the values in pictures, as far as it goes.
func registerModel(values [][]byte) Model[int32, regOp, struct{}] {
	name := func(v int32) string {
		if int(v) < len(values) {
			return string(values[v])
		}
		return strconv.Itoa(int(v))
	}
	return Model[int32, regOp, struct{}]{
		Init: func() int32 { return initial },
		Step: func(state int32, op regOp, _ struct{}) (bool, int32) {
			switch op.Kind {
			case opRead:
				return op.Value == state, state
			case opWrite:
				return true, op.Value
			case opFailedCAS:
				return op.From != state, state
			default:
				if op.From == state {
					return true, op.Value
				}
				return op.crashed(), state
			}
		},
		Equal: func(a, b int32) bool { return a == b },
		Hash:  func(state int32) uint64 { return uint64(uint32(state)) * 0x9e3779b97f4a7c15 },
		ReadOnly: func(op regOp, _ struct{}) bool {
			return op.Kind == opRead || op.Kind == opFailedCAS
		},
		Describe: func(op regOp, _ struct{}) string { return op.describe(name) },
		// The page that shows states takes them as HTML.
		State: func(state int32) string { return html.EscapeString(name(state)) },
	}
}

func (o regOp) describe(name func(int32) string) string {
	switch o.Kind {
	case opRead:
		return "read " + name(o.Value)
	case opWrite:
		return "write " + name(o.Value)
	case opFailedCAS:
		return "not " + name(o.From)
	default:
		return "cas " + name(o.From) + " to " + name(o.Value)
	}
}

func casOperations(ops []regOp) []Operation[regOp, struct{}] {
	out := make([]Operation[regOp, struct{}], len(ops))
	for i, op := range ops {
		out[i] = Operation[regOp, struct{}]{Client: i, Input: op, Call: int64(op.Call), Return: int64(op.Ret)}
		if op.crashed() {
			out[i].Return = Never
		}
	}
	return out
}
