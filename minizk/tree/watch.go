package tree

import (
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Three kinds of watches may stand on one path for one connection at the same
// time; a trigger takes away the first kind only.
type watchKind uint8

const (
	oneShot watchKind = 1 << iota
	persistent
	recursive
)

// watchTable is one of the two tables of watches: those on data (and
// existence) and those on children. A recursive watch stands in the data table
// alone.
type watchTable struct {
	byPath map[string][]Conn // in the order of arrival: it is the order of events
	byConn map[Conn]map[string]watchKind
	total  int
	// recursive counts those, so that a tree without any never walks up.
	recursive int
}

func newWatchTable() watchTable {
	return watchTable{byPath: make(map[string][]Conn), byConn: make(map[Conn]map[string]watchKind)}
}

func (w *watchTable) add(path string, c Conn, kind watchKind) {
	paths := w.byConn[c]
	if paths == nil {
		paths = make(map[string]watchKind)
		w.byConn[c] = paths
	}
	had := paths[path]
	if had&kind != 0 {
		return
	}
	if had == 0 {
		w.byPath[path] = append(w.byPath[path], c)
		w.total++
	}
	paths[path] = had | kind
	if kind == recursive {
		w.recursive++
	}
}

// has reports whether the connection watches the path in one of the kinds.
func (w *watchTable) has(path string, c Conn, kinds watchKind) bool {
	return w.byConn[c][path]&kinds != 0
}

// remove takes the kinds away and reports whether there was one.
func (w *watchTable) remove(path string, c Conn, kinds watchKind) bool {
	paths := w.byConn[c]
	had := paths[path]
	if had&kinds == 0 {
		return false
	}
	w.put(path, c, paths, had, had&^kinds)
	return true
}

func (w *watchTable) put(path string, c Conn, paths map[string]watchKind, old, now watchKind) {
	if old&recursive != 0 && now&recursive == 0 {
		w.recursive--
	}
	if now != 0 {
		paths[path] = now
		return
	}
	delete(paths, path)
	if len(paths) == 0 {
		delete(w.byConn, c)
	}
	w.total--
	list := w.byPath[path]
	if i := slices.Index(list, c); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(w.byPath, path)
	} else {
		w.byPath[path] = list
	}
}

// drop forgets a connection. The order of a map does not matter here: each
// path is handled by itself.
func (w *watchTable) drop(c Conn) {
	paths := w.byConn[c]
	for path, kind := range paths {
		w.put(path, c, paths, kind, 0)
	}
}

// fire collects who watches the path, taking one-shot watches away, and who
// watches recursively from above.
func (w *watchTable) fire(path string) []Conn {
	var hit []Conn
	if list := w.byPath[path]; len(list) > 0 {
		hit = slices.Clone(list)
		for _, c := range hit {
			if paths := w.byConn[c]; paths[path]&oneShot != 0 {
				w.put(path, c, paths, paths[path], paths[path]&^oneShot)
			}
		}
	}
	if w.recursive == 0 {
		return hit
	}
	for above := path; above != "/" && above != ""; {
		above = visible(above[:strings.LastIndexByte(above, '/')])
		for _, c := range w.byPath[above] {
			if w.byConn[c][above]&recursive != 0 && !slices.Contains(hit, c) {
				hit = append(hit, c)
			}
		}
	}
	return hit
}

// trigger is a change that watches may be waiting for.
type trigger struct {
	typ            jute.EventType // created, deleted or data changed
	path           string
	acl, parentACL []jute.ACL
}

// run turns the triggers of a transaction that stands into events.
func (t *Tree) run(r *request) {
	for _, tr := range r.triggers {
		switch tr.typ {
		case jute.EventNodeDataChanged:
			t.emit(t.data.fire(tr.path), nil, tr.typ, tr.path, r.zxid, tr.acl)
		case jute.EventNodeCreated:
			t.emit(t.data.fire(tr.path), nil, tr.typ, tr.path, r.zxid, tr.acl)
			t.childrenChanged(r, tr)
		case jute.EventNodeDeleted:
			// Who watches data and children of the node is told once.
			told := t.data.fire(tr.path)
			t.emit(told, nil, tr.typ, tr.path, r.zxid, tr.acl)
			t.emit(t.child.fire(tr.path), told, tr.typ, tr.path, r.zxid, tr.acl)
			t.childrenChanged(r, tr)
		default:
		}
	}
}

