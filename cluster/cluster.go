// Package cluster says what a system under test is to the harness: nodes that
// start and stop, connections that clients use, and capabilities that faults
// ask for by type assertion, never by name. No implementation lives here.
package cluster

import "context"

// NodeID names a node: coordinator-0, tablet-2, client-7, control.
type NodeID string

// Role is what a node does in the cluster.
type Role string

// The roles of nodes.
const (
	RoleCoordinator Role = "coordinator"
	RoleTablet      Role = "tablet"
	RoleZooKeeper   Role = "zookeeper"
)

// Cluster is a system under test. Every context comes from the Host of the
// control node (package host); every call parks the calling task.
type Cluster interface {
	// Nodes lists all nodes that the cluster was built with, in a fixed order.
	Nodes() []NodeInfo
	// Start brings every node up and returns when a table can be created.
	Start(ctx context.Context) error
	// Dial opens one client's connection. Node is a preferred first contact,
	// or empty. The client's name stands in events and in gates.
	Dial(ctx context.Context, client, node NodeID) (Conn, error)
	// Stop ends every node and returns when nothing of the cluster is left.
	Stop(ctx context.Context) error
}

// NodeInfo describes a node. Server is its integer id among the tablets, or -1.
type NodeInfo struct {
	ID     NodeID `json:"id"`
	Role   Role   `json:"role"`
	Server int    `json:"server"`
}

// Conn is one client's connection to the cluster. What it can do is found by
// type assertion: KV, Log, Admin.
type Conn interface {
	Close(ctx context.Context) error
}

// Attempts says what an operation cost: the node that gave the last answer and
// how many requests were sent, metadata requests included. It is filled in
// whether the call succeeds or not.
type Attempts struct {
	Node     NodeID
	Tries    int
	Metadata int // those of Tries that asked for metadata
}

// TableKind tells log tables from primary-key tables.
type TableKind string

// The kinds of tables.
const (
	KVTable  TableKind = "kv"
	LogTable TableKind = "log"
)

// TableSpec describes a table to create.
type TableSpec struct {
	Name        string    `json:"name"`
	Kind        TableKind `json:"kind"`
	Buckets     int       `json:"buckets"`
	Replication int       `json:"replication"`
	MinISR      int       `json:"min_isr"`
	Partitioned bool      `json:"partitioned,omitempty"`
	// AutoPartitions is how many partitions the cluster itself keeps of a
	// partitioned table: it goes on creating new ones and drops the oldest.
	AutoPartitions int `json:"auto_partitions,omitempty"`
}

// Admin creates and drops tables.
type Admin interface {
	CreateTable(ctx context.Context, spec TableSpec) (Attempts, error)
	DropTable(ctx context.Context, name string) (Attempts, error)
	CreatePartition(ctx context.Context, table, partition string) (Attempts, error)
	DropPartition(ctx context.Context, table, partition string) (Attempts, error)
}

// KV reads and writes single keys of primary-key tables. A nil value is an
// absent key. Errors are definite (IsDefinite) or unknown.
type KV interface {
	Put(ctx context.Context, table, key string, value []byte) (Attempts, error)
	Get(ctx context.Context, table, key string) ([]byte, Attempts, error)
}

// Record is one record of a log, as a fetch returns it. For a KV table it is a
// row of the changelog.
type Record struct {
	Offset int64
	Change string // +A, +I, -U, +U, -D
	Key    string
	Value  []byte
	Writer int64 // idempotent writer, -1 for none
	Seq    int   // its batch sequence
}

// Log appends to and reads from buckets of log tables, and reads changelogs of
// KV tables. Fetch returns records from offset on, up to the high watermark,
// the next offset to ask for, and the high watermark.
type Log interface {
	Buckets(ctx context.Context, table string) (int, Attempts, error)
	Append(ctx context.Context, table string, bucket int, records [][]byte) (base int64, a Attempts, err error)
	Fetch(ctx context.Context, table string, bucket int, offset int64, max int) (records []Record, next, hw int64, a Attempts, err error)
}
