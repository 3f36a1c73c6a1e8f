// Package protocol is what the in-process coordinators, tablets and clients
// say to each other: messages, error codes, the znode tree, and the Policy
// whose fields are the decisions that keep the cluster safe and live. It is
// modelled on Apache Fluss.
package protocol

import (
	"slices"

	"github.com/fencepost-dev/fencepost/cluster"
)

// NoLeader is the leader of a bucket that has none.
const NoLeader = -1

// ServerNode is a server's address in metadata.
type ServerNode struct {
	Server      int            // a tablet's integer id; -1 for a coordinator
	Node        cluster.NodeID // where to call it
	Incarnation int64          // czxid of its registration node, 0 if unknown
}

// TermRef names the term in which a coordinator sent a request. It is carried
// for observers only; no server decides by it. See history.Term.
type TermRef struct {
	Coordinator string
	Zxid        int64
}

// LeaderAndIsr is who leads a bucket, and which replicas are in sync. It is the
// payload of the leader_isr znode.
type LeaderAndIsr struct {
	Leader           int   `json:"leader"`
	LeaderEpoch      int   `json:"leader_epoch"`
	ISR              []int `json:"isr"`
	CoordinatorEpoch int64 `json:"coordinator_epoch"` // its writer's
	BucketEpoch      int   `json:"bucket_epoch"`
}

// Clone copies the ISR.
func (l LeaderAndIsr) Clone() LeaderAndIsr {
	l.ISR = slices.Clone(l.ISR)
	return l
}

// TableInfo is what a server must know of a table.
type TableInfo struct {
	Name        string
	ID          int64
	Kind        cluster.TableKind
	Buckets     int
	Replication int
	MinISR      int
	Partitioned bool
}

// BucketState is one bucket's entry of a NotifyLeaderAndIsr.
type BucketState struct {
	Bucket   cluster.BucketID
	Table    TableInfo
	Replicas []int
	LAI      LeaderAndIsr
	// Incarnation is the receiver's own, as the coordinator knows it; the
	// receiver refuses an entry meant for a former life of its.
	Incarnation int64
}

// NotifyLeaderAndIsr tells a server its role for buckets (Fluss 1018). A
// server that has accepted a leadership and is still activating it answers
// InProgress, and Success only once it serves. It may hold the answer back for
// MaxWaitMillis if that lets it say more.
type NotifyLeaderAndIsr struct {
	Term             TermRef
	CoordinatorEpoch int64
	MaxWaitMillis    int
	Buckets          []BucketState
}

// NotifyStatus is how far a server is with a role.
type NotifyStatus uint8

// The statuses of a notified bucket.
const (
	NotifyFailed NotifyStatus = iota // see the code
	NotifyInProgress
	NotifySuccess
)

// BucketResult is one bucket's answer to a NotifyLeaderAndIsr, with the key that
// pending activations are cleared by.
type BucketResult struct {
	Bucket      cluster.BucketID
	LeaderEpoch int
	Incarnation int64
	Status      NotifyStatus
	Code        Code
}

// NotifyLeaderAndIsrReply answers a NotifyLeaderAndIsr. Code is for the request
// as a whole (23: the coordinator epoch is stale).
type NotifyLeaderAndIsrReply struct {
	Code    Code
	Buckets []BucketResult
}

// BucketMetadata is what clients are told of a bucket.
type BucketMetadata struct {
	Bucket      cluster.BucketID
	Leader      int // NoLeader: none is known
	LeaderEpoch int
	Replicas    []int
}

// UpdateMetadata replaces a server's list of live servers and updates its
// bucket entries (Fluss 1013).
type UpdateMetadata struct {
	Term             TermRef
	CoordinatorEpoch int64
	Coordinator      ServerNode
	Tablets          []ServerNode // live tablets, wholesale; nil leaves the list alone
	Tables           []TableInfo
	Buckets          []BucketMetadata
	Deleted          []cluster.BucketID // forgotten for good: their ids are never used again
	DeletedTables    []int64            // tables dropped, by id
	// Force has entries of buckets replace what is known whatever their epochs. No
	// sound coordinator sets it: see CoordinatorPolicy.SilentUntilConfirmed.
	Force bool
}

// StopReplica has a server give up replicas (Fluss 1019).
type StopReplica struct {
	Term             TermRef
	CoordinatorEpoch int64
	Buckets          []StopBucket
}

