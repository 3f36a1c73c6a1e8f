package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// bell is a fault that does nothing for a second.
type bell struct{ env harness.Env }

func (b bell) Invoke(ctx context.Context, e harness.Entry, w *harness.Window) (any, error) {
	nodes, err := b.env.Resolve(ctx, e)
	if err != nil {
		return nil, err
	}
	w.Start(nodes...)
	err = b.env.Host.Sleep(ctx, time.Second)
	w.End("rang")
	return nil, err
}

func (bell) Heal(context.Context) error { return nil }

func bellFault() harness.Fault {
	return harness.Fault{
		Name: "bell", New: func(env harness.Env) harness.Nemesis { return bell{env} },
		Effects: func(harness.Options) []checker.Effect { return nil },
	}
}

// starts are the times at which each entry began, since the start of the load.
func starts(t *testing.T, b *bed) map[int]time.Duration {
	t.Helper()
	var load time.Duration
	phases, err := history.Events[history.Phase](b.hist)
	require.NoError(t, err)
	for _, p := range phases {
		if p.Event.Name == history.PhaseLoad {
			load = p.Op.Time
		}
	}
	out := map[int]time.Duration{}
	faults, err := history.Events[history.Fault](b.hist)
	require.NoError(t, err)
	for _, f := range faults {
		if f.Event.State == history.StateStart {
			out[f.Event.ID] = f.Op.Time - load
		}
	}
	return out
}

func TestTriggersStartEntries(t *testing.T) {
	first := 0
	any := harness.Target{Who: harness.WhoAny}
	b := run(t, options(21), func(b *bed) {
		b.test.Faults = []harness.Fault{bellFault()}
		b.test.Schedule = []harness.Entry{
			{ID: 0, Fault: "bell", Trigger: harness.Trigger{At: 3 * time.Second}, Target: any, Lease: time.Second},
			{ID: 1, Fault: "bell", Trigger: harness.Trigger{Ops: 2000}, Target: any, Lease: time.Second},
			{ID: 2, Fault: "bell", Trigger: harness.Trigger{AfterFault: &first, Wait: 500 * time.Millisecond}, Target: any, Lease: time.Second},
			{ID: 3, Fault: "bell", Trigger: harness.Trigger{
				At: 3500 * time.Millisecond, Event: history.KindFault, Where: map[string]string{"state": "end", "id": "0"},
			}, Target: any, Lease: time.Second},
			{ID: 4, Fault: "bell", Trigger: harness.Trigger{Event: history.KindTerm}, Target: any, Lease: time.Second},
			{ID: 6, Fault: "bell", Trigger: harness.Trigger{
				At: 7 * time.Second, Gate: &harness.Gate{API: "request", To: "tablet-0"},
			}, Target: any, Lease: time.Second},
			{ID: 5, Fault: "bell", Trigger: harness.Trigger{At: time.Hour}, Target: any, Lease: time.Second},
		}
	})
	require.NoError(t, b.err)
	require.Empty(t, b.problems(t))
	at := starts(t, b)
	require.Equal(t, 3*time.Second, at[0])
	require.InDelta(t, 10*time.Second, at[1], float64(2*time.Second), "2,000 operations at 200 a second")
	require.Equal(t, 4500*time.Millisecond, at[2])
	require.Equal(t, 4*time.Second, at[3])
	require.Greater(t, at[6], 7*time.Second, "the next request to tablet-0")
	require.Less(t, at[6], 7100*time.Millisecond)
	require.NotContains(t, at, 4, "no such event came")
	require.NotContains(t, at, 5, "the load ended first")
}

func TestTargetsThatNobodyCanNameAreNoProblemOfTheHarness(t *testing.T) {
	b := run(t, options(22), func(b *bed) {
		b.test.Faults = []harness.Fault{bellFault()}
		b.test.Schedule = []harness.Entry{
			{Fault: "bell", Target: harness.Target{Who: harness.WhoCoordinatorLeader}, Lease: time.Second},
		}
	})
	require.NoError(t, b.err)
	require.Empty(t, b.problems(t))
	require.Equal(t, 1, b.count(func(op history.Op) bool { return op.Process == history.Nemesis && op.Error != "" }))
}

func TestTargetsTakeAsManyAsTheyAskFor(t *testing.T) {
	want := map[int]int{0: 1, 1: 2, 2: 3, 3: 1, 4: 2, 5: 1}
	b := run(t, options(23), func(b *bed) {
		b.test.Faults = []harness.Fault{bellFault()}
		for id, target := range []harness.Target{
			{Who: harness.WhoTablet},
			{Who: harness.WhoTablet, Count: 2},
			{Who: harness.WhoAny, Count: -1},
			{Who: harness.WhoMinority},
			{Who: harness.WhoMajority},
			{Who: harness.WhoNode, Nodes: []cluster.NodeID{"tablet-2"}},
		} {
			b.test.Schedule = append(b.test.Schedule, harness.Entry{ID: id, Fault: "bell", Target: target, Lease: time.Second})
		}
	})
	require.NoError(t, b.err)
	faults, err := history.Events[history.Fault](b.hist)
	require.NoError(t, err)
	for _, f := range faults {
		require.Len(t, f.Event.Target, want[f.Event.ID], "entry %d", f.Event.ID)
		if f.Event.ID == 5 {
			require.Equal(t, []string{"tablet-2"}, f.Event.Target)
		}
	}
}
