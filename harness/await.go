package harness

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/history"
)

// AwaitEvent parks until a node reports an event of the kind that match
// accepts (nil accepts all), and returns its line. Only events reported after
// the call count. Match runs under the recorder's lock: it must be quick.
func (e Env) AwaitEvent(ctx context.Context, kind string, match func(history.Op) bool) (history.Op, error) {
	var off func()
	v, err := e.Host.Await(ctx, "event "+kind, func(complete func(any)) {
		off = e.Events.On(kind, func(op history.Op) {
			if match == nil || match(op) {
				complete(op)
			}
		})
	})
	if off != nil {
		off()
	}
	if err != nil {
		return history.Op{}, err
	}
	return v.(history.Op), nil
}

// matchWhere reports whether the event's fields have the texts in where; "*"
// matches any value that is present. A field of an inner object is named with
// dots.
func matchWhere(where map[string]string) func(history.Op) bool {
	if len(where) == 0 {
		return nil
	}
	return func(op history.Op) bool {
		var fields map[string]json.RawMessage
		if json.Unmarshal(op.Value, &fields) != nil {
			return false
		}
		for name, want := range where {
			got, present := field(fields, name)
			if !present || want != "*" && want != got {
				return false
			}
		}
		return true
	}
}

// field is the text of a field: a string without its quotes, anything else as
// JSON writes it.
func field(fields map[string]json.RawMessage, name string) (string, bool) {
	raw, present := fields[name]
	if !present {
		head, rest, dotted := strings.Cut(name, ".")
		var inner map[string]json.RawMessage
		if !dotted || json.Unmarshal(fields[head], &inner) != nil {
			return "", false
		}
		return field(inner, rest)
	}
	if len(raw) > 0 && raw[0] == '"' {
		if text, err := strconv.Unquote(string(raw)); err == nil {
			return text, true
		}
	}
	return string(raw), true
}

// Watch notes from now on which nodes have reported events of a kind whose
// fields have the texts in where. Close ends it.
func (e Env) Watch(kind string, where map[string]string) *EventWatch {
	w := &EventWatch{env: e, seen: map[cluster.NodeID]bool{}}
	match := matchWhere(where)
	w.off = e.Events.On(kind, func(op history.Op) {
		if match == nil || match(op) {
			w.note(cluster.NodeID(op.Node))
		}
	})
	return w
}

// EventWatch is what Watch returns. In real time nodes report on goroutines of
// their own, so it locks.
type EventWatch struct {
	env  Env
	off  func()
	mu   sync.Mutex
	seen map[cluster.NodeID]bool // looked up, never ranged over
	wake func(any)
}

func (w *EventWatch) note(node cluster.NodeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[node] = true
	if w.wake != nil {
		w.wake(nil)
	}
}

// All parks until every one of the nodes has reported, or ctx ends.
func (w *EventWatch) All(ctx context.Context, nodes []cluster.NodeID) error {
	for {
		_, err := w.env.Host.Await(ctx, "events of nodes", func(complete func(any)) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.wake = complete
			if w.missing(nodes) == 0 {
				complete(nil)
			}
		})
		if err != nil {
			return err
		}
		w.mu.Lock()
		missing := w.missing(nodes)
		w.mu.Unlock()
		if missing == 0 {
			return nil
		}
	}
}

func (w *EventWatch) missing(nodes []cluster.NodeID) int {
	missing := 0
	for _, id := range nodes {
		if !w.seen[id] {
			missing++
		}
	}
	return missing
}

// Close ends the watch.
func (w *EventWatch) Close() { w.off() }