// StopBucket is one replica to give up; Delete removes its files.
type StopBucket struct {
	Bucket      cluster.BucketID
	LeaderEpoch int
	Delete      bool
}

// CodeReply is an answer that is nothing but a code.
type CodeReply struct {
	Code    Code
	Message string
}

// AdjustIsr is a leader's proposal of new ISRs (Fluss 1020).
type AdjustIsr struct {
	Server      int
	Incarnation int64
	Buckets     []IsrProposal
}

// IsrProposal is the proposal for one bucket.
type IsrProposal struct {
	Bucket           cluster.BucketID
	LeaderEpoch      int
	BucketEpoch      int
	CoordinatorEpoch int64
	NewISR           []int
}

// AdjustIsrReply has an answer a bucket, in the order of the request.
type AdjustIsrReply struct {
	Code    Code // of the request as a whole, e.g. not the coordinator leader
	Buckets []IsrResult
}

// IsrResult is one bucket's answer. On CodeNone LAI is what ZooKeeper is known
// to hold. On CodeInvalidUpdateVersion (the proposal's bucket epoch is stale) it
// is the current one, if ZooKeeper is known to hold it: a leader whose earlier
// proposal was accepted, and the answer lost, learns it so. A leader that gives a
// proposal up proposes the committed ISR itself (rule S3), which must be accepted
// and raise the bucket epoch.
type IsrResult struct {
	Bucket cluster.BucketID
	Code   Code
	LAI    LeaderAndIsr
}

// ControlledShutdown asks the coordinator to move leaders off a server that is
// about to stop (Fluss 1043). The reply's Remaining counts those it still leads.
type ControlledShutdown struct {
	Server      int
	Incarnation int64
}

// ControlledShutdownReply answers a ControlledShutdown.
type ControlledShutdownReply struct {
	Code      Code
	Remaining []cluster.BucketID
}

// MoveLeader has the coordinator elect another leader for a bucket: server To, or
// any other member of the ISR if To is -1. It is answered by a CodeReply once
// ZooKeeper holds the election; the harness sends it.
type MoveLeader struct {
	Bucket cluster.BucketID
	To     int
}

// GetMetadata asks a server, tablet or coordinator, what it knows (Fluss 1012).
// No tables means all. Client names the asker for events.
type GetMetadata struct {
	Client string
	Tables []string
}

// GetMetadataReply is the answer. Coordinator.Node is "" if unknown.
type GetMetadataReply struct {
	Code        Code
	Coordinator ServerNode
	Tablets     []ServerNode
	Tables      []TableInfo
	Buckets     []BucketMetadata
}

// CreateTable makes a table. It and the three below are DDL, answered by the
// leading coordinator with a CodeReply once ZooKeeper holds the change.
type CreateTable struct{ Spec cluster.TableSpec }

// DropTable removes a table and its data.
type DropTable struct{ Name string }

// CreatePartition adds a partition to a partitioned table.
type CreatePartition struct{ Table, Partition string }

// DropPartition removes one.
type DropPartition struct{ Table, Partition string }

// InitWriter asks for a fresh writer id (Fluss 1026). Tablets pass it on to the
// coordinator, which counts in ZooKeeper.
type InitWriter struct{}

// InitWriterReply carries the id, unique in the cluster for good.
type InitWriterReply struct {
	Code   Code
	Writer int64
}

// Acks says when a write is answered: AcksAll waits for the high watermark.
type Acks int8

// The kinds of acknowledgement, as in Fluss.
const (
	AcksAll    Acks = -1
	AcksNone   Acks = 0
	AcksLeader Acks = 1
)

// PutKv writes rows of one bucket of a primary-key table (Fluss 1016). Writer and
// Seq make it idempotent: a retry carries the same pair.
type PutKv struct {
	Client        string
	Process       int // of the history, for events
	Bucket        cluster.BucketID
	LeaderEpoch   int // as the client's metadata has it; for events only
	Writer        int64
	Seq           int
	Acks          Acks
	TimeoutMillis int
	Rows          []Row
}

// Row is one row to upsert; a nil Value deletes.
type Row struct {
	Key   string
	Value []byte
}

// WriteReply answers PutKv and ProduceLog. LeaderEpoch is the server's own.
type WriteReply struct {
	Code        Code
	LeaderEpoch int
	Base        int64 // the first offset of the batch, the original one for a duplicate
}

