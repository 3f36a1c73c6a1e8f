package protocol

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost-dev/fencepost/cluster"
)

// The tree in ZooKeeper, after Apache Fluss. Every node has a small type with
// its path, Encode and a Decode that ignores members it does not know. JSON
// nodes carry an integer "version".
const (
	Root         = "/fluss"
	ElectionPath = Root + "/coordinators/election" // ephemeral sequential children, lowest leads
	EpochPath    = Root + "/coordinators/epoch"    // decimal text; its ZooKeeper version is the fencing token
	ActivePath   = Root + "/coordinators/active"   // ephemeral, of the coordinator in office

	TabletIDsPath            = Root + "/tabletservers/ids"        // ephemeral children, named by server id
	TableAssignmentsPath     = Root + "/tabletservers/tables"     // children named by table id
	PartitionAssignmentsPath = Root + "/tabletservers/partitions" // children named by partition id

	Database   = "fluss" // the only one in use
	TablesPath = Root + "/metadata/databases/" + Database + "/tables"

	TableCounterPath     = Root + "/metadata/table_seqid"
	PartitionCounterPath = Root + "/metadata/partition_seqid"
	WriterCounterPath    = Root + "/metadata/writer_id"

	ConfigPath = Root + "/config/server/global"
	ACLsPath   = Root + "/fluss-acls"
)

// BasePaths lists the directories of the tree, parents before children.
func BasePaths() []string {
	return []string{
		Root, Root + "/coordinators", ElectionPath,
		Root + "/tabletservers", TabletIDsPath, TableAssignmentsPath, PartitionAssignmentsPath,
		Root + "/metadata", Root + "/metadata/databases", Root + "/metadata/databases/" + Database, TablesPath,
		Root + "/config", Root + "/config/server", ConfigPath, ACLsPath,
	}
}

// encode makes a node's payload; the types below always can be encoded.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode znode %T: %v", v, err))
	}
	return b
}

func decode[T any](what string, b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("decode %s: %w", what, err)
	}
	return v, nil
}

// listener is a node's address in the form that Fluss writes.
func listener(node cluster.NodeID) string { return "FLUSS://" + string(node) + ":0" }

// ListenerNode takes the node out of an address as listener wrote it.
func ListenerNode(listeners string) cluster.NodeID {
	first, _, _ := strings.Cut(listeners, ",")
	if at := strings.Index(first, "://"); at >= 0 {
		first = first[at+len("://"):]
	}
	name, _, _ := strings.Cut(first, ":")
	return cluster.NodeID(name)
}

// CoordinatorNode is the payload of the active node and of election children:
// who it is, and the address to reach it at.
type CoordinatorNode struct {
	Version   int    `json:"version"`
	ID        string `json:"id"`
	Listeners string `json:"listeners"`
}

// NewCoordinatorNode is the payload for a coordinator's node.
func NewCoordinatorNode(node cluster.NodeID) CoordinatorNode {
	return CoordinatorNode{Version: 2, ID: string(node), Listeners: listener(node)}
}

// Node is where to call the coordinator.
func (c CoordinatorNode) Node() cluster.NodeID { return ListenerNode(c.Listeners) }

// Encode makes the payload.
func (c CoordinatorNode) Encode() []byte { return encode(c) }

// DecodeCoordinatorNode reads the payload.
func DecodeCoordinatorNode(b []byte) (CoordinatorNode, error) {
	return decode[CoordinatorNode]("coordinator node", b)
}

// ElectionPrefix is the path that a participant creates its sequential child
// under. The guid finds the child again when the answer to its creation is lost.
func ElectionPrefix(guid string) string { return ElectionPath + "/_c_" + guid + "-latch-" }

// ElectionSequence is the number at the end of an election child's name, -1 if
// there is none; the lowest leads.
func ElectionSequence(child string) int64 {
	n, err := strconv.ParseInt(child[strings.LastIndex(child, "-")+1:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// EncodeEpoch makes the epoch node's payload.
func EncodeEpoch(epoch int64) []byte { return []byte(strconv.FormatInt(epoch, 10)) }

// DecodeEpoch reads the epoch node's payload.
func DecodeEpoch(b []byte) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("decode coordinator epoch: %w", err)
	}
	return n, nil
}

// EncodeCounter makes a counter's payload: the next value to hand out, 8 bytes.
func EncodeCounter(next int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(next)) }

