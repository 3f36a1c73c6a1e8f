package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// finder is a world that found something.
type finder struct {
	host.World
	found host.Finding
}

func (f finder) Findings() []host.Finding { return []host.Finding{f.found} }

func TestWhatTheWorldFoundBreaksTheHarness(t *testing.T) {
	b := run(t, options(31), func(b *bed) {
		b.test.HostWorld = finder{b.test.HostWorld, host.Finding{Node: "tablet-1", At: time.Second, Detail: "a task blocks outside the kernel"}}
	})
	require.NoError(t, b.err)
	problems := b.problems(t)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Detail, "tablet-1 at 1s: a task blocks outside the kernel")
}

func TestAPanicOfANodeIsNoProblemOfTheHarness(t *testing.T) {
	b := run(t, options(32), func(b *bed) {
		b.test.Workload.Setup = func(ctx context.Context, env harness.Env) error {
			bad := b.test.HostWorld.NewNode("bad", func(context.Context, host.Host) { panic("a node's own mistake") })
			return bad.Start(ctx)
		}
	})
	require.NoError(t, b.err)
	require.Empty(t, b.problems(t))
	nodes, err := history.Events[history.Node](b.hist)
	require.NoError(t, err)
	panicked := 0
	for _, n := range nodes {
		if n.Event.State == history.NodePanicked {
			panicked++
			require.Contains(t, n.Event.Error, "a node's own mistake")
		}
	}
	require.Equal(t, 1, panicked)
}
