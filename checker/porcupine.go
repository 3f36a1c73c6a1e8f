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

// porcupineMemory predicts the least that Porcupine will keep for a partition
// of n operations: it clones an n-bit set for every step.
func porcupineMemory(n int) int64 { return int64(n) * int64(n) / 8 }

// askPorcupine judges one partition within a limit of time (0: none).
func askPorcupine[S, I, O any](m Model[S, I, O], ops []Operation[I, O], limit time.Duration) answer {
	switch porcupine.CheckOperationsTimeout(m.porcupine(), porcupineOps(ops), limit) {
	case porcupine.Ok:
		return legal
	case porcupine.Illegal:
		return illegal
	case porcupine.Unknown:
	}
	return timedOut
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
