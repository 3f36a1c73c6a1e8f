package checker

import (
	"fmt"
	"html"
	"math"
	"strconv"

	"github.com/fencepost-dev/fencepost/history"
)

// The functions of the register workload.
const (
	fRead  = "read"
	fWrite = "write"
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
	spans  []span // in order of Call
	invoke []int32
	values []string // the JSON text of each value, by its number; values[0] is null
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
}

type keyBuild struct {
	register
	numbers map[string]int32
	clock   int32
	open    int
}

// registers splits the register operations of a history by key, keys in order of
// their first invocation. Its contract: the value of a write and of a completed
// read is {"key":…,"value":…}, of an invoked read at least the key, and a
// completion is about the key of its invocation.
func registers(h history.History) ([]register, error) {
	b := registerBuilder{h: h, keys: map[string]*keyBuild{}}
	slot := make(map[int]openSpan) // invocation -> its span, while open
	for i, op := range h.Ops() {
		if !op.Client() || op.F != fRead && op.F != fWrite {
			continue
		}
		var err error
		if op.Type == history.Invoke {
			err = b.invoked(i, op, slot)
		} else {
			err = b.completed(i, op, slot)
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

func (b *registerBuilder) key(name string) *keyBuild {
	k := b.keys[name]
	if k == nil {
		k = &keyBuild{numbers: map[string]int32{"null": initial}}
		k.key, k.values = name, []string{"null"}
		b.keys[name] = k
		b.order = append(b.order, k)
	}
	return k
}

func (k *keyBuild) number(value []byte) int32 {
	if len(value) == 0 {
		return initial
	}
	if n, ok := k.numbers[string(value)]; ok {
		return n
	}
	n, text := int32(len(k.values)), string(value)
	k.numbers[text] = n
	k.values = append(k.values, text)
	return n
}

// invoked opens a span, unless the operation is one that says nothing: a failed
// one did not happen, a read of unknown outcome saw nothing.
func (b *registerBuilder) invoked(i int, op history.Op, slot map[int]openSpan) error {
	kv, err := history.KeyValueOf(op)
	if err != nil {
		return err
	}
	k := b.key(kv.Key)
	outcome := history.Info
	if j, ok := b.h.Partner(i); ok {
		outcome = b.h.Ops()[j].Type
	}
	write := op.F == fWrite
	switch {
	case outcome == history.Fail:
		k.failed++
		if write {
			if k.aborted == nil {
				k.aborted = map[int32]int32{}
			}
			k.aborted[k.number(kv.Value)] = int32(i)
		}
		return nil
	case outcome == history.Info && !write:
		k.unknownReads++
		return nil
	case outcome == history.Info:
		k.crashedWrites++
	}
	s := span{Call: k.clock, Ret: forever, Write: write}
	if write {
		s.Value = k.number(kv.Value)
	}
	k.clock++
	k.open++
	k.maxOpen = max(k.maxOpen, k.open)
	slot[i] = openSpan{k, len(k.spans)}
	k.spans = append(k.spans, s)
	k.invoke = append(k.invoke, int32(i))
	return nil
}

func (b *registerBuilder) completed(j int, op history.Op, slot map[int]openSpan) error {
	i, _ := b.h.Partner(j)
	open, ok := slot[i]
	if !ok || op.Type != history.Ok {
		return nil // a crashed write stays open to the end of the history
	}
	delete(slot, i)
	k := open.key
	s := &k.spans[open.index]
	if len(op.Value) > 0 || !s.Write {
		kv, err := history.KeyValueOf(op)
		if err != nil {
			return err
		}
		if kv.Key != k.key {
			return history.Contract(op, "completes an operation on key %q that was invoked on key %q", kv.Key, k.key)
		}
		switch value := k.number(kv.Value); {
		case !s.Write:
			s.Value = value
		case value != s.Value:
			return history.Contract(op, "a write of %s is acknowledged as one of %s", k.values[s.Value], kv.Value)
		}
	}
	s.Ret = k.clock
	k.clock++
	k.open--
	return nil
}

// registerIn is an operation on a register as a model sees it.
type registerIn struct {
	Write bool
	Value int32
}

// registerModel is a register of numbered values; reads carry their result in
// the output.
func registerModel(values []string) Model[int32, registerIn, int32] {
	name := func(v int32) string {
		if int(v) < len(values) {
			return values[v]
		}
		return strconv.Itoa(int(v))
	}
	return Model[int32, registerIn, int32]{
		Init: func() int32 { return initial },
		Step: func(state int32, in registerIn, out int32) (bool, int32) {
			if in.Write {
				return true, in.Value
			}
			return out == state, state
		},
		Equal:    func(a, b int32) bool { return a == b },
		Hash:     func(state int32) uint64 { return uint64(state) * 0x9e3779b97f4a7c15 },
		ReadOnly: func(in registerIn, _ int32) bool { return !in.Write },
		Describe: func(in registerIn, out int32) string {
			if in.Write {
				return fmt.Sprintf("write %s", name(in.Value))
			}
			return fmt.Sprintf("read %s", name(out))
		},
		// The page that shows states takes them as HTML.
		State: func(state int32) string { return html.EscapeString(name(state)) },
	}
}

// operations gives the key's spans as Porcupine wants them; processes become
// lanes of its picture.
func (r register) operations(h history.History) []Operation[registerIn, int32] {
	lanes := map[history.Process]int{}
	out := make([]Operation[registerIn, int32], len(r.spans))
	for i, s := range r.spans {
		process := h.Ops()[r.invoke[i]].Process
		lane, ok := lanes[process]
		if !ok {
			lane = len(lanes)
			lanes[process] = lane
		}
		op := Operation[registerIn, int32]{Client: lane, Call: int64(s.Call), Return: int64(s.Ret)}
		if s.Write {
			op.Input = registerIn{Write: true, Value: s.Value}
		} else {
			op.Output = s.Value
		}
		if s.Ret == forever {
			op.Return = Never
		}
		out[i] = op
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
