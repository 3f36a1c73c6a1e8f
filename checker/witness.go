package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// Witness gives the operations on a key in an order that explains them: indices of
// their invocations, replayed against the register and against real time before
// they are returned. Unknown writes that nobody noticed are left out. The error
// says why there is none; limit bounds the search where values repeat.
func Witness(h history.History, key string, limit time.Duration) ([]int, error) {
	keys, err := registers(h)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.key != key {
			continue
		}
		f := &fastPaths{}
		var order []int32
		if k.froms == nil && f.zones.judge(k.spans, len(k.values)).fault == zonesLegal {
			order = f.zones.witness(k.spans)
		} else if a := searchRegister(k.ops(), len(k.values), windowLimitsFor(limit, 0)); a.answer == legal {
			order = a.witness
		} else {
			return nil, fmt.Errorf("order key %s: the history is %v %s", key, a.answer, a.reason)
		}
		if err := replay(k.ops(), order); err != nil {
			return nil, fmt.Errorf("order key %s: %w", key, err)
		}
		out := make([]int, len(order))
		for i, o := range order {
			out[i] = int(k.invoke[o])
		}
		return out, nil
	}
	return nil, fmt.Errorf("order key %s: the history has no operation on it", key)
}

// witness is the order that the proof of the zones gives: clusters by f + s, in
// each the write first and the reads by call. It follows a legal answer.
func (z *zoner) witness(spans []span) []int32 {
	order := make([]int32, 0, len(spans))
	for i := range spans {
		if !z.zones[spans[i].Value].left() {
			order = append(order, int32(i))
		}
	}
	place := func(i int32) int64 {
		c := &z.zones[spans[i].Value]
		return int64(c.f) + int64(c.s)
	}
	slices.SortStableFunc(order, func(a, b int32) int { // spans are in order of call
		x, y := &spans[a], &spans[b]
		if x.Value != y.Value {
			return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(x.Value, y.Value))
		}
		switch {
		case x.Write:
			return -1
		case y.Write:
			return 1
		}
		return 0
	})
	return order
}

// replay is the independent check of a witness: every finished operation is in it
// once, each step is legal, and nothing stands behind an operation that was called
// after it had returned.
func replay(ops []regOp, order []int32) error {
	model, state := registerModel(nil), initial
	placed := make([]bool, len(ops))
	latest := noCall
	for _, o := range order {
		op := ops[o]
		if placed[o] {
			return fmt.Errorf("operation %d stands twice in the order", o)
		}
		placed[o] = true
		if op.Ret < latest {
			return fmt.Errorf("operation %d stands behind one that was called after it had returned", o)
		}
		latest = max(latest, op.Call)
		ok := false
		if ok, state = model.Step(state, op, struct{}{}); !ok {
			return fmt.Errorf("operation %d is not legal at its place", o)
		}
	}
	for i := range ops {
		if !ops[i].crashed() && !placed[i] {
			return fmt.Errorf("operation %d has no place in the order", i)
		}
	}
	return nil
}
