package tree

import (
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// The owners that tell special nodes from ephemerals, as in the real server: a
// container has the smallest long, a TTL node its TTL under a mask.
const (
	containerOwner = -1 << 63
	ttlMask        = int64(-1) << 56
	maxTTL         = 1<<40 - 1 // milliseconds
)

// node is one znode. Its path is its key in the tree.
type node struct {
	data         []byte
	acl          []jute.ACL // shared, never changed in place
	children     []string   // sorted; names, not paths
	czxid, mzxid int64
	pzxid        int64
	ctime, mtime int64
	owner        int64
	version      int32
	creates      int32 // the stored cversion: it counts creations of children only
	aversion     int32
}

// stat translates into what clients see: cversion counts creations and
// deletions there, and owners of containers and TTL nodes are hidden.
func (n *node) stat() jute.Stat {
	s := jute.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Aversion: n.aversion,
		Cversion:    n.creates*2 - int32(len(n.children)),
		DataLength:  int32(len(n.data)),
		NumChildren: int32(len(n.children)),
	}
	if n.ephemeral() {
		s.EphemeralOwner = n.owner
	}
	return s
}

func isTTL(owner int64) bool { return owner&ttlMask == ttlMask }

// ephemeral: it has an owner that is a session.
func (n *node) ephemeral() bool {
	return n.owner != 0 && n.owner != containerOwner && !isTTL(n.owner)
}

// insert adds a name to a sorted list; it must not be there yet.
func insert(list []string, name string) []string {
	if n := len(list); n == 0 || list[n-1] < name { // sequential names come in order
		return append(list, name)
	}
	i, _ := slices.BinarySearch(list, name)
	return slices.Insert(list, i, name)
}

// remove takes a name out of a sorted list, if it is there.
func remove(list []string, name string) []string {
	i, found := slices.BinarySearch(list, name)
	if !found {
		return list
	}
	return slices.Delete(list, i, i+1)
}

// split cuts a path at its last slash: "/a/b" gives "/a" and "b"; the parent
// of "/a" is "", which names the root too. Paths without a slash and paths
// with a zero byte are refused.
func split(path string) (parent, name string, code jute.Code) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", jute.BadArguments
	}
	return path[:i], path[i+1:], jute.OK
}

// special paths are never deleted.
func special(path string) bool {
	return path == "" || path == "/" || path == "/zookeeper" || path == "/zookeeper/quota" || path == "/zookeeper/config"
}

// visible is the name of a parent in watch tables: the root is "/".
func visible(parent string) string {
	if parent == "" {
		return "/"
	}
	return parent
}

// ValidPath reports whether the path could name a node, by the real server's
// rules: absolute, no empty, "." or ".." elements, no trailing slash, no
// control characters, surrogates, private use or specials, and nothing beyond
// the basic plane.
func ValidPath(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	if path == "/" {
		return true
	}
	for element := range strings.SplitSeq(path[1:], "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	for _, c := range path {
		if c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0 {
			return false
		}
	}
	return true
}
