package checker

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"math"

	"github.com/fencepost-dev/fencepost/history"
)

// The functions of the register workload.
const (
	fRead  = "read"
	fWrite = "write"
	fCAS   = "cas"
)

// forever is the return position of an operation that was never known to end.
const forever = int32(math.MaxInt32)

// initial is the number of the value that every key holds at first: absent.
const initial = int32(0)

// span is an operation on one register, reduced to what decides: 16 bytes.
// Call and Ret are positions in the real-time order of the key's own events, so
// all of them differ (a crashed operation's Ret apart).
type span struct {
	Call, Ret int32
	Value     int32 // number of the value written or read
	Write     bool
}

// register is the history of one key.
type register struct {
	key    string
	spans  []span // in order of Call; a compare-and-set is a write here
	invoke []int32
	froms  []int32  // what a compare-and-set expects, noFrom for others; nil without any
	values [][]byte // the JSON text of each value, by its number; values[0] is null
	// What was left out, and why.
	failed, unknownReads int
	crashedWrites        int
	maxOpen              int
	aborted              map[int32]int32 // value of a failed write -> line of its invocation
}

// registerBuilder sorts a history's operations by key.
type registerBuilder struct {
	h     history.History
	keys  map[string]*keyBuild
	order []*keyBuild
	open  map[history.Process]openSpan
}

type keyBuild struct {
	register
	numbers numbering
	clock   int32
	open    int
}

// noFrom marks an operation that expects nothing.
const noFrom = int32(-1)

// registers splits the register operations of a history by key, keys in order of
// their first invocation. Its contract: the value of a write and of a completed
// read is {"key":…,"value":…}, of a compare-and-set {"key":…,"value":[from,to]}, of
// an invoked read at least the key, and a completion is about what its invocation
// was about. A compare-and-set that failed did not happen; that its value was not
// there is not used.
func registers(h history.History) ([]register, error) {
	b := registerBuilder{h: h, keys: map[string]*keyBuild{}, open: map[history.Process]openSpan{}}
	for i, op := range h.Ops() {
		if !op.Client() || op.F != fRead && op.F != fWrite && op.F != fCAS {
			continue
		}
		var err error
		if op.Type == history.Invoke {
			err = b.invoked(i, op)
		} else {
			err = b.completed(op)
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]register, len(b.order))
	for i, k := range b.order {
		out[i] = k.register
	}
	return out, nil
}

type openSpan struct {
	key   *keyBuild
	index int
}

// keyValue reads a line's key and value without allocating.
func keyValue(op history.Op) (key, value []byte, err error) {
	key, value, ok := history.PlainKeyValue(op.Value)
	if !ok {
		kv, err := history.KeyValueOf(op)
		if err != nil {
			return nil, nil, err
		}
		key, value = []byte(kv.Key), kv.Value
	}
	return key, value, nil
}

func (b *registerBuilder) key(name []byte) *keyBuild {
	k := b.keys[string(name)]
	if k == nil {
		k = &keyBuild{}
		k.key = string(name)
		k.number([]byte("null"))
		b.keys[k.key] = k
		b.order = append(b.order, k)
	}
	return k
}

// number gives a value its number; nothing at all is null.
func (k *keyBuild) number(value []byte) int32 {
	if len(value) == 0 {
		return initial
	}
	return k.numbers.of(value, &k.values)
}

// invoked opens a span, unless the operation is one that says nothing: a failed
// one did not happen, a read of unknown outcome saw nothing.
func (b *registerBuilder) invoked(i int, op history.Op) error {
	key, raw, err := keyValue(op)
	if err != nil {
		return err
	}
	k := b.key(key)
	outcome := history.Info
	if j, ok := b.h.Partner(i); ok {
		outcome = b.h.Ops()[j].Type
	}
	write := op.F != fRead
	value, from, err := k.written(op, raw)
	if err != nil {
		return err
	}
	switch {
	case outcome == history.Fail:
		k.failed++
		if write {
			if k.aborted == nil {
				k.aborted = map[int32]int32{}
			}
			k.aborted[value] = int32(i)
		}
		return nil
	case outcome == history.Info && !write:
		k.unknownReads++
		return nil
	case outcome == history.Info:
		k.crashedWrites++
	}
	s := span{Call: k.clock, Ret: forever, Write: write, Value: value}
	k.expects(from)
	k.clock++
	k.open++
	k.maxOpen = max(k.maxOpen, k.open)
	b.open[op.Process] = openSpan{k, len(k.spans)}
	k.spans = append(k.spans, s)
	k.invoke = append(k.invoke, int32(i))
	return nil
}

