package tablet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

func TestTheHigherLeaderEpochWins(t *testing.T) {
	none := protocol.NoLeader
	for _, c := range []struct {
		name                                 string
		leader, epoch, nextLeader, nextEpoch int
		wantLeader, wantEpoch                int
		changed                              bool
	}{
		{"newer leader", 1, 4, 2, 5, 2, 5, true},
		{"newer none", 1, 4, none, 5, none, 5, true},
		{"older leader", 1, 4, 2, 3, 1, 4, false},
		{"older leader over none", none, 4, 2, 3, none, 4, false},
		{"a leader beats none", none, 4, 2, 4, 2, 4, true},
		{"none does not beat a leader", 1, 4, none, 4, 1, 4, false},
		{"an epoch has one leader", 1, 4, 2, 4, 1, 4, false},
		{"a repeat", 1, 4, 1, 4, 1, 4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMetadata()
			id := cluster.NewBucket("t", 3, "", -1, 0)
			require.True(t, m.set(protocol.BucketMetadata{Bucket: id, Leader: c.leader, LeaderEpoch: c.epoch}, true))
			require.Equal(t, c.changed, m.set(protocol.BucketMetadata{Bucket: id, Leader: c.nextLeader, LeaderEpoch: c.nextEpoch}, true))
			require.Equal(t, c.wantLeader, m.all()[0].Leader)
			require.Equal(t, c.wantEpoch, m.all()[0].LeaderEpoch)
		})
	}
}

func TestDeletedBucketsDoNotComeBack(t *testing.T) {
	m := newMetadata()
	id := cluster.NewBucket("t", 3, "", -1, 0)
	entry := protocol.BucketMetadata{Bucket: id, Leader: 1, LeaderEpoch: 1}
	m.table(3).info, m.table(3).known = protocol.TableInfo{Name: "t", ID: 3}, true
	m.set(entry, true)
	require.Len(t, m.answer(&protocol.GetMetadata{}).Tables, 1)
	_, was := m.remove(id)
	require.True(t, was)
	require.Empty(t, m.answer(&protocol.GetMetadata{}).Tables, "the last bucket takes the table along")
	require.False(t, m.set(entry, true))
	require.Empty(t, m.all())
}

func TestAnswersAreByNameAndInOrder(t *testing.T) {
	m := newMetadata()
	for _, id := range []int64{5, 2, 9} {
		name := string(rune('a' + id))
		m.table(id).info, m.table(id).known = protocol.TableInfo{Name: name, ID: id}, true
		for bucket := 2; bucket >= 0; bucket-- {
			m.set(protocol.BucketMetadata{Bucket: cluster.NewBucket(name, id, "", -1, bucket)}, true)
		}
	}
	reply := m.answer(&protocol.GetMetadata{Tables: []string{"f"}})
	require.Len(t, reply.Tables, 1)
	require.Equal(t, cluster.NewBucket("f", 5, "", -1, 0), reply.Buckets[0].Bucket)
	reply = m.answer(&protocol.GetMetadata{})
	require.Len(t, reply.Buckets, 9)
	require.Equal(t, int64(2), reply.Tables[0].ID)
}
