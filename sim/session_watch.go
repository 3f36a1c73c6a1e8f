package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// zkWatchKind tells the three lists of watches apart that a client keeps.
type zkWatchKind uint8

const (
	zkDataWatch zkWatchKind = iota + 1
	zkExistWatch
	zkChildWatch
)

type zkWatchKey struct {
	path string
	kind zkWatchKind
}

// zkWatches is a client's table of watches, which survives its connections.
type zkWatches struct{ armed map[zkWatchKey][]*zkWatch }

// arm adds the watch of a request that was answered with that code.
func (t *zkWatches) arm(w *zkWatch, op jute.OpCode, code jute.Code) {
	var kind zkWatchKind
	switch {
	case (op == jute.OpGetData || op == jute.OpExists) && code == jute.OK:
		kind = zkDataWatch
	case op == jute.OpExists && code == jute.NoNode:
		kind = zkExistWatch
	case op == jute.OpGetChildren2 && code == jute.OK:
		kind = zkChildWatch
	default:
		return
	}
	if t.armed == nil {
		t.armed = map[zkWatchKey][]*zkWatch{}
	}
	key := zkWatchKey{w.path, kind}
	t.armed[key] = append(t.armed[key], w)
}

// fire hands an event to the watches that it concerns.
func (t *zkWatches) fire(typ host.WatchType, path string) {
	var kinds []zkWatchKind
	switch typ {
	case host.NodeCreated:
		kinds = []zkWatchKind{zkExistWatch}
	case host.NodeDataChanged:
		kinds = []zkWatchKind{zkExistWatch, zkDataWatch}
	case host.NodeChildrenChanged:
		kinds = []zkWatchKind{zkChildWatch}
	case host.NodeDeleted:
		kinds = []zkWatchKind{zkExistWatch, zkDataWatch, zkChildWatch}
	case host.NotWatching:
	}
	for _, kind := range kinds {
		t.take(zkWatchKey{path, kind}, typ)
	}
}

func (t *zkWatches) take(key zkWatchKey, typ host.WatchType) {
	hit := t.armed[key]
	delete(t.armed, key)
	for _, w := range hit {
		w.fire(typ)
	}
}

func (t *zkWatches) keys() []zkWatchKey {
	return slices.SortedFunc(maps.Keys(t.armed), func(a, b zkWatchKey) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
	})
}

// fireAll tells all watches that nobody watches any more.
func (t *zkWatches) fireAll() {
	for _, key := range t.keys() {
		t.take(key, host.NotWatching)
	}
}

// renewal is the request that arms them again on a new connection and asks what
// was missed since a zxid; nil if there are none.
func (t *zkWatches) renewal(since int64) *jute.SetWatchesRequest {
	if len(t.armed) == 0 {
		return nil
	}
	req := &jute.SetWatchesRequest{RelativeZxid: since}
	for _, key := range t.keys() {
		switch key.kind {
		case zkDataWatch:
			req.Data = append(req.Data, key.path)
		case zkExistWatch:
			req.Exist = append(req.Exist, key.path)
		case zkChildWatch:
			req.Child = append(req.Child, key.path)
		}
	}
	return req
}

// zkWatch is a host.Watch.
type zkWatch struct {
	path  string
	cond  *kernel.Cond
	fired bool
	typ   host.WatchType
}

func (w *zkWatch) fire(typ host.WatchType) {
	if !w.fired {
		w.fired, w.typ = true, typ
		w.cond.Broadcast()
	}
}

// Fired reports whether Wait would return at once.
func (w *zkWatch) Fired() bool { return w.fired }

// Wait parks until the watch fires or ctx ends.
func (w *zkWatch) Wait(ctx context.Context) (host.WatchEvent, error) {
	for !w.fired {
		if err := w.cond.Wait(ctx); err != nil {
			return host.WatchEvent{}, err
		}
	}
	return host.WatchEvent{Type: w.typ, Path: w.path}, nil
}
