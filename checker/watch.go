package checker

import (
	"fmt"

	"github.com/fencepost-dev/fencepost/history"
)

// RegisterWatch judges a register workload while it runs: it is told every line
// of the history, in order, and names a violation at the line that makes it one.
// Its memory depends on what is open and on the number of keys. It stands beside
// the linearizable checker, which judges the stored history and tells the story;
// a key whose writes are not unique, or that has compare-and-set, is left to that one. Not safe for concurrent
// use: the run loop owns it.
type RegisterWatch struct {
	keys map[string]*watchedKey
	open map[history.Process]watchedOp
	off  int
}

type watchedKey struct {
	register *onlineRegister[string]
	off      bool // writes are not unique, or the key is violated already
}

type watchedOp struct {
	key   *watchedKey
	name  string
	id    callID
	write bool
	value string
}

// Alarm is a violation at the moment at which it became one.
type Alarm struct {
	Key  string
	Line int // index of the completion
	Text string
}

// NewRegisterWatch starts with absent keys.
func NewRegisterWatch() *RegisterWatch {
	return &RegisterWatch{keys: map[string]*watchedKey{}, open: map[history.Process]watchedOp{}}
}

// Unwatched counts the keys that were given up because their writes repeat a value.
func (w *RegisterWatch) Unwatched() int { return w.off }

// Add takes the next line; ok is false if it is the completion that leaves its
// key without any linearization. Each key alarms once. Lines that are no reads
// or writes of clients are passed over. The error is that of a line whose value
// is no key and value.
func (w *RegisterWatch) Add(op history.Op) (alarm Alarm, ok bool, err error) {
	if !op.Client() || op.F != fRead && op.F != fWrite && op.F != fCAS {
		return Alarm{}, true, nil
	}
	if op.Type == history.Invoke {
		return Alarm{}, true, w.invoke(op)
	}
	o, known := w.open[op.Process]
	if !known {
		return Alarm{}, true, nil
	}
	delete(w.open, op.Process)
	if o.key.off {
		return Alarm{}, true, nil
	}
	r, what := o.key.register, ""
	switch {
	case op.Type == history.Ok && o.write:
		if !r.done(o.id, o.value) {
			what = fmt.Sprintf("the write of %s cannot have been the last one in any order", o.value)
		}
	case op.Type == history.Ok:
		kv, err := history.KeyValueOf(op)
		if err != nil {
			return Alarm{}, true, err
		}
		if value := valueText(kv); !r.done(o.id, value) {
			what = fmt.Sprintf("no order explains that %s was read", value)
		}
	case op.Type == history.Fail && o.write:
		if !r.refuse(o.id, o.value) {
			what = fmt.Sprintf("the write of %s was refused for good, but its value had been read", o.value)
		}
	default:
		r.drop(o.id)
	}
	if what == "" {
		return Alarm{}, true, nil
	}
	o.key.off = true
	return Alarm{Key: o.name, Line: op.Index, Text: fmt.Sprintf("key %s at line %d: %s", o.name, op.Index+1, what)}, false, nil
}

func (w *RegisterWatch) invoke(op history.Op) error {
	kv, err := history.KeyValueOf(op)
	if err != nil {
		return err
	}
	k := w.keys[kv.Key]
	if k == nil {
		k = &watchedKey{register: newOnlineRegister("null")}
		w.keys[kv.Key] = k
	}
	o := watchedOp{key: k, name: kv.Key, write: op.F == fWrite}
	if op.F == fCAS && !k.off { // zones do not know it: left to the checker of the stored history
		k.off = true
		w.off++
	}
	if !k.off {
		if o.write {
			fresh := false
			o.value = valueText(kv)
			if o.id, fresh = k.register.callWrite(o.value); !fresh {
				k.off = true
				w.off++
			}
		} else {
			o.id = k.register.callRead()
		}
	}
	w.open[op.Process] = o
	return nil
}

func valueText(kv history.KeyValue) string {
	if kv.Absent() {
		return "null"
	}
	return string(kv.Value)
}
