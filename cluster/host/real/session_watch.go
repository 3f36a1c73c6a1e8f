package real

import (
	"context"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// zkWatchKind tells the three lists of watches apart that a client keeps.
type zkWatchKind uint8

const (
	zkDataWatch zkWatchKind = iota + 1
	zkExistWatch
	zkChildWatch
)

// zkWatchKey is one entry of those lists.
type zkWatchKey struct {
	path string
	kind zkWatchKind
}

// watchKinds are the lists that an event of a type empties for its path.
func watchKinds(t host.WatchType) []zkWatchKind {
	switch t {
	case host.NodeCreated:
		return []zkWatchKind{zkExistWatch}
	case host.NodeDataChanged:
		return []zkWatchKind{zkExistWatch, zkDataWatch}
	case host.NodeChildrenChanged:
		return []zkWatchKind{zkChildWatch}
	case host.NodeDeleted:
		return []zkWatchKind{zkExistWatch, zkDataWatch, zkChildWatch}
	default:
		return nil
	}
}

// zkWatches mirrors the library's table of watches, kept in the order of the
// stream: a reply arms as its last byte is handed over, an event fires
// likewise. So a watch is never fired by an event from before it was set.
type zkWatches struct {
	tell  func(func()) // the node's loop
	armed map[zkWatchKey][]*zkWatch
}

// arm adds the watch of a request that was answered; code is that of the reply.
func (t *zkWatches) arm(w *zkWatch, op jute.OpCode, code jute.Code, path string) {
	var kind zkWatchKind
	switch {
	case op == jute.OpGetData && code == jute.OK, op == jute.OpExists && code == jute.OK:
		kind = zkDataWatch
	case op == jute.OpExists && code == jute.NoNode:
		kind = zkExistWatch
	case (op == jute.OpGetChildren2 || op == jute.OpGetChildren) && code == jute.OK:
		kind = zkChildWatch
	default:
		return
	}
	key := zkWatchKey{path, kind}
	t.armed[key] = append(t.armed[key], w)
}

// fire hands an event to the watches that it concerns.
func (t *zkWatches) fire(e host.WatchEvent) {
	var hit []*zkWatch
	for _, kind := range watchKinds(e.Type) {
		key := zkWatchKey{e.Path, kind}
		hit = append(hit, t.armed[key]...)
		delete(t.armed, key)
	}
	t.hit(hit, e.Type)
}

// end tells all watches that nobody watches any more.
func (t *zkWatches) end() {
	var hit []*zkWatch
	for key, list := range t.armed {
		hit = append(hit, list...)
		delete(t.armed, key)
	}
	t.hit(hit, host.NotWatching)
}

func (t *zkWatches) hit(hit []*zkWatch, kind host.WatchType) {
	if len(hit) == 0 {
		return
	}
	t.tell(func() {
		for _, w := range hit {
			w.fire(kind)
		}
	})
}

// zkWatch is a host.Watch. It lives on the node's loop.
type zkWatch struct {
	path  string
	cond  host.Cond
	fired bool
	kind  host.WatchType
}

func (w *zkWatch) fire(kind host.WatchType) {
	if !w.fired {
		w.fired, w.kind = true, kind
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
	return host.WatchEvent{Type: w.kind, Path: w.path}, nil
}
