package coordinator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// createTable makes a table (p): counter, assignment and table in one guarded
// transaction, so that there never is half a table. It is answered once ZooKeeper
// holds that; leaders come right after.
func (t *term) createTable(ctx context.Context, spec cluster.TableSpec) *protocol.CodeReply {
	if problem := checkSpec(spec); problem != "" {
		return refuse(protocol.CodeInvalidTable, "%s", problem)
	}
	return t.command(ctx, "create table", func(ctx context.Context) *protocol.CodeReply {
		if t.tables[spec.Name] != nil {
			return refuse(protocol.CodeTableExists, "table %s exists", spec.Name)
		}
		replicas := t.assign(spec.Buckets, spec.Replication)
		if replicas == nil {
			return refuse(protocol.CodeInvalidReplication, "replication %d with %d live tablets", spec.Replication, len(t.tablets))
		}
		for {
			reply, again := t.tryCreateTable(ctx, spec, replicas)
			if !again {
				return reply
			}
		}
	})
}

func (t *term) tryCreateTable(ctx context.Context, spec cluster.TableSpec, replicas [][]int) (reply *protocol.CodeReply, again bool) {
	path := protocol.TablePath(spec.Name)
	count, err := t.counter(ctx, protocol.TableCounterPath, 1)
	if err != nil {
		return failed(err), false
	}
	node := protocol.NewTableNode(count.next, spec, int64(t.h.Now()/time.Millisecond))
	info := node.Info(spec.Name)
	ops := []host.ZKOp{count.move, host.CreateOp(path, node.Encode(), host.Persistent)}
	assignment := protocol.TableAssignmentPath(info.ID)
	if spec.Partitioned {
		ops = append(ops, host.CreateOp(protocol.TablePartitionsPath(spec.Name), nil, host.Persistent))
	} else {
		ops = append(ops, assignmentOps(assignment, protocol.NewAssignment(spec.Name, info.ID, "", replicas), len(replicas))...)
	}
	err = t.commit(ctx, "create table", ops, func(ctx context.Context, z zk) (landing, error) {
		data, _, err := z.get(ctx, path)
		if errors.Is(err, host.ErrNoNode) {
			return absent, nil
		}
		if err != nil {
			return absent, err
		}
		if held, err := protocol.DecodeTable(data); err != nil || held.TableID != info.ID {
			return superseded, err
		}
		return landed, nil
	})
	switch {
	case errors.Is(err, host.ErrNodeExists):
		return refuse(protocol.CodeTableExists, "table %s exists", spec.Name), false
	case errors.Is(err, host.ErrBadVersion):
		return nil, true // the counter has moved
	case err != nil:
		return failed(err), false
	}
	tb := t.addTable(info, node.AutoPartitions())
	if !spec.Partitioned {
		t.addPartition(tb, newPartition(tb, "", -1, assignment, replicas))
	}
	t.post("settle new table", t.settleNew)
	return &protocol.CodeReply{}, false
}

// checkSpec says what is wrong with a table, "" if nothing.
func checkSpec(spec cluster.TableSpec) string {
	switch {
	case !validName(spec.Name):
		return "a table needs a name of letters, digits, - and _"
	case spec.Kind != cluster.KVTable && spec.Kind != cluster.LogTable:
		return "a table is of kind kv or log"
	case spec.Buckets < 1:
		return "a table needs at least one bucket"
	case spec.Replication < 1:
		return "a table needs at least one replica"
	case spec.MinISR < 0 || spec.MinISR > spec.Replication:
		return "min-isr lies between 0 and the replication"
	case spec.AutoPartitions > 0 && !spec.Partitioned, spec.AutoPartitions < 0:
		return "only partitioned tables make partitions by themselves"
	default:
		return ""
	}
}

// validName keeps names apart from the separators of bucket ids and paths.
func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", r)
	})
}

// assign places replicas on live tablets, round robin from a random start, so
// that leaders and followers spread; nil if there are too few.
func (t *term) assign(buckets, replication int) [][]int {
	var servers []int
	for _, s := range t.liveTablets() {
		if !t.isLeaving(s.Server) {
			servers = append(servers, s.Server)
		}
	}
	if len(servers) < replication {
		return nil
	}
	start, shift := t.h.Rand().IntN(len(servers)), t.h.Rand().IntN(len(servers))
	out := make([][]int, buckets)
	for i := range out {
		if i > 0 && i%len(servers) == 0 {
			shift++
		}
		first := (start + i) % len(servers)
		out[i] = append(out[i], servers[first])
		for j := 1; j < replication; j++ {
			// Followers begin shift places further on, and skip the leader.
			step := 1 + (shift+j-1)%(len(servers)-1)
			out[i] = append(out[i], servers[(first+step)%len(servers)])
		}
	}
	return out
}

// assignmentOps creates an assignment and the directories of its buckets.
func assignmentOps(path string, a protocol.AssignmentNode, buckets int) []host.ZKOp {
	ops := []host.ZKOp{
		host.CreateOp(path, a.Encode(), host.Persistent),
		host.CreateOp(path+"/buckets", nil, host.Persistent),
	}
	for i := range buckets {
		ops = append(ops, host.CreateOp(protocol.BucketPath(path, i), nil, host.Persistent))
	}
	return ops
}

