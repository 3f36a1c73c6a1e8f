package checker

// Model is the sequential specification of an object: a pure state machine. Step
// must not change the state that it is given; it says whether the operation
// with this input can have this output now, and gives the next state.
type Model[S, I, O any] struct {
	Init  func() S
	Step  func(state S, in I, out O) (bool, S)
	Equal func(a, b S) bool
	// Hash must be equal for equal states.
	Hash func(state S) uint64
	// ReadOnly tells operations that never change any state, with this output.
	// A write of the value that is there already is not one.
	ReadOnly func(in I, out O) bool
	// Describe and State name an operation and a state in pictures.
	Describe func(in I, out O) string
	State    func(state S) string
}

// Operation is an interval with what went in and what came out. Call and Return
// are positions in real-time order; an operation precedes another if its Return
// is below the other's Call. A crashed operation returns at Never.
type Operation[I, O any] struct {
	Client int
	Input  I
	Output O
	Call   int64
	Return int64
}

// Never is the Return of an operation that has not been known to end.
const Never = int64(1) << 60
