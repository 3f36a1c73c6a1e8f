package checker

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
)

// recipe draws histories that are linearizable by construction: a closed loop of
// clients, each operation with an effect point inside its interval, applied to
// registers in the order of the effect points. Benchmarks and fuzz tests use it;
// what it draws for a seed must not change, or figures cannot be compared.
type recipe struct {
	N, Clients, Keys int
	Active           int     // 0: all keys at any time; else so many at a time, for 200 operations each
	Values           int     // 0: every write unique on its key
	Read, Write      float64 // shares; the rest is compare-and-set
	Hit              float64 // share of compare-and-set that expects what is there
	Crash            float64 // share of operations of unknown outcome
	Late             float64 // how much later than its call a crashed one may take effect, in mean latencies
	Think            float64
	Seed             uint64
}

// meanLatency is the unit of the recipe's virtual clock.
const meanLatency = 1_000_000

// drawn is an operation of a recipe. Ret is forever if it crashed.
type drawn struct {
	key       int
	kind      opKind
	from, to  int32 // to is what a read saw, or what a write or compare-and-set writes
	call, ret int64
	effect    int64
	applied   bool
	client    int
}

const foreverTime = int64(1) << 62

type clientHeap []drawnClient

type drawnClient struct {
	at int64
	id int
}

func (h clientHeap) Len() int { return len(h) }
func (h clientHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}
func (h clientHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *clientHeap) Push(x any)   { *h = append(*h, x.(drawnClient)) }
func (h *clientHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// draw gives the operations sorted by call, crashed reads left out.
func (r recipe) draw() []drawn {
	dice := rand.New(rand.NewPCG(r.Seed, 0x9e3779b97f4a7c15))
	clients := &clientHeap{}
	for i := range r.Clients {
		*clients = append(*clients, drawnClient{dice.Int64N(meanLatency), i})
	}
	heap.Init(clients)
	ops := make([]drawn, 0, r.N)
	next := r.Clients
	for len(ops) < r.N {
		c := heap.Pop(clients).(drawnClient)
		latency := 1 + int64(dice.ExpFloat64()*meanLatency)
		op := drawn{call: c.at, ret: c.at + latency, key: r.key(dice, len(ops)), applied: true, client: c.id}
		op.effect = op.call + dice.Int64N(latency)
		after := op.ret + 1
		if r.Think > 0 {
			after += int64(dice.ExpFloat64() * meanLatency * r.Think)
		}
		if r.Crash > 0 && dice.Float64() < r.Crash {
			op.ret, op.applied = foreverTime, dice.IntN(2) == 0
			if op.applied {
				op.effect = op.call + int64(dice.ExpFloat64()*meanLatency*r.Late)
			}
			c.id = next
			next++
		}
		switch draw := dice.Float64(); {
		case draw < r.Read:
			op.kind = opRead
		case draw < r.Read+r.Write:
			op.kind = opWrite
		default:
			op.kind = opCAS
		}
		ops = append(ops, op)
		c.at = after
		heap.Push(clients, c)
	}
	r.apply(ops, dice)
	ops = slices.DeleteFunc(ops, func(op drawn) bool { return op.kind == opRead && op.ret == foreverTime })
	slices.SortStableFunc(ops, func(a, b drawn) int { return cmp.Compare(a.call, b.call) })
	return ops
}

func (r recipe) key(dice *rand.Rand, n int) int {
	if r.Active == 0 {
		return dice.IntN(r.Keys)
	}
	return min(n/(200*r.Active)*r.Active+dice.IntN(r.Active), r.Keys-1)
}

// apply runs the operations in effect order and writes down what they saw.
func (r recipe) apply(ops []drawn, dice *rand.Rand) {
	order := make([]int, len(ops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ops[a].effect, ops[b].effect) })
	state, count := make([]int32, r.Keys), make([]int32, r.Keys)
	for _, i := range order {
		op := &ops[i]
		value := func() int32 {
			if r.Values == 0 {
				count[op.key]++
				return count[op.key]
			}
			return 1 + int32(dice.IntN(r.Values))
		}
		switch op.kind {
		case opRead:
			op.to = state[op.key]
		case opWrite:
			op.to = value()
		case opFailedCAS: // drawn as opCAS
		case opCAS:
			op.from, op.to = state[op.key], value()
			if dice.Float64() >= r.Hit {
				op.from = max(state[op.key]-1-int32(dice.IntN(3)), 0)
				if r.Values > 0 {
					op.from = 1 + int32(dice.IntN(r.Values))
				}
			}
			if op.from == op.to {
				op.to = op.from%int32(max(r.Values, 2)) + 1
			}
			if op.from != state[op.key] && op.ret != foreverTime {
				op.kind = opFailedCAS
			}
		}
		mutates := op.kind == opWrite || op.kind == opCAS && op.from == state[op.key]
		if mutates && op.applied {
			state[op.key] = op.to
		}
	}
}

// spansOf numbers the calls and returns of one key's operations, calls before
// returns at equal times.
func spansOf(ops []drawn) []regOp {
	type event struct {
		at   int64
		op   int32
		call bool
	}
	events := make([]event, 0, 2*len(ops))
	for i, op := range ops {
		events = append(events, event{op.call, int32(i), true})
		if op.ret != foreverTime {
			events = append(events, event{op.ret, int32(i), false})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		if a.call != b.call {
			if a.call {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.op, b.op)
	})
	out := make([]regOp, len(ops))
	for i, op := range ops {
		out[i] = regOp{Ret: forever, Value: op.to, From: op.from, Kind: op.kind}
	}
	for at, e := range events {
		if e.call {
			out[e.op].Call = int32(at)
		} else {
			out[e.op].Ret = int32(at)
		}
	}
	return out
}

// staleRead makes the first read at or after a share of the history see a value
// that was surely overwritten before it; false if there is no such read.
func staleRead(ops []regOp, after float64) bool {
	// newest[i] is the finished write with the largest call among those that
	// returned before; kept in order of return.
	type done struct {
		call, ret, value int32
	}
	var writes []done
	for _, op := range ops {
		if op.Kind == opWrite && op.Ret != forever {
			writes = append(writes, done{op.Call, op.Ret, op.Value})
		}
	}
	slices.SortFunc(writes, func(a, b done) int { return cmp.Compare(a.ret, b.ret) })
	for i := int(after * float64(len(ops))); i < len(ops); i++ {
		read := &ops[i]
		if read.Kind != opRead {
			continue
		}
		n, _ := slices.BinarySearchFunc(writes, read.Call, func(d done, at int32) int { return cmp.Compare(d.ret, at) })
		if n == 0 {
			continue
		}
		w := slices.MaxFunc(writes[max(0, n-64):n], func(a, b done) int { return cmp.Compare(a.call, b.call) })
		m, _ := slices.BinarySearchFunc(writes, w.call, func(d done, at int32) int { return cmp.Compare(d.ret, at) })
		if m == 0 || writes[m-1].value == w.value {
			continue
		}
		read.Value = writes[m-1].value
		return true
	}
	return false
}
