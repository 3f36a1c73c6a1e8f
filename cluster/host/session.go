package host

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
)

// Session is one ZooKeeper session, from its opening to its end. Expired and
// Closed are final: all calls fail for good, and opening another session is
// the node's decision. While disconnected, calls fail at once with ErrNotSent.
// All calls park (p).
type Session interface {
	ID() int64
	State() SessionState
	// Changed waits until the state differs from old and returns it.
	Changed(ctx context.Context, old SessionState) (SessionState, error)

	Get(ctx context.Context, path string) ([]byte, Stat, error)
	GetW(ctx context.Context, path string) ([]byte, Stat, Watch, error)
	// Exists answers ErrNoNode for a missing node; ExistsW leaves a watch then too.
	Exists(ctx context.Context, path string) (Stat, error)
	ExistsW(ctx context.Context, path string) (Stat, Watch, error)
	// Children are sorted by name.
	Children(ctx context.Context, path string) ([]string, Stat, error)
	ChildrenW(ctx context.Context, path string) ([]string, Stat, Watch, error)
	// Create returns the name given, which differs for sequential nodes.
	Create(ctx context.Context, path string, data []byte, mode CreateMode) (name string, zxid int64, err error)
	// Set returns the new Stat; its Mzxid is the transaction's zxid.
	Set(ctx context.Context, path string, data []byte, version int32) (Stat, error)
	Delete(ctx context.Context, path string, version int32) (zxid int64, err error)
	// Multi does all or nothing. On failure the error is that of the failing
	// operation and MultiResult.Failed is its index.
	Multi(ctx context.Context, ops ...ZKOp) (MultiResult, error)
	Sync(ctx context.Context, path string) error
	// Close ends the session at the server, if it can be reached.
	Close(ctx context.Context) error
}

// SessionState is what the client side knows of a session.
type SessionState uint8

// The states of a session.
const (
	Disconnected SessionState = iota
	Connected
	Expired
	Closed
)

// String names the state.
func (s SessionState) String() string {
	switch s {
	case Disconnected:
		return "disconnected"
	case Connected:
		return "connected"
	case Expired:
		return "expired"
	case Closed:
		return "closed"
	default:
		return "unknown"
	}
}

// SessionOptions are those of Dial.
type SessionOptions struct {
	Timeout time.Duration // the session time-out asked for
}

// Stat is a znode's metadata.
type Stat struct {
	Czxid, Mzxid, Pzxid      int64
	Version, Cversion        int32
	EphemeralOwner           int64
	DataLength, NumChildren  int32
	CtimeMillis, MtimeMillis int64
}

// CreateMode is the kind of a new znode.
type CreateMode uint8

// The kinds of znodes.
const (
	Persistent CreateMode = iota
	Ephemeral
	PersistentSequential
	EphemeralSequential
	Container
)

// OpKind is the kind of an operation inside a multi.
type OpKind uint8

// The kinds of operations.
const (
	OpCheck OpKind = iota
	OpCreate
	OpSet
	OpDelete
)

// ZKOp is one operation of a multi. Version -1 matches any.
type ZKOp struct {
	Kind    OpKind
	Path    string
	Data    []byte
	Version int32
	Mode    CreateMode
}

// Check is a multi's operation that fails unless path has that version.
func Check(path string, version int32) ZKOp { return ZKOp{Kind: OpCheck, Path: path, Version: version} }

// CreateOp is a multi's creation of a node.
func CreateOp(path string, data []byte, mode CreateMode) ZKOp {
	return ZKOp{Kind: OpCreate, Path: path, Data: data, Mode: mode}
}

// SetOp is a multi's write of a node.
func SetOp(path string, data []byte, version int32) ZKOp {
	return ZKOp{Kind: OpSet, Path: path, Data: data, Version: version}
}

// DeleteOp is a multi's removal of a node.
func DeleteOp(path string, version int32) ZKOp {
	return ZKOp{Kind: OpDelete, Path: path, Version: version}
}

// MultiResult is a multi's answer. Names and Stats have one entry an operation
// (the name created, the Stat after a set). Failed is -1 on success.
type MultiResult struct {
	Zxid   int64
	Names  []string
	Stats  []Stat
	Failed int
}

// Watch fires once. It survives disconnects and ends with NotWatching when the
// session ends.
type Watch interface {
	Wait(ctx context.Context) (WatchEvent, error)
	Fired() bool
}

// WatchEvent is what a watch saw.
type WatchEvent struct {
	Type WatchType
	Path string
}

// WatchType is the kind of a WatchEvent.
type WatchType uint8

// The kinds of watch events.
const (
	NodeCreated WatchType = iota + 1
	NodeDeleted
	NodeDataChanged
	NodeChildrenChanged
	NotWatching
)

// The errors of sessions. Those marked definite say that nothing was done.
var (
	ErrNotSent                 = cluster.Definite(errors.New("zookeeper: not connected, request not sent"))
	ErrConnectionLoss          = errors.New("zookeeper: connection lost, outcome unknown")
	ErrExpired                 = cluster.Definite(errors.New("zookeeper: session expired"))
	ErrClosed                  = cluster.Definite(errors.New("zookeeper: session closed"))
	ErrNoNode                  = cluster.Definite(errors.New("zookeeper: no node"))
	ErrNodeExists              = cluster.Definite(errors.New("zookeeper: node exists"))
	ErrBadVersion              = cluster.Definite(errors.New("zookeeper: bad version"))
	ErrNotEmpty                = cluster.Definite(errors.New("zookeeper: node has children"))
	ErrNoChildrenForEphemerals = cluster.Definite(errors.New("zookeeper: ephemerals have no children"))
	ErrBadArguments            = cluster.Definite(errors.New("zookeeper: bad arguments"))
)