// DecodeCounter reads a counter; an empty one is at 0.
func DecodeCounter(b []byte) (int64, error) {
	switch len(b) {
	case 0:
		return 0, nil
	case 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	default:
		return 0, fmt.Errorf("decode counter: %d bytes, want 8", len(b))
	}
}

// TabletNode is a tablet's registration. Its czxid is the tablet's incarnation.
type TabletNode struct {
	Version           int    `json:"version"`
	Listeners         string `json:"listeners"`
	RegisterTimestamp int64  `json:"register_timestamp"`
	Rack              string `json:"rack,omitempty"`
}

// TabletPath is the registration of a tablet.
func TabletPath(server int) string { return TabletIDsPath + "/" + strconv.Itoa(server) }

// NewTabletNode is the payload for a tablet's registration.
func NewTabletNode(node cluster.NodeID, atMillis int64) TabletNode {
	return TabletNode{Version: 3, Listeners: listener(node), RegisterTimestamp: atMillis}
}

// Node is where to call the tablet.
func (t TabletNode) Node() cluster.NodeID { return ListenerNode(t.Listeners) }

// Encode makes the payload.
func (t TabletNode) Encode() []byte { return encode(t) }

// DecodeTabletNode reads the payload.
func DecodeTabletNode(b []byte) (TabletNode, error) { return decode[TabletNode]("tablet node", b) }

// AssignmentNode says which servers hold the replicas of each bucket, by
// preference. TableID is set for partitions only. Table and Partition are names,
// which the deletion of a dropped table needs: its own node is gone by then.
type AssignmentNode struct {
	Version   int              `json:"version"`
	TableID   *int64           `json:"table_id,omitempty"`
	Buckets   map[string][]int `json:"buckets"`
	Table     string           `json:"table,omitempty"`
	Partition string           `json:"partition,omitempty"`
}

// NewAssignment makes the payload; replicas are in the order of buckets.
// Partition is empty for a table without partitions.
func NewAssignment(table string, tableID int64, partition string, replicas [][]int) AssignmentNode {
	a := AssignmentNode{Version: 1, Buckets: map[string][]int{}, Table: table, Partition: partition}
	if partition != "" {
		a.TableID = &tableID
	}
	for i, r := range replicas {
		a.Buckets[strconv.Itoa(i)] = r
	}
	return a
}

// TableAssignmentPath is the assignment of a table without partitions.
func TableAssignmentPath(tableID int64) string {
	return TableAssignmentsPath + "/" + strconv.FormatInt(tableID, 10)
}

// PartitionAssignmentPath is the assignment of a partition.
func PartitionAssignmentPath(partitionID int64) string {
	return PartitionAssignmentsPath + "/" + strconv.FormatInt(partitionID, 10)
}

// BucketPath is a bucket below its assignment.
func BucketPath(assignment string, bucket int) string {
	return assignment + "/buckets/" + strconv.Itoa(bucket)
}

// LeaderIsrPath is a bucket's leader and ISR below its assignment.
func LeaderIsrPath(assignment string, bucket int) string {
	return BucketPath(assignment, bucket) + "/leader_isr"
}

// AssignmentOf is the path of the assignment that a bucket belongs to.
func AssignmentOf(b cluster.BucketParts) string {
	if b.Partition != "" {
		return PartitionAssignmentPath(b.PartitionID)
	}
	return TableAssignmentPath(b.TableID)
}

