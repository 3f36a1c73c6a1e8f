package checker

import (
	"bytes"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// This file is all that knows Porcupine: its untyped operations stay behind
// Model, and its answers become our words.

// answer is what a search says of one partition.
type answer uint8

const (
	notAsked answer = iota // the search would not have fitted the limits
	legal
	illegal
	timedOut
)

// String is the word used in data and summaries.
func (a answer) String() string {
	return [...]string{"not asked", "legal", "illegal", "timed out"}[a]
}

func (m Model[S, I, O]) porcupine() porcupine.Model {
	// A conversion that fails is a mistake in this file, and panics.
	p := porcupine.Model{
		Init: func() any { return m.Init() },
		Step: func(state, in, out any) (bool, any) {
			return m.Step(state.(S), in.(I), out.(O))
		},
	}
	if m.Equal != nil {
		p.Equal = func(a, b any) bool { return m.Equal(a.(S), b.(S)) }
	}
	if m.Hash != nil {
		p.Hash = func(state any) uint64 { return m.Hash(state.(S)) }
	}
	if m.Describe != nil {
		p.DescribeOperation = func(in, out any) string { return m.Describe(in.(I), out.(O)) }
	}
	if m.State != nil {
		p.DescribeState = func(state any) string { return m.State(state.(S)) }
	}
	return p
}

func porcupineOps[I, O any](ops []Operation[I, O]) []porcupine.Operation {
	out := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		out[i] = porcupine.Operation{ClientId: op.Client, Input: op.Input, Output: op.Output, Call: op.Call, Return: op.Return}
	}
	return out
}

// porcupineStep is the least that Porcupine keeps of an accepted step, beside an
// n-bit set: the entry of its memory and a share of the tables.
const porcupineStep = 160

// porcupineMemory predicts the least that Porcupine will keep for a partition
// of n operations: it clones an n-bit set for every step.
func porcupineMemory(n int) int64 { return int64(n) * (int64(n)/8 + porcupineStep) }

// porcupineLimits bound one partition; zero does not.
type porcupineLimits struct {
	time   time.Duration
	memory int64 // bytes
}

// askPorcupine judges one partition. Its memory is kept by account: every
// accepted step is taken to stay, and when they come to more than the limit no
// further one is accepted, so that the search folds up. The reason says why there
// is no answer.
func askPorcupine[S, I, O any](m Model[S, I, O], ops []Operation[I, O], limits porcupineLimits) (answer, string) {
	model := m.porcupine()
	exhausted := false
	if limits.memory > 0 {
		left := limits.memory / (int64(len(ops))/8 + porcupineStep)
		step := model.Step
		model.Step = func(state, in, out any) (bool, any) { // one partition: one goroutine
			if exhausted {
				return false, state
			}
			ok, next := step(state, in, out)
			if ok {
				left--
				exhausted = left < 0
			}
			return ok, next
		}
	}
	result := porcupine.CheckOperationsTimeout(model, porcupineOps(ops), limits.time)
	switch {
	case result == porcupine.Ok: // an order was found, however little was left
		return legal, ""
	case exhausted:
		return timedOut, ReasonMemory
	case result == porcupine.Illegal:
		return illegal, ""
	}
	return timedOut, ReasonTime
}

// porcupinePicture renders Porcupine's own page of a partition: one HTML file.
func porcupinePicture[S, I, O any](m Model[S, I, O], ops []Operation[I, O], limit time.Duration) ([]byte, error) {
	model := m.porcupine()
	_, info := porcupine.CheckOperationsVerbose(model, porcupineOps(ops), limit)
	var page bytes.Buffer
	if err := porcupine.Visualize(model, info, &page); err != nil {
		return nil, fmt.Errorf("draw history: %w", err)
	}
	return page.Bytes(), nil
}
