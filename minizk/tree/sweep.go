package tree

import (
	"maps"
	"slices"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Swept is a container or TTL node that has been removed.
type Swept struct {
	Path   string
	Events []Event
	Txn    Txn
}

// Sweep removes empty containers that once had a child, and empty TTL nodes
// that have not been written for their TTL. The real server does it once a
// minute.
func (t *Tree) Sweep(now int64) []Swept {
	var paths []string
	for path := range t.containers { // sorted below
		n := t.nodes[path]
		old := t.opts.ContainerNeverUsed != 0 && now-n.mtime > t.opts.ContainerNeverUsed
		if len(n.children) == 0 && (n.creates > 0 || old) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Sorted(maps.Keys(t.ttls)) {
		n := t.nodes[path]
		if len(n.children) == 0 && now-n.mtime > n.owner&maxTTL {
			paths = append(paths, path)
		}
	}
	swept := make([]Swept, 0, len(paths))
	for _, path := range paths {
		swept = append(swept, t.sweepOne(now, path))
	}
	return swept
}

func (t *Tree) sweepOne(now int64, path string) Swept {
	t.events = t.events[:0]
	r := &request{now: now, zxid: t.next()}
	code := t.deleteContainer(r, path)
	if code == jute.OK {
		t.run(r)
	}
	return Swept{
		Path:   path,
		Events: slices.Clone(t.events),
		Txn:    Txn{Zxid: r.zxid, Time: now, Op: jute.OpDeleteContainer, Paths: []string{path}, Err: code},
	}
}
