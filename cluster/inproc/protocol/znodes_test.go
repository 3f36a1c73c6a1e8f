package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
)

// TestPayloadsAreFluss compares payloads with those dumped from a real cluster
// (as seen in Apache Fluss 0.9.1), as far as we have the same members.
func TestPayloadsAreFluss(t *testing.T) {
	lai := LeaderAndIsr{Leader: 0, LeaderEpoch: 3, ISR: []int{0, 2}, CoordinatorEpoch: 4, BucketEpoch: 7}
	assert.JSONEq(t, `{"version":1,"leader":0,"leader_epoch":3,"isr":[0,2],"coordinator_epoch":4,"bucket_epoch":7}`,
		string(EncodeLeaderAndIsr(lai)))
	assert.JSONEq(t, `{"version":1,"leader":-1,"leader_epoch":0,"isr":[],"coordinator_epoch":0,"bucket_epoch":0}`,
		string(EncodeLeaderAndIsr(LeaderAndIsr{Leader: NoLeader})))
	assert.JSONEq(t, `{"version":2,"id":"coordinator-0","listeners":"FLUSS://coordinator-0:0"}`,
		string(NewCoordinatorNode("coordinator-0").Encode()))
	assert.JSONEq(t, `{"version":3,"listeners":"FLUSS://tablet-1:0","register_timestamp":12}`,
		string(NewTabletNode("tablet-1", 12).Encode()))
	assert.JSONEq(t, `{"version":1,"buckets":{"0":[0,2],"1":[2,1]},"table":"orders"}`,
		string(NewAssignment("orders", 7, "", [][]int{{0, 2}, {2, 1}}).Encode()))
	assert.JSONEq(t, `{"version":1,"table_id":7,"buckets":{"0":[1]},"table":"orders","partition":"p"}`,
		string(NewAssignment("orders", 7, "p", [][]int{{1}}).Encode()))
	assert.Equal(t, "-1", string(EncodeEpoch(-1)))
	assert.Equal(t, []byte{0, 0, 0, 0, 0, 0, 1, 2}, EncodeCounter(258))
}

func TestPayloadsSurvive(t *testing.T) {
	lai := LeaderAndIsr{Leader: 1, LeaderEpoch: 3, ISR: []int{1, 2}, CoordinatorEpoch: 4, BucketEpoch: 7}
	got, err := DecodeLeaderAndIsr(EncodeLeaderAndIsr(lai))
	require.NoError(t, err)
	assert.Equal(t, lai, got)

	spec := cluster.TableSpec{Name: "orders", Kind: cluster.KVTable, Buckets: 3, Replication: 2, MinISR: 1, Partitioned: true, AutoPartitions: 4}
	table, err := DecodeTable(NewTableNode(7, spec, 1).Encode())
	require.NoError(t, err)
	assert.Equal(t, TableInfo{Name: "orders", ID: 7, Kind: cluster.KVTable, Buckets: 3, Replication: 2, MinISR: 1, Partitioned: true}, table.Info("orders"))
	assert.Equal(t, 4, table.AutoPartitions())

	a, err := DecodeAssignment(NewAssignment("orders", 7, "p", [][]int{{1, 2}, {2, 0}}).Encode())
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1, 2}, {2, 0}}, a.Replicas())

	p, err := DecodePartition(PartitionNode{Version: 1, TableID: 7, PartitionID: 9}.Encode())
	require.NoError(t, err)
	assert.EqualValues(t, 9, p.PartitionID)
	for _, n := range []int64{0, 1, 1 << 40} {
		c, err := DecodeCounter(EncodeCounter(n))
		require.NoError(t, err)
		assert.Equal(t, n, c)
		e, err := DecodeEpoch(EncodeEpoch(n))
		require.NoError(t, err)
		assert.Equal(t, n, e)
	}
}

// TestParsingIsTolerant reads what newer and real systems write: members that
// are not known, and members that are missing.
func TestParsingIsTolerant(t *testing.T) {
	lai, err := DecodeLeaderAndIsr([]byte(`{"version":2,"leader":2,"leader_epoch":1,"isr":[2],"coordinator_epoch":0,"bucket_epoch":5,"standby_replicas":[1]}`))
	require.NoError(t, err)
	assert.Equal(t, LeaderAndIsr{Leader: 2, LeaderEpoch: 1, ISR: []int{2}, BucketEpoch: 5}, lai)

	table, err := DecodeTable([]byte(`{"version":1,"table_id":3,"bucket_key":["a"],"bucket_count":2,"properties":{},"custom_properties":{},"comment":"x"}`))
	require.NoError(t, err)
	assert.Equal(t, TableInfo{Name: "t", ID: 3, Kind: cluster.KVTable, Buckets: 2, Replication: 1, MinISR: 1}, table.Info("t"))

	tablet, err := DecodeTabletNode([]byte(`{"version":4,"listeners":"FLUSS://tablet-0:9123,CLIENT://x:1","register_timestamp":1,"cpu_cores":2}`))
	require.NoError(t, err)
	assert.Equal(t, cluster.NodeID("tablet-0"), tablet.Node())

	for _, bad := range []string{"", "{", `"x"`} {
		_, err := DecodeLeaderAndIsr([]byte(bad))
		require.Error(t, err, bad)
		_, err = DecodeEpoch([]byte("x" + bad))
		require.Error(t, err, bad)
	}
	_, err = DecodeCounter([]byte{1, 2})
	require.Error(t, err)
	zero, err := DecodeCounter(nil)
	require.NoError(t, err)
	assert.Zero(t, zero)
}

func TestPaths(t *testing.T) {
	assert.Equal(t, "/fluss/tabletservers/tables/7/buckets/3/leader_isr", LeaderIsrPath(TableAssignmentPath(7), 3))
	assert.Equal(t, "/fluss/tabletservers/partitions/9/buckets/0/leader_isr", LeaderIsrPath(PartitionAssignmentPath(9), 0))
	assert.Equal(t, "/fluss/metadata/databases/fluss/tables/orders/partitions/p", PartitionPath("orders", "p"))
	assert.EqualValues(t, 17, ElectionSequence("_c_0af3-latch-0000000017"))
	assert.EqualValues(t, -1, ElectionSequence("something"))
	for _, b := range []cluster.BucketID{cluster.NewBucket("orders", 7, "", -1, 0), cluster.NewBucket("orders", 7, "p", 9, 0)} {
		parts, err := b.Parts()
		require.NoError(t, err)
		if parts.Partition == "" {
			assert.Equal(t, TableAssignmentPath(7), AssignmentOf(parts))
		} else {
			assert.Equal(t, PartitionAssignmentPath(9), AssignmentOf(parts))
		}
	}
	seen := map[string]bool{"": true}
	for _, p := range BasePaths() {
		at := p
		for at[len(at)-1] != '/' {
			at = at[:len(at)-1]
		}
		assert.True(t, seen[at[:len(at)-1]], "the parent of %s comes first", p)
		seen[p] = true
	}
}