// dropTable removes a table and its partitions from the metadata in one
// transaction (p). Replicas and assignments follow.
func (t *term) dropTable(ctx context.Context, name string) *protocol.CodeReply {
	return t.command(ctx, "drop table", func(ctx context.Context) *protocol.CodeReply {
		tb := t.tables[name]
		if tb == nil {
			return refuse(protocol.CodeTableMissing, "no table %s", name)
		}
		path := protocol.TablePath(name)
		var ops []host.ZKOp
		if tb.info.Partitioned {
			for _, p := range tb.sortedParts() {
				ops = append(ops, host.DeleteOp(protocol.PartitionPath(name, p.name), -1))
			}
			ops = append(ops, host.DeleteOp(protocol.TablePartitionsPath(name), -1))
		}
		ops = append(ops, host.DeleteOp(path, -1))
		err := t.commit(ctx, "drop table", ops, func(ctx context.Context, z zk) (landing, error) {
			_, err := z.exists(ctx, path)
			if errors.Is(err, host.ErrNoNode) {
				return landed, nil
			}
			return absent, err
		})
		switch {
		case errors.Is(err, host.ErrNoNode) || errors.Is(err, host.ErrNotEmpty):
			t.post("read tables again", func(ctx context.Context) { t.syncAgain(ctx) })
			return refuse(protocol.CodeNotAttempted, "table %s has changed meanwhile", name)
		case err != nil:
			return failed(err)
		}
		for _, p := range tb.sortedParts() {
			t.forgetPartition(tb, p)
		}
		t.forgetTable(tb)
		return &protocol.CodeReply{}
	})
}

func (t *term) syncAgain(ctx context.Context) {
	if t.syncTables(ctx) == nil {
		t.settleNew(ctx)
	}
}

// createPartition adds a partition (p), as createTable does a table.
func (t *term) createPartition(ctx context.Context, table, partition string) *protocol.CodeReply {
	if !validName(partition) {
		return refuse(protocol.CodeInvalidTable, "a partition needs a name of letters, digits, - and _")
	}
	return t.command(ctx, "create partition", func(ctx context.Context) *protocol.CodeReply {
		return t.makePartition(ctx, table, partition)
	})
}

// makePartition is createPartition inside an event (p).
func (t *term) makePartition(ctx context.Context, table, partition string) *protocol.CodeReply {
	tb := t.tables[table]
	switch {
	case tb == nil:
		return refuse(protocol.CodeTableMissing, "no table %s", table)
	case !tb.info.Partitioned:
		return refuse(protocol.CodeInvalidTable, "table %s has no partitions", table)
	case tb.parts[partition] != nil:
		return refuse(protocol.CodePartitionExists, "partition %s exists", partition)
	}
	replicas := t.assign(tb.info.Buckets, tb.info.Replication)
	if replicas == nil {
		return refuse(protocol.CodeInvalidReplication, "replication %d with %d live tablets", tb.info.Replication, len(t.tablets))
	}
	for {
		reply, again := t.tryMakePartition(ctx, tb, partition, replicas)
		if !again {
			return reply
		}
	}
}

func (t *term) tryMakePartition(ctx context.Context, tb *table, name string, replicas [][]int) (reply *protocol.CodeReply, again bool) {
	path := protocol.PartitionPath(tb.info.Name, name)
	count, err := t.counter(ctx, protocol.PartitionCounterPath, 1)
	if err != nil {
		return failed(err), false
	}
	id := count.next
	node := protocol.PartitionNode{Version: 1, TableID: tb.info.ID, PartitionID: id}
	assignment := protocol.PartitionAssignmentPath(id)
	ops := append([]host.ZKOp{count.move, host.CreateOp(path, node.Encode(), host.Persistent)},
		assignmentOps(assignment, protocol.NewAssignment(tb.info.Name, tb.info.ID, name, replicas), len(replicas))...)
	err = t.commit(ctx, "create partition", ops, func(ctx context.Context, z zk) (landing, error) {
		data, _, err := z.get(ctx, path)
		if errors.Is(err, host.ErrNoNode) {
			return absent, nil
		}
		if err != nil {
			return absent, err
		}
		if held, err := protocol.DecodePartition(data); err != nil || held.PartitionID != id {
			return superseded, err
		}
		return landed, nil
	})
	switch {
	case errors.Is(err, host.ErrNodeExists):
		return refuse(protocol.CodePartitionExists, "partition %s exists", name), false
	case errors.Is(err, host.ErrBadVersion):
		return nil, true
	case errors.Is(err, host.ErrNoNode):
		return refuse(protocol.CodeTableMissing, "no table %s", tb.info.Name), false
	case err != nil:
		return failed(err), false
	}
	if t.tables[tb.info.Name] == tb {
		t.addPartition(tb, newPartition(tb, name, id, assignment, replicas))
	}
	t.post("settle new partition", t.settleNew)
	return &protocol.CodeReply{}, false
}

// dropPartition removes a partition (p).
func (t *term) dropPartition(ctx context.Context, table, partition string) *protocol.CodeReply {
	return t.command(ctx, "drop partition", func(ctx context.Context) *protocol.CodeReply {
		return t.removePart(ctx, table, partition)
	})
}

func (t *term) removePart(ctx context.Context, table, partition string) *protocol.CodeReply {
	tb := t.tables[table]
	if tb == nil {
		return refuse(protocol.CodeTableMissing, "no table %s", table)
	}
	p := tb.parts[partition]
	if p == nil || partition == "" {
		return refuse(protocol.CodePartitionMissing, "no partition %s", partition)
	}
	path := protocol.PartitionPath(table, partition)
	err := t.commit(ctx, "drop partition", []host.ZKOp{host.DeleteOp(path, -1)}, func(ctx context.Context, z zk) (landing, error) {
		_, err := z.exists(ctx, path)
		if errors.Is(err, host.ErrNoNode) {
			return landed, nil
		}
		return absent, err
	})
	switch {
	case errors.Is(err, host.ErrNoNode):
		t.forgetPartition(tb, p)
		return refuse(protocol.CodePartitionMissing, "no partition %s", partition)
	case err != nil:
		return failed(err)
	}
	t.forgetPartition(tb, p)
	return &protocol.CodeReply{}
}