// Replicas lists the replicas in the order of buckets; a bucket that is missing
// has none.
func (a AssignmentNode) Replicas() [][]int {
	var numbers []int
	for name := range a.Buckets { // sorted below
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	if len(numbers) == 0 {
		return nil
	}
	out := make([][]int, numbers[len(numbers)-1]+1)
	for _, n := range numbers {
		out[n] = a.Buckets[strconv.Itoa(n)]
	}
	return out
}

// Encode makes the payload.
func (a AssignmentNode) Encode() []byte { return encode(a) }

// DecodeAssignment reads the payload.
func DecodeAssignment(b []byte) (AssignmentNode, error) {
	return decode[AssignmentNode]("assignment", b)
}

// EncodeLeaderAndIsr makes the payload of a leader_isr node.
func EncodeLeaderAndIsr(l LeaderAndIsr) []byte {
	if l.ISR == nil {
		l.ISR = []int{}
	}
	return encode(struct {
		Version int `json:"version"`
		LeaderAndIsr
	}{1, l})
}

// DecodeLeaderAndIsr reads the payload of a leader_isr node.
func DecodeLeaderAndIsr(b []byte) (LeaderAndIsr, error) {
	return decode[LeaderAndIsr]("leader and isr", b)
}

// The properties of a table node that are in use.
const (
	propertyKind          = "fencepost.kind"
	propertyReplication   = "table.replication.factor"
	propertyMinISR        = "fencepost.min-isr"
	propertyAutoPartition = "table.auto-partition.num-retention"
)

// TableNode is a table. PartitionKey is set for partitioned tables, BucketKey
// for primary-key tables.
type TableNode struct {
	Version      int               `json:"version"`
	TableID      int64             `json:"table_id"`
	PartitionKey []string          `json:"partition_key,omitempty"`
	BucketKey    []string          `json:"bucket_key,omitempty"`
	BucketCount  int               `json:"bucket_count"`
	Properties   map[string]string `json:"properties"`
	CreatedTime  int64             `json:"created_time"`
	ModifiedTime int64             `json:"modified_time"`
}

// TablePath is a table's node.
func TablePath(name string) string { return path.Join(TablesPath, name) }

// TablePartitionsPath is the parent of a table's partitions; it exists for
// partitioned tables.
func TablePartitionsPath(table string) string { return TablePath(table) + "/partitions" }

// NewTableNode makes the payload of a new table.
func NewTableNode(id int64, spec cluster.TableSpec, atMillis int64) TableNode {
	t := TableNode{
		Version: 1, TableID: id, BucketCount: spec.Buckets, CreatedTime: atMillis, ModifiedTime: atMillis,
		Properties: map[string]string{
			propertyKind:        string(spec.Kind),
			propertyReplication: strconv.Itoa(spec.Replication),
			propertyMinISR:      strconv.Itoa(spec.MinISR),
		},
	}
	if spec.Kind == cluster.KVTable {
		t.BucketKey = []string{"key"}
	}
	if spec.Partitioned {
		t.PartitionKey = []string{"partition"}
	}
	if spec.AutoPartitions > 0 {
		t.Properties[propertyAutoPartition] = strconv.Itoa(spec.AutoPartitions)
	}
	return t
}

// Info is what servers must know of the table.
func (t TableNode) Info(name string) TableInfo {
	number := func(property string, otherwise int) int {
		if n, err := strconv.Atoi(t.Properties[property]); err == nil {
			return n
		}
		return otherwise
	}
	kind := cluster.TableKind(t.Properties[propertyKind])
	if kind == "" {
		kind = cluster.LogTable
		if len(t.BucketKey) > 0 {
			kind = cluster.KVTable
		}
	}
	return TableInfo{
		Name: name, ID: t.TableID, Kind: kind, Buckets: t.BucketCount,
		Replication: number(propertyReplication, 1), MinISR: number(propertyMinISR, 1),
		Partitioned: len(t.PartitionKey) > 0,
	}
}

// AutoPartitions is how many partitions the coordinators keep by themselves, 0
// for none.
func (t TableNode) AutoPartitions() int {
	n, err := strconv.Atoi(t.Properties[propertyAutoPartition])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Encode makes the payload.
func (t TableNode) Encode() []byte { return encode(t) }

// DecodeTable reads the payload. A table node without data is not there yet.
func DecodeTable(b []byte) (TableNode, error) { return decode[TableNode]("table", b) }

// PartitionNode is a partition of a table.
type PartitionNode struct {
	Version     int   `json:"version"`
	TableID     int64 `json:"table_id"`
	PartitionID int64 `json:"partition_id"`
}

// PartitionPath is a partition's node.
func PartitionPath(table, partition string) string {
	return TablePartitionsPath(table) + "/" + partition
}

// Encode makes the payload.
func (p PartitionNode) Encode() []byte { return encode(p) }

// DecodePartition reads the payload.
func DecodePartition(b []byte) (PartitionNode, error) { return decode[PartitionNode]("partition", b) }
