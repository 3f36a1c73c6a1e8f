package nemesis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

func entry(who string, count int, params any) harness.Entry {
	return harness.Entry{
		Trigger: harness.Trigger{At: 2 * time.Second}, Target: harness.Target{Who: who, Count: count},
		Params: encode(params), Lease: 12 * time.Second,
	}
}

func TestRestartTakesNodesDownAndUp(t *testing.T) {
	for mode, word := range map[string]string{modeKill: "kill", modePowerLoss: "power-loss", modeGraceful: "shutdown"} {
		t.Run(mode, func(t *testing.T) {
			p := play(t, restart(), 8*time.Second, entry(harness.WhoTablet, 2, restartParams{Mode: mode, Down: wait(time.Second)}))
			require.Equal(t, checker.Valid, p.coverage(t).Validity, p.coverage(t).Summary)
			from, to, targets := p.window(t, 0)
			require.Len(t, targets, 2)
			require.InDelta(t, 1600*time.Millisecond+settleTime, to-from, float64(50*time.Millisecond))
			require.Equal(t, []string{
				word + " " + targets[0], word + " " + targets[1], "start " + targets[1], "start " + targets[0],
				"ready " + targets[0], "ready " + targets[1],
			}, p.calls)
		})
	}
}

func TestARollingRestartTakesOneAfterTheOther(t *testing.T) {
	p := play(t, restart(), 20*time.Second,
		entry(harness.WhoTablet, -1, restartParams{Mode: modeGraceful, Down: wait(100 * time.Millisecond), Rolling: true}))
	_, _, targets := p.window(t, 0)
	require.Len(t, targets, 4)
	var want []string
	for _, id := range targets {
		want = append(want, "shutdown "+id, "start "+id, "serving "+id)
	}
	require.Equal(t, want, p.calls)
}

func TestTheEndOfTheLoadCutsARestartShort(t *testing.T) {
	p := play(t, restart(), 3*time.Second, entry(harness.WhoTablet, 0, restartParams{Mode: modeKill, Down: wait(time.Minute)}))
	from, to, targets := p.window(t, 0)
	require.Less(t, to-from, 1500*time.Millisecond)
	require.Equal(t, []string{"kill " + targets[0], "start " + targets[0]}, p.calls)
}

func TestSlowRecoveryIsSlowEverywhereAndThenNot(t *testing.T) {
	p := play(t, slowRecovery(), 10*time.Second, entry(harness.WhoTablet, 0, slowParams{
		PerBucket: wait(4 * time.Second), Mode: modeKill, Down: wait(time.Second), Hold: wait(5 * time.Second),
	}))
	require.Empty(t, p.slow)
	from, to, targets := p.window(t, 0)
	require.Len(t, targets, 4)
	require.Equal(t, 5*time.Second, to-from)
	require.Equal(t, checker.Unknown, p.coverage(t).Validity, "the stage restores nothing")
}

func TestSessionsAreLostBothWays(t *testing.T) {
	for how, call := range map[string]string{howTakeover: "expire ", howBlackHole: "hold "} {
		t.Run(how, func(t *testing.T) {
			p := play(t, sessionLoss(), 15*time.Second, entry(harness.WhoTablet, 0, lossParams{How: how}))
			require.Equal(t, checker.Valid, p.coverage(t).Validity, p.coverage(t).Summary)
			_, _, targets := p.window(t, 0)
			require.Equal(t, call+targets[0], p.calls[0])
			require.False(t, p.held[cluster.NodeID(targets[0])])
		})
	}
}

func TestTheOldLeaderIsReplacedAndComesBack(t *testing.T) {
	for _, variant := range []string{variantReconnect, variantDual, variantCreator} {
		t.Run(variant, func(t *testing.T) {
			p := play(t, oldLeader(), 20*time.Second,
				entry(harness.WhoCoordinatorLeader, 0, oldLeaderParams{Variant: variant, Linger: wait(time.Second)}))
			require.Equal(t, checker.Valid, p.coverage(t).Validity, p.coverage(t).Summary)
			require.Equal(t, []string{"hold coordinator-0", "release coordinator-0"}, p.calls)
			if variant == variantDual {
				require.ElementsMatch(t, []cluster.NodeID{"coordinator-0", "coordinator-0", "coordinator-2"}, p.ddl)
			} else {
				require.Empty(t, p.ddl)
			}
			did := ""
			for _, op := range p.h.Ops() {
				if op.Process == history.Nemesis && op.Type == history.Info {
					did = string(op.Value)
				}
			}
			require.Contains(t, did, `"old":"coordinator-0","new":"coordinator-2"`)
		})
	}
}

func TestUnknownParametersAreRefused(t *testing.T) {
	require.ErrorContains(t, decode(harness.Entry{ID: 3, Params: []byte(`{"mod":"kill"}`)}, &restartParams{}), `unknown field "mod"`)
	require.ErrorContains(t, decode(harness.Entry{Params: []byte(`{"down":"-1s"}`)}, &restartParams{}), "negative")
}

// alone is a cluster without any capability.
type alone struct{ cluster.Cluster }

func (alone) Nodes() []cluster.NodeInfo { return nil }

func TestFaultsSayWhatTheyNeed(t *testing.T) {
	for _, f := range All() {
		err := f.Supports(alone{})
		require.ErrorIs(t, err, cluster.ErrUnsupported, f.Name)
		require.True(t, strings.HasPrefix(err.Error(), "the cluster cannot "), err)
	}
}