// written numbers what an operation writes, and what a compare-and-set expects.
func (k *keyBuild) written(op history.Op, raw []byte) (value, from int32, err error) {
	switch op.F {
	case fWrite:
		return k.number(raw), noFrom, nil
	case fCAS:
		var pair []json.RawMessage
		if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 {
			return 0, 0, history.Contract(op, "a compare-and-set needs the value [from,to], not %.60s", raw)
		}
		return k.number(pair[1]), k.number(pair[0]), nil
	}
	return initial, noFrom, nil
}

// expects notes what the next span expects; most keys never need to.
func (k *keyBuild) expects(from int32) {
	if from == noFrom && k.froms == nil {
		return
	}
	for len(k.froms) < len(k.spans) {
		k.froms = append(k.froms, noFrom)
	}
	k.froms = append(k.froms, from)
}

func (b *registerBuilder) completed(op history.Op) error {
	open, ok := b.open[op.Process]
	delete(b.open, op.Process)
	if !ok || op.Type != history.Ok {
		return nil // a crashed write stays open to the end of the history
	}
	k := open.key
	s := &k.spans[open.index]
	if len(op.Value) > 0 || !s.Write {
		key, raw, err := keyValue(op)
		if err != nil {
			return err
		}
		if string(key) != k.key {
			return history.Contract(op, "completes an operation on key %q that was invoked on key %q", key, k.key)
		}
		value, _, err := k.written(op, raw)
		switch {
		case err != nil:
			return err
		case !s.Write:
			s.Value = k.number(raw)
		case value != s.Value:
			return history.Contract(op, "a write of %s is acknowledged as one of %s", k.values[s.Value], raw)
		}
	}
	s.Ret = k.clock
	k.clock++
	k.open--
	return nil
}

// ops gives the operations with their kinds, for the algorithms that know
// compare-and-set.
func (r register) ops() []regOp {
	out := make([]regOp, len(r.spans))
	for i, s := range r.spans {
		out[i] = regOp{Call: s.Call, Ret: s.Ret, Value: s.Value}
		switch {
		case !s.Write:
		case i < len(r.froms) && r.froms[i] != noFrom:
			out[i].Kind, out[i].From = opCAS, r.froms[i]
		default:
			out[i].Kind = opWrite
		}
	}
	return out
}

// operations gives the key's operations as Porcupine wants them; processes become
// lanes of its picture.
func (r register) operations(h history.History) []Operation[regOp, struct{}] {
	out := casOperations(r.ops())
	lanes := map[history.Process]int{}
	for i := range out {
		process := h.Ops()[r.invoke[i]].Process
		lane, ok := lanes[process]
		if !ok {
			lane = len(lanes)
			lanes[process] = lane
		}
		out[i].Client = lane
	}
	return out
}

// acknowledged counts the operations with a known outcome.
func (r register) acknowledged() int {
	n := 0
	for _, s := range r.spans {
		if s.Ret != forever {
			n++
		}
	}
	return n
}

// numbering gives byte strings small numbers: open addressing over words that hold
// a short string whole, and the strings themselves, which stay where they are. A
// Go map of strings would take most of the time of judging a history.
type numbering struct {
	table []numbered
	seed  maphash.Seed
}

// numbered is a string's word with its number + 1; 0 is free.
type numbered struct {
	word uint64
	at   int32
}

// wordOf is a string of up to seven bytes with its length, or a hash of a longer
// one, whose top bit is set.
func (n *numbering) wordOf(text []byte) (word uint64, whole bool) {
	if len(text) > 7 {
		return maphash.Bytes(n.seed, text) | 1<<63, false
	}
	for _, c := range text {
		word = word<<8 | uint64(c)
	}
	return word | uint64(len(text))<<56, true
}

func (n *numbering) of(text []byte, texts *[][]byte) int32 {
	if 2*(len(*texts)+1) > len(n.table) {
		n.grow(*texts)
	}
	i, word := n.find(text, *texts)
	if n.table[i].at == 0 {
		*texts = append(*texts, text)
		n.table[i] = numbered{word, int32(len(*texts))}
	}
	return n.table[i].at - 1
}

func (n *numbering) find(text []byte, texts [][]byte) (int, uint64) {
	word, whole := n.wordOf(text)
	mask := uint64(len(n.table) - 1)
	for i := (word * 0x9e3779b97f4a7c15) >> 32 & mask; ; i = (i + 1) & mask {
		e := n.table[i]
		if e.at == 0 || e.word == word && (whole || bytes.Equal(texts[e.at-1], text)) {
			return int(i), word
		}
	}
}

func (n *numbering) grow(texts [][]byte) {
	if n.table == nil {
		n.seed = maphash.MakeSeed() // numbers do not depend on it, only places do
	}
	n.table = make([]numbered, max(2*len(n.table), 16))
	for i, text := range texts {
		at, word := n.find(text, texts)
		n.table[at] = numbered{word, int32(i + 1)}
	}
}
