package harness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/history"
)

func TestAimKeepsTheScheduleAndAddsWhatFollowsAnEvent(t *testing.T) {
	fault := Fault{Name: "f"}
	base := []Entry{
		{ID: 0, Fault: "f", Trigger: Trigger{At: time.Second}, Target: Target{Who: WhoBucketLeader}, Lease: time.Second},
		{ID: 1, Fault: "f", Trigger: Trigger{At: 2 * time.Second}, Target: Target{Who: WhoCoordinatorLeader}, Lease: time.Second},
		{ID: 2, Fault: "f", Trigger: Trigger{At: 3 * time.Second}, Target: Target{Who: WhoTablet, Count: -1}, Lease: time.Second},
	}
	o := DefaultOptions()
	added := 0
	for o.Seed = range 50 {
		got := Aim(o, base)
		require.NoError(t, ValidateSchedule(got, []Fault{fault}))
		require.Equal(t, got, Aim(o, base), "the same seed gives the same")
		random := 0
		for _, e := range got {
			if e.Trigger.Event == "" {
				random++
				continue
			}
			added++
			require.Equal(t, WhoConcerned, e.Target.Who)
			require.Less(t, e.Trigger.At, 3*time.Second, "whole groups are not aimed")
			require.Less(t, e.Trigger.Wait, 3*time.Second)
		}
		require.Equal(t, len(base), random)
	}
	require.Greater(t, added, 50)
}

func TestSkippingLetsTheFirstPass(t *testing.T) {
	match := skipping(2, func(op history.Op) bool { return op.Node == "a" })
	var got []bool
	for _, node := range []string{"a", "b", "a", "a", "a"} {
		got = append(got, match(history.Op{Node: node}))
	}
	require.Equal(t, []bool{false, false, false, true, true}, got)
	require.Nil(t, skipping(0, nil))
}

func TestWhoAnEventConcerns(t *testing.T) {
	env := Env{Cluster: roster{}}
	event := func(e history.Event) history.Op {
		op, err := history.NewEvent("coordinator-0", e)
		require.NoError(t, err)
		return op
	}
	require.Equal(t, []cluster.NodeID{"coordinator-0"}, env.concerned(event(history.Term{Coordinator: "coordinator-0"})))
	require.Equal(t, []cluster.NodeID{"tablet-1"}, env.concerned(event(history.Role{Server: 1})))
	require.Equal(t, []cluster.NodeID{"tablet-0", "tablet-2"}, env.concerned(event(history.LAI{Leader: 2, ISR: []int{0, 2}})))
	require.Empty(t, env.concerned(event(history.Role{Server: 99})))
	require.Empty(t, env.concerned(history.Op{Value: []byte("no json")}))
}

// roster is a cluster of which only the nodes are asked.
type roster struct{ cluster.Cluster }

func (roster) Nodes() []cluster.NodeInfo {
	return []cluster.NodeInfo{{ID: "coordinator-0"}, {ID: "tablet-0"}, {ID: "tablet-1"}, {ID: "tablet-2"}}
}
