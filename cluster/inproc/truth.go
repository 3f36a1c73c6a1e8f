package inproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// truth is a bucket as ZooKeeper has it. Leader is NoLeader and LeaderEpoch -1
// before its first election.
type truth struct {
	id       cluster.BucketID
	replicas []int
	lai      protocol.LeaderAndIsr
}

func (b truth) inSync(server int) bool { return slices.Contains(b.lai.ISR, server) }

// leadingCoordinator is the coordinator in office: the owner of the active node,
// or while there is none "".
func leadingCoordinator(ctx context.Context, s host.Session) (cluster.NodeID, error) {
	data, _, err := s.Get(ctx, protocol.ActivePath)
	if errors.Is(err, host.ErrNoNode) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the coordinator in office: %w", err)
	}
	node, err := protocol.DecodeCoordinatorNode(data)
	if err != nil {
		return "", err
	}
	return node.Node(), nil
}

// readBuckets reads every bucket of every table, in the order of table names,
// partitions and numbers. What is created or dropped meanwhile may be missing.
func readBuckets(ctx context.Context, s host.Session) ([]truth, error) {
	names, err := children(ctx, s, protocol.TablesPath)
	if err != nil {
		return nil, err
	}
	var all []truth
	for _, name := range names {
		data, err := get(ctx, s, protocol.TablePath(name))
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			continue // dropped, or not there yet
		}
		table, err := protocol.DecodeTable(data)
		if err != nil {
			return nil, err
		}
		buckets, err := readTable(ctx, s, table.Info(name))
		if err != nil {
			return nil, err
		}
		all = append(all, buckets...)
	}
	return all, nil
}

func readTable(ctx context.Context, s host.Session, info protocol.TableInfo) ([]truth, error) {
	if !info.Partitioned {
		return readAssignment(ctx, s, info, "", -1)
	}
	names, err := children(ctx, s, protocol.TablePartitionsPath(info.Name))
	if err != nil {
		return nil, err
	}
	var all []truth
	for _, name := range names {
		data, err := get(ctx, s, protocol.PartitionPath(info.Name, name))
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			continue
		}
		partition, err := protocol.DecodePartition(data)
		if err != nil {
			return nil, err
		}
		buckets, err := readAssignment(ctx, s, info, name, partition.PartitionID)
		if err != nil {
			return nil, err
		}
		all = append(all, buckets...)
	}
	return all, nil
}

func readAssignment(
	ctx context.Context, s host.Session, info protocol.TableInfo, partition string, partitionID int64,
) ([]truth, error) {
	path := protocol.TableAssignmentPath(info.ID)
	if partition != "" {
		path = protocol.PartitionAssignmentPath(partitionID)
	}
	data, err := get(ctx, s, path)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	assignment, err := protocol.DecodeAssignment(data)
	if err != nil {
		return nil, err
	}
	all := make([]truth, 0, info.Buckets)
	for i, replicas := range assignment.Replicas() {
		b := truth{
			id: cluster.NewBucket(info.Name, info.ID, partition, partitionID, i), replicas: replicas,
			lai: protocol.LeaderAndIsr{Leader: protocol.NoLeader, LeaderEpoch: -1},
		}
		data, err := get(ctx, s, protocol.LeaderIsrPath(path, i))
		if err != nil {
			return nil, err
		}
		if len(data) > 0 {
			if b.lai, err = protocol.DecodeLeaderAndIsr(data); err != nil {
				return nil, err
			}
		}
		all = append(all, b)
	}
	return all, nil
}

// get reads a node; a missing one reads as empty.
func get(ctx context.Context, s host.Session, path string) ([]byte, error) {
	data, _, err := s.Get(ctx, path)
	if err != nil && !errors.Is(err, host.ErrNoNode) {
		return nil, fmt.Errorf("read %s: %w", strconv.Quote(path), err)
	}
	return data, nil
}

// children lists a node's children, sorted; a missing one has none.
func children(ctx context.Context, s host.Session, path string) ([]string, error) {
	names, _, err := s.Children(ctx, path)
	if err != nil && !errors.Is(err, host.ErrNoNode) {
		return nil, fmt.Errorf("list %s: %w", strconv.Quote(path), err)
	}
	return names, nil
}
