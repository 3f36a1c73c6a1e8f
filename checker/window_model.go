package checker

// modelSpec lets the window search judge any Model: states are numbered as they
// appear. It is a drop-in for Porcupine; a ReadOnly hint is what makes it fast.
type modelSpec[S, I, O any] struct {
	model   Model[S, I, O]
	ops     []Operation[I, O]
	states  []S
	numbers map[uint64][]int32
	// steps remembers (state, operation) -> next state, refused for a refusal.
	steps map[uint64]int32
}

const refused = int32(-1)

// searchModel judges one partition of a history by the window search.
func searchModel[S, I, O any](m Model[S, I, O], ops []Operation[I, O], limits windowLimits) windowAnswer {
	s := &modelSpec[S, I, O]{model: m, ops: ops, numbers: map[uint64][]int32{}, steps: map[uint64]int32{}}
	intervals := make([]windowOp, len(ops))
	for i, op := range ops {
		intervals[i] = windowOp{int32(op.Call), forever}
		if op.Return != Never {
			intervals[i].Ret = int32(op.Return)
		}
	}
	return searchWindow(intervals, s.number(m.Init()), s, limits)
}

func (s *modelSpec[S, I, O]) number(state S) int32 {
	h := uint64(0)
	if s.model.Hash != nil {
		h = s.model.Hash(state)
	}
	for _, n := range s.numbers[h] {
		if s.model.Equal(s.states[n], state) {
			return n
		}
	}
	n := int32(len(s.states))
	s.states = append(s.states, state)
	s.numbers[h] = append(s.numbers[h], n)
	return n
}

func (s *modelSpec[S, I, O]) step(state, o int32) (int32, bool) {
	key := uint64(uint32(state))<<32 | uint64(uint32(o))
	if next, known := s.steps[key]; known {
		return next, next != refused
	}
	op := &s.ops[o]
	next := refused
	if ok, to := s.model.Step(s.states[state], op.Input, op.Output); ok {
		next = s.number(to)
	}
	s.steps[key] = next
	return next, next != refused
}

func (s *modelSpec[S, I, O]) readOnly(o int32) bool {
	return s.model.ReadOnly != nil && s.model.ReadOnly(s.ops[o].Input, s.ops[o].Output)
}

// Nothing is known of the operations of any model: each is a class of its own.
func (s *modelSpec[S, I, O]) class(o int32) int32 { return o }

func (s *modelSpec[S, I, O]) helps(front, next, _ int32) bool {
	_, ok := s.step(next, front)
	return ok
}

func (s *modelSpec[S, I, O]) took(int32)  {}
func (s *modelSpec[S, I, O]) undid(int32) {}

func (s *modelSpec[S, I, O]) hopeless(int32) bool { return false }
