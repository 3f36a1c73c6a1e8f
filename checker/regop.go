package checker

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

// casModel is a register with compare-and-set as Porcupine and the window search
// take it. A compare-and-set of unknown outcome may have done nothing, which a
// search that must place every operation has to be able to say.
func casModel() Model[int32, regOp, struct{}] {
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
