package tree

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// snapshotVersion changes with the format.
const snapshotVersion = 1

// Save writes the nodes and sessions. Connections, and the watches that belong
// to them, are not part of it.
func (t *Tree) Save(e *jute.Encoder) {
	e.Int32(snapshotVersion)
	e.Int64(int64(t.opts.Secret))
	e.Int64(t.zxid)
	e.Int64(t.nextSession)
	e.Int32(int32(len(t.sessions)))
	for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
		e.Int64(id)
		e.Int64(t.sessions[id].timeout)
	}
	e.Int32(int32(len(t.nodes)))
	for _, path := range t.Paths() {
		t.nodes[path].save(e, path)
	}
}

func (n *node) save(e *jute.Encoder, path string) {
	e.String(path)
	e.Buffer(n.data)
	jute.EncodeACLs(e, n.acl)
	for _, v := range []int64{n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime, n.owner} {
		e.Int64(v)
	}
	for _, v := range []int32{n.version, n.creates, n.aversion} {
		e.Int32(v)
	}
}

func loadNode(d *jute.Decoder) (path string, n *node) {
	n = &node{}
	path = d.String()
	n.data = d.Buffer()
	n.acl = jute.DecodeACLs(d)
	for _, v := range []*int64{&n.czxid, &n.mzxid, &n.pzxid, &n.ctime, &n.mtime, &n.owner} {
		*v = d.Int64()
	}
	for _, v := range []*int32{&n.version, &n.creates, &n.aversion} {
		*v = d.Int32()
	}
	return path, n
}

// ErrSnapshot says that a snapshot is damaged or of another version.
var ErrSnapshot = errors.New("snapshot is not one of this version")

// Load makes a tree of a snapshot. The options are as in New, but for Secret
// and FirstSession, which are the snapshot's. Every session has its whole
// time-out from now on.
func Load(o Options, now int64, snapshot []byte) (*Tree, error) {
	d := jute.NewDecoderLimit(snapshot, math.MaxInt32)
	if v := d.Int32(); v != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d", ErrSnapshot, v)
	}
	o.Secret = uint64(d.Int64())
	t := New(o, now)
	t.zxid, t.nextSession = d.Int64(), d.Int64()
	for range max(d.Count(16), 0) {
		s := &session{id: d.Int64(), timeout: d.Int64()}
		t.sessions[s.id] = s
		t.touch(now, s)
	}
	count := d.Count(8)
	t.nodes = make(map[string]*node, max(count, 0))
	for range max(count, 0) {
		path, n := loadNode(d)
		if d.Err() != nil {
			break
		}
		t.nodes[path] = n
		if path == "/" {
			t.root = n
			continue
		}
		parentPath, name, code := split(path)
		parent := t.node(parentPath)
		if code != jute.OK || parent == nil { // sorted, parents come first
			return nil, fmt.Errorf("%w: node %q without a parent", ErrSnapshot, path)
		}
		parent.children = insert(parent.children, name)
		t.dataSize += int64(len(path) + len(n.data))
		t.owned(path, n, true)
	}
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return t, nil
}
