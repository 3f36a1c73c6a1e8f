package harness_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/real"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/nemesis"
	"github.com/fencepost-dev/fencepost/workloads"
)

// realRun runs the register workload with restarts in real time, recording into
// dir.
func realRun(ctx context.Context, dir string, o harness.Options) (h history.History, err error) {
	rec, err := harness.NewRecorder(dir)
	if err != nil {
		return h, err
	}
	world := real.NewWorld(real.Config{Seed: o.Seed, Observe: rec.Observe})
	defer world.Close()
	workload, err := workloads.Named("register")
	if err != nil {
		return h, err
	}
	faults, err := nemesis.Parse("restart")
	if err != nil {
		return h, err
	}
	test := harness.Test{
		Options: o, Workload: workload, Faults: faults, Schedule: harness.DrawSchedule(o, faults),
		HostWorld: world, Cluster: newFake(world, o.Tablets), Recorder: rec, Dir: dir,
	}
	err = world.Run(ctx, func(ctx context.Context, c host.Control) error {
		test.Control = c
		h, err = harness.Run(ctx, test)
		return err
	})
	return h, err
}

func TestTheSameTestRunsInRealTime(t *testing.T) {
	o := options(1)
	o.TimeLimit = 2 * time.Second
	h, err := realRun(t.Context(), t.TempDir(), o)
	require.NoError(t, err)
	problems, err := history.Events[history.Harness](h)
	require.NoError(t, err)
	require.Empty(t, problems)
	verdict, err := checker.NewLinearizable(checker.DefaultLinearizable()).Check(t.Context(), h)
	require.NoError(t, err)
	require.Equal(t, checker.Valid, verdict.Validity, verdict.Summary)
}

const childDir = "FENCEPOST_TEST_CHILD_DIR"

// A harness that is killed with SIGKILL leaves a history that can be judged,
// and nothing older than 200 ms is missing from it.
func TestSIGKILLLeavesAJudgeableFile(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		o := options(1)
		o.TimeLimit = time.Hour
		_, err := realRun(t.Context(), dir, o)
		require.NoError(t, err)
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, harness.HistoryFile)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSIGKILLLeavesAJudgeableFile$")
	child.Env = append(os.Environ(), childDir+"="+dir)
	require.NoError(t, child.Start())
	lines := func() int {
		raw, _ := os.ReadFile(file) // not there yet is as good as empty
		return bytes.Count(raw, []byte("\n"))
	}
	require.Eventually(t, func() bool { return lines() > 500 }, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	h, _, err := history.Read(bytes.NewReader(raw))
	require.NoError(t, err)
	verdict, err := checker.NewLinearizable(checker.DefaultLinearizable()).Check(t.Context(), h)
	require.NoError(t, err)
	require.Equal(t, checker.Valid, verdict.Validity, verdict.Summary)
	_, err = harness.LoadPlan(dir)
	require.NoError(t, err)
	_, err = harness.LoadSchedule(dir, nemesis.All())
	require.NoError(t, err)
}