// Lookup reads rows by key (Fluss 1017).
type Lookup struct {
	Client        string
	Process       int
	Bucket        cluster.BucketID
	LeaderEpoch   int
	TimeoutMillis int
	Keys          []string
}

// LookupReply has one value a key, nil for an absent one.
type LookupReply struct {
	Code        Code
	LeaderEpoch int
	Values      [][]byte
}

// ProduceLog appends a batch to one bucket of a log table (Fluss 1014).
type ProduceLog struct {
	Client        string
	Process       int
	Bucket        cluster.BucketID
	LeaderEpoch   int
	Writer        int64
	Seq           int
	Acks          Acks
	TimeoutMillis int
	Records       [][]byte
}

// FetchLog reads one or more buckets' logs, for a client (Follower = -1) or a
// follower (Fluss 1015).
type FetchLog struct {
	Client        string
	Process       int
	Follower      int
	Incarnation   int64 // the follower's
	MaxWaitMillis int
	MinRecords    int
	Buckets       []FetchBucket
}

// FetchBucket is one bucket's position. For followers: the leader epoch at which
// it follows, the epoch of its last record (-1: empty log), its synced end, and
// the newest read token that it has seen from this leader (rules S2, S7, S8).
type FetchBucket struct {
	Bucket      cluster.BucketID
	Offset      int64
	MaxRecords  int
	LeaderEpoch int
	LastEpoch   int
	Token       ReadToken
}

// ReadToken is rule S7's: a counter of one leadership of one incarnation.
type ReadToken struct {
	LeaderEpoch int
	Incarnation int64
	Round       int64
}

// LogRecord is one record of a log, as stored and as fetched.
type LogRecord struct {
	Offset int64
	Epoch  int    // leader epoch under which it was appended
	Change Change // what it does to the table
	Writer int64  // -1 for none
	Seq    int
	Batch  int // records of its batch; Index is its place in it
	Index  int
	Key    string
	Value  []byte
}

// Change is a record's kind, as in Fluss.
type Change uint8

// The kinds of records.
const (
	ChangeAppend       Change = iota // +A
	ChangeInsert                     // +I
	ChangeUpdateBefore               // -U
	ChangeUpdateAfter                // +U
	ChangeDelete                     // -D
)

// String returns Fluss's two-letter name.
func (c Change) String() string {
	return [...]string{"+A", "+I", "-U", "+U", "-D"}[c]
}

// FetchLogReply has an answer a bucket.
type FetchLogReply struct {
	Code    Code
	Buckets []FetchedBucket
}

// FetchedBucket is one bucket's answer. Diverging is set instead of records if
// the follower's last epoch does not match (rule S8): it truncates to the
// smaller of its own end of that epoch and DivergingEnd, and asks again.
type FetchedBucket struct {
	Bucket         cluster.BucketID
	Code           Code
	LeaderEpoch    int // the server's
	HW             int64
	LogStart       int64
	LogEnd         int64
	Diverging      bool
	DivergingEpoch int
	DivergingEnd   int64
	Token          ReadToken
	// Digest is the leader's hash over its records below DigestAt, an offset not
	// above HW; 0 there: none. A follower that finds another reports a violation.
	DigestAt int64
	Digest   uint64
	Records  []LogRecord
}

// ListOffsets asks for an offset of a bucket (Fluss 1021).
type ListOffsets struct {
	Client string
	Bucket cluster.BucketID
	Latest bool // the high watermark; else the log's start
}

// ListOffsetsReply answers it.
type ListOffsetsReply struct {
	Code   Code
	Offset int64
}

// Probe asks a tablet what it would answer now, without side effects or
// refusal events. The harness's observer uses it; no client does.
type Probe struct{}

// ProbeReply lists the buckets that the tablet hosts and what its metadata cache
// would answer.
type ProbeReply struct {
	Server      int
	Incarnation int64
	Registered  bool
	Replicas    []ReplicaState
	Metadata    []BucketMetadata
}

// ReplicaState is a replica as its server sees it. Digest is a hash over the
// records below HW.
type ReplicaState struct {
	Bucket      cluster.BucketID
	Leader      int
	LeaderEpoch int
	BucketEpoch int
	Admitted    bool
	ISR         []int
	HW          int64
	LogEnd      int64
	Digest      uint64
}
