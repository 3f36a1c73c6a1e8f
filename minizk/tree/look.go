package tree

import (
	"maps"
	"slices"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Counts are the sizes that four-letter words and monitors show.
type Counts struct {
	Nodes, Ephemerals, Watches, WatchedPaths, WatchingConns int
	Sessions, Conns                                         int
	DataSize                                                int64 // bytes of paths and data
}

// Count gives the present sizes.
func (t *Tree) Count() Counts {
	watching := make(map[Conn]struct{}, len(t.data.byConn))
	for c := range t.data.byConn {
		watching[c] = struct{}{}
	}
	for c := range t.child.byConn {
		watching[c] = struct{}{}
	}
	return Counts{
		Nodes: len(t.nodes), Ephemerals: t.ephemerals,
		Watches: t.data.total + t.child.total, WatchedPaths: len(t.data.byPath) + len(t.child.byPath),
		WatchingConns: len(watching), Sessions: len(t.sessions), Conns: len(t.conns), DataSize: t.dataSize,
	}
}

// SessionInfo is what the server knows of a session.
type SessionInfo struct {
	ID         int64
	Timeout    int64 // milliseconds
	Expires    int64 // milliseconds since 1970, if it is not heard of before
	Conn       Conn  // 0 while nobody is connected
	Ephemerals []string
}

// Sessions lists the sessions by id.
func (t *Tree) Sessions() []SessionInfo {
	list := make([]SessionInfo, 0, len(t.sessions))
	for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
		list = append(list, t.sessions[id].info())
	}
	return list
}

// Session looks one up.
func (t *Tree) Session(id int64) (SessionInfo, bool) {
	s := t.sessions[id]
	if s == nil {
		return SessionInfo{}, false
	}
	return s.info(), true
}

func (s *session) info() SessionInfo {
	return SessionInfo{
		ID: s.id, Timeout: s.timeout, Expires: s.expires, Conn: s.conn, Ephemerals: slices.Clone(s.ephemerals),
	}
}

// SessionOf is the session of a connection, 0 if it has none.
func (t *Tree) SessionOf(c Conn) int64 {
	if cn := t.conns[c]; cn != nil {
		return cn.session
	}
	return 0
}

// Password is the password of a session, for whoever has to resume it in a
// client's place.
func (t *Tree) Password(id int64) []byte { return t.password(id) }

// Watched lists, sorted, the paths on which a connection has a watch.
func (t *Tree) Watched(c Conn) []string {
	set := make(map[string]struct{})
	for p := range t.data.byConn[c] {
		set[p] = struct{}{}
	}
	for p := range t.child.byConn[c] {
		set[p] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}

// Paths lists all nodes, sorted.
func (t *Tree) Paths() []string { return slices.Sorted(maps.Keys(t.nodes)) }

// Look gives a node's data, which must not be changed, and its stat.
func (t *Tree) Look(path string) (data []byte, stat jute.Stat, ok bool) {
	n := t.node(path)
	if n == nil {
		return nil, jute.Stat{}, false
	}
	return n.data, n.stat(), true
}

// Timeouts are the bounds of session time-outs in milliseconds.
func (t *Tree) Timeouts() (lowest, highest int64) {
	return t.opts.MinSessionTimeout, t.opts.MaxSessionTimeout
}
