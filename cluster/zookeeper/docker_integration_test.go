//go:build integration

package zookeeper

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
)

func startDocker(t *testing.T, c Config) (Server, client.APIClient) {
	t.Helper()
	c.Log = zaptest.NewLogger(t)
	s, err := Docker{}.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	docker, _, err := connect(t.Context(), c.Log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, docker.Close()) })
	return s, docker
}

func TestDockerServerIsReadyHurtWitnessedAndRemoved(t *testing.T) {
	began := time.Now()
	s, docker := startDocker(t, Config{})
	t.Logf("ready after %v: %v", time.Since(began), s.Info())
	require.NoError(t, probe(t.Context(), s.Addresses()[0]))
	require.Equal(t, "3.9.5", s.Info().Version)
	members, ok := As[Members](s)
	require.True(t, ok)
	leader, err := members.Leader(t.Context())
	require.NoError(t, err)
	require.Zero(t, leader)

	require.NoError(t, members.Pause(t.Context(), 0))
	require.Error(t, probe(t.Context(), s.Addresses()[0]))
	require.NoError(t, members.Resume(t.Context(), 0))
	require.NoError(t, members.Kill(t.Context(), 0))
	require.Error(t, probe(t.Context(), s.Addresses()[0]))
	require.NoError(t, members.Restart(t.Context(), 0))
	require.NoError(t, probe(t.Context(), s.Addresses()[0]))

	witness, ok := As[Witness](s)
	require.True(t, ok)
	dir := t.TempDir()
	require.NoError(t, witness.CopyLog(t.Context(), dir))
	logs, err := filepath.Glob(filepath.Join(dir, "0", "log.*"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)

	id := s.(*dockerServer).members[0].id
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.Close(gone), "the clean-up does not need the caller's context")
	require.NoError(t, s.Close(gone))
	_, err = docker.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	require.True(t, errdefs.IsNotFound(err), "%v", err)
}

func TestAStartThatIsCancelledLeavesNothing(t *testing.T) {
	_, docker := startDocker(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(700*time.Millisecond, cancel)
	_, err := Docker{}.Start(ctx, Config{})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, ownContainers(t, docker), 1, "only the other server of this test is left")
}

// ownContainers are those of this process.
func ownContainers(t *testing.T, docker client.APIClient) []container.Summary {
	t.Helper()
	list, err := docker.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", labelPID+"="+strconv.Itoa(os.Getpid())),
	})
	require.NoError(t, err)
	return list.Items
}

func TestStaleContainersAreRemovedAndNeighboursAreNot(t *testing.T) {
	_, docker := startDocker(t, Config{})
	log := zaptest.NewLogger(t)
	neighbour := exec.Command("sleep", "600")
	require.NoError(t, neighbour.Start())
	t.Cleanup(func() {
		_ = neighbour.Process.Kill() // has ended already where the test went well
		_ = neighbour.Wait()
	})
	start, running := processStart(neighbour.Process.Pid)
	require.True(t, running)
	alive := owner{pid: neighbour.Process.Pid, start: start, boot: bootID(), host: hostID()}
	reused, reboot, elsewhere := alive, alive, alive
	reused.start, reboot.boot = "1", "an earlier boot"
	elsewhere.host, elsewhere.pid = "another machine", 1<<22
	ended := owner{pid: 1<<22 - 1, start: "5", boot: bootID(), host: hostID()}

	make := func(labels map[string]string) string {
		created, err := docker.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Config: &container.Config{Image: DefaultImage, Labels: labels},
		})
		require.NoError(t, err)
		t.Cleanup(func() {
			_, _ = docker.ContainerRemove(context.Background(), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		})
		return created.ID
	}
	stay := []string{make(alive.labels()), make(elsewhere.labels()), make(map[string]string{"some": "thing"})}
	goes := []string{make(reused.labels()), make(reboot.labels()), make(ended.labels())}

	require.NoError(t, removeStale(t.Context(), docker, log))
	for _, id := range stay {
		_, err := docker.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		require.NoError(t, err)
	}
	for _, id := range goes {
		_, err := docker.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		require.True(t, errdefs.IsNotFound(err), "%v", err)
	}
	require.Len(t, ownContainers(t, docker), 1)

	require.NoError(t, neighbour.Process.Kill())
	_ = neighbour.Wait() // says that it was killed
	require.NoError(t, removeStale(t.Context(), docker, log))
	_, err := docker.ContainerInspect(t.Context(), stay[0], client.ContainerInspectOptions{})
	require.True(t, errdefs.IsNotFound(err), "the neighbour is dead now: %v", err)
}

func TestAMissingImageIsOneClearSentence(t *testing.T) {
	_, err := Docker{Image: "fencepost.invalid/zookeeper:0"}.Start(t.Context(), Config{})
	require.ErrorIs(t, err, ErrImageMissing)
	require.ErrorContains(t, err, "tools/local-images.sh")
}

func TestAnEnsembleSurvivesItsLeader(t *testing.T) {
	began := time.Now()
	s, _ := startDocker(t, Config{Servers: 3})
	t.Logf("ready after %v", time.Since(began))
	require.Len(t, s.Addresses(), 3)
	members, _ := As[Members](s)
	leader, err := members.Leader(t.Context())
	require.NoError(t, err)
	require.NoError(t, members.Kill(t.Context(), leader))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, awaitWritable(ctx, s.Addresses()[(leader+1)%3]))
	next, err := members.Leader(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, leader, next)
	require.NoError(t, members.Restart(t.Context(), leader))
}

func TestAKeptServerStaysAndBelongsToNobody(t *testing.T) {
	s, docker := startDocker(t, Config{Keep: true})
	id := s.(*dockerServer).members[0].id
	t.Cleanup(func() {
		_, err := docker.ContainerRemove(context.Background(), id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		require.NoError(t, err)
	})
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, removeStale(t.Context(), docker, zaptest.NewLogger(t)))
	require.NoError(t, probe(t.Context(), s.Addresses()[0]))
	require.Empty(t, ownContainers(t, docker))
}