func (t *Tree) childrenChanged(r *request, tr trigger) {
	parent := visible(tr.path[:strings.LastIndexByte(tr.path, '/')])
	t.emit(t.child.fire(parent), nil, jute.EventNodeChildrenChanged, parent, r.zxid, tr.parentACL)
}

// emit tells those that may read the node.
func (t *Tree) emit(to, except []Conn, typ jute.EventType, path string, zxid int64, acl []jute.ACL) {
	for _, c := range to {
		if slices.Contains(except, c) {
			continue
		}
		if cn := t.conns[c]; cn != nil && t.allowed(acl, jute.PermRead, cn.auth) {
			t.events = append(t.events, Event{Conn: c, Type: typ, Path: path, Zxid: zxid})
		}
	}
}

// setWatches arms the watches of a client that has come back, or tells it at
// once what it has missed since the zxid that it saw last.
func (t *Tree) setWatches(c Conn, req *jute.SetWatchesRequest) {
	tell := func(typ jute.EventType, path string) {
		t.events = append(t.events, Event{Conn: c, Type: typ, Path: path, Zxid: -1})
	}
	for _, path := range req.Data {
		switch n := t.node(path); {
		case n == nil:
			tell(jute.EventNodeDeleted, path)
		case n.mzxid > req.RelativeZxid:
			tell(jute.EventNodeDataChanged, path)
		default:
			t.data.add(path, c, oneShot)
		}
	}
	for _, path := range req.Exist {
		if t.node(path) != nil {
			tell(jute.EventNodeCreated, path)
		} else {
			t.data.add(path, c, oneShot)
		}
	}
	for _, path := range req.Child {
		switch n := t.node(path); {
		case n == nil:
			tell(jute.EventNodeDeleted, path)
		case n.pzxid > req.RelativeZxid:
			tell(jute.EventNodeChildrenChanged, path)
		default:
			t.child.add(path, c, oneShot)
		}
	}
	for _, path := range req.Persistent {
		t.watchAlways(path, c)
	}
	for _, path := range req.PersistentRecursive {
		t.data.add(path, c, recursive)
	}
}

// watchAlways sets a persistent watch, which stands in both tables.
func (t *Tree) watchAlways(path string, c Conn) {
	t.data.add(path, c, persistent)
	t.child.add(path, c, persistent)
}

func (t *Tree) addWatch(path string, c Conn, mode int32) jute.Code {
	switch mode {
	case jute.ModePersistent:
		t.watchAlways(path, c)
	case jute.ModePersistentRecursive:
		t.data.add(path, c, recursive)
	default:
		return jute.MarshallingError
	}
	return jute.OK
}

// findWatch answers checkWatches and, with take, removeWatches.
func (t *Tree) findWatch(path string, c Conn, typ int32, take bool) jute.Code {
	look := func(w *watchTable, kinds watchKind) bool {
		if take {
			return w.remove(path, c, kinds)
		}
		return w.has(path, c, kinds)
	}
	var found bool
	switch typ {
	case jute.WatcherChildren:
		found = look(&t.child, oneShot)
	case jute.WatcherData:
		found = look(&t.data, oneShot)
	case jute.WatcherPersistent:
		inChild, inData := look(&t.child, persistent), look(&t.data, persistent)
		found = inChild || inData
	case jute.WatcherPersistentRecursive:
		found = look(&t.data, recursive)
	case jute.WatcherAny:
		any := oneShot | persistent | recursive
		inChild, inData := look(&t.child, any), look(&t.data, any)
		found = inChild || inData
	default:
		return jute.MarshallingError
	}
	if !found {
		return jute.NoWatcher
	}
	return jute.OK
}
