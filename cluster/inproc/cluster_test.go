package inproc

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/history"
)

// TestLeaderIsReplaced is the life of a small cluster: a table is written and
// read, its leader killed, and the table written and read again.
func TestLeaderIsReplaced(t *testing.T) {
	l, err := perform(t, experiment{seed: 1, buckets: 1, length: 12 * time.Second, faults: func(ctx context.Context, l *lab) {
		_ = l.c.Sleep(ctx, 2*time.Second)
		before, followers, err := l.cl.Bucket(ctx, "orders", 0)
		require.NoError(t, err)
		require.Len(t, followers, 2)
		require.NoError(t, l.cl.Kill(ctx, before))
		require.False(t, l.cl.Up(before))
		for {
			require.NoError(t, l.c.Sleep(ctx, 50*time.Millisecond))
			after, _, err := l.cl.Bucket(ctx, "orders", 0)
			require.NoError(t, err)
			if after != "" && after != before {
				break
			}
		}
		acked := l.acked
		for l.acked < acked+50 {
			require.NoError(t, l.c.Sleep(ctx, 50*time.Millisecond))
		}
		require.NoError(t, l.cl.StartNode(ctx, before))
		require.NoError(t, l.cl.AwaitReady(ctx, before))
		require.NoError(t, l.cl.AwaitServing(ctx, before))
	}})
	require.NoError(t, err)
	assert.Empty(t, l.judge(t.Context()))
	assert.Greater(t, l.acked, 500)
	assert.Positive(t, l.count(history.KindLAI))
}

// TestSoundClusterUnderChaos holds the sound protocol to linearizability and
// convergence under every fault at once. FENCEPOST_SEEDS="from count" runs
// others, FENCEPOST_BUGS plants bugs, which should fail it.
func TestSoundClusterUnderChaos(t *testing.T) {
	from, count := 1, 6
	if spec := os.Getenv("FENCEPOST_SEEDS"); spec != "" {
		_, err := fmt.Sscan(spec, &from, &count)
		require.NoError(t, err)
	}
	var bugs []string
	if spec := os.Getenv("FENCEPOST_BUGS"); spec != "" {
		bugs = strings.Split(spec, ",")
	}
	policy, err := Plan(bugs)
	require.NoError(t, err)
	for seed := from; seed < from+count; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			e := chaosExperiment(uint64(seed))
			e.policy = policy
			l, err := perform(t, e)
			require.NoError(t, err)
			wrong := l.judge(t.Context())
			for i, line := range wrong {
				if i < 12 {
					t.Error(line)
				}
			}
			t.Logf("acked %d, tries %d, metadata %d, lai %d, refused %d, hung %d, events %d", l.acked, l.tally.Tries,
				l.tally.Metadata, l.count(history.KindLAI), l.count(history.KindRefused), l.count(history.KindHung), len(l.ops))
			if dir := os.Getenv("FENCEPOST_KEEP"); dir != "" {
				f, err := os.Create(fmt.Sprintf("%s/%d.jsonl", dir, seed))
				require.NoError(t, err)
				require.NoError(t, history.Write(f, l.ops))
				require.NoError(t, f.Close())
			}
		})
	}
}

// chaosExperiment draws the shape of an experiment from its seed.
func chaosExperiment(seed uint64) experiment {
	e := experiment{seed: seed, faults: chaos}
	switch seed % 5 {
	case 1:
		e.latency, e.jitter = 5*time.Millisecond, 45*time.Millisecond
	case 2:
		e.recovery = 2 * time.Second
	case 3:
		e.tablets, e.replication = 4, 4
	case 4:
		e.tablets, e.replication = 5, 5
	}
	return e
}

// TestRunsAreRepeated is what every judgement by seed rests on.
func TestRunsAreRepeated(t *testing.T) {
	e := chaosExperiment(3)
	e.length = 10 * time.Second
	first, err := perform(t, e)
	require.NoError(t, err)
	second, err := perform(t, e)
	require.NoError(t, err)
	assert.Equal(t, first.trace, second.trace)
	assert.Len(t, second.ops, len(first.ops))
}

func TestNodesAndErrors(t *testing.T) {
	l, err := perform(t, experiment{seed: 2, length: time.Second, faults: func(ctx context.Context, l *lab) {
		infos := l.cl.Nodes()
		require.Len(t, infos, 6)
		assert.Equal(t, cluster.NodeInfo{ID: "coordinator-0", Role: cluster.RoleCoordinator, Server: -1}, infos[0])
		assert.Equal(t, cluster.NodeInfo{ID: "tablet-2", Role: cluster.RoleTablet, Server: 2}, infos[5])
		assert.True(t, cluster.IsDefinite(l.cl.Kill(ctx, "tablet-9")))
		_, err := l.cl.SlowRecovery(ctx, "coordinator-0", time.Second, 0, time.Second)
		assert.True(t, cluster.IsDefinite(err))
		release, err := l.cl.SlowRecovery(ctx, "tablet-0", time.Second, 2*time.Second, time.Hour)
		require.NoError(t, err)
		assert.Equal(t, time.Second, l.cl.knobs["tablet-0"].PerBucket.Get())
		longer, err := l.cl.SlowRecovery(ctx, "tablet-0", 3*time.Second, 0, 10*time.Millisecond)
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, l.cl.knobs["tablet-0"].PerBucket.Get())
		require.NoError(t, l.c.Sleep(ctx, 20*time.Millisecond))
		assert.Equal(t, time.Second, l.cl.knobs["tablet-0"].PerBucket.Get(), "the lease of the longer one is over")
		require.NoError(t, longer(ctx))
		require.NoError(t, release(ctx))
		assert.Zero(t, l.cl.knobs["tablet-0"].PerBucket.Get())
		assert.Zero(t, l.cl.knobs["tablet-0"].Log.Get())
	}})
	require.NoError(t, err)
	assert.Empty(t, l.judge(t.Context()))
}
