package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/inproc"
)

func TestFoldersAreNeverShared(t *testing.T) {
	out := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first, err := newFolder(out, "register", 7, now)
	require.NoError(t, err)
	second, err := newFolder(out, "register", 7, now)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	target, err := os.Readlink(filepath.Join(out, latestLink))
	require.NoError(t, err)
	require.Equal(t, second, filepath.Join(out, target), "latest is the newest")
}

func TestAFailedRenderLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	err := writeFile(filepath.Join(dir, "report.html"), func(f *os.File) error {
		_, _ = f.WriteString("half")
		return os.ErrInvalid
	})
	require.ErrorIs(t, err, os.ErrInvalid)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheCommandNamesWhatDiffers(t *testing.T) {
	c := DefaultConfig()
	c.Options.Seed = 7
	require.Equal(t, "go run ./cmd/jepsen test --seed 7", c.Command())
	c.World, c.ZooKeeper = WorldSim, "docker"
	c.Bugs, c.Nemesis = []string{"unfenced-rpc", "client-no-backoff"}, []string{"restart"}
	c.Options.Recovery = 10 * time.Second
	require.Equal(t,
		"go run ./cmd/jepsen test --world sim --nemesis restart --bug unfenced-rpc,client-no-backoff --seed 7 --recovery 10s",
		c.Command(), "a simulated world has no other ZooKeeper")
}

func TestConfigsThatNoRunCanHaveAreUsage(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"world":   func(c *Config) { c.World = "moon" },
		"bug":     func(c *Config) { c.Bugs = []string{"nothing"} },
		"preset":  func(c *Config) { c.Preset = "nothing" },
		"session": func(c *Config) { c.Options.SessionTimeout = time.Second },
		"nemesis": func(c *Config) { c.Nemesis = []string{"nothing"} },
	} {
		c := DefaultConfig()
		spoil(&c)
		_, err := c.resolve()
		var usage UsageError
		require.ErrorAs(t, err, &usage, name)
	}
}

func TestAPresetAndABugInOneFieldAreRefused(t *testing.T) {
	c := DefaultConfig()
	c.Preset, c.Bugs = "fluss-0.9.1", []string{"advertise-before-admit"}
	r, err := c.resolve()
	require.NoError(t, err, "a bug that the preset has already is no second one")
	require.Contains(t, r.bugs, "advertise-before-admit")
}

func TestLogsGoToAFileOfEachName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nodes")
	log, end := newLogs(dir)
	log.Named("tablet-0").Info("hello", zap.Int("n", 1))
	log.Named("../../etc/passwd").With(zap.String("who", "me")).Warn("escape")
	require.NoError(t, end())
	text, err := os.ReadFile(filepath.Join(dir, "tablet-0.log"))
	require.NoError(t, err)
	require.Contains(t, string(text), `"msg":"hello"`)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "a name cannot leave the folder")
	for _, e := range entries {
		require.False(t, strings.ContainsRune(e.Name(), os.PathSeparator))
	}
}

func TestEachBugIsCaughtByACheckerThatExists(t *testing.T) {
	known := map[string]bool{"none": true} // a bug that only costs, and says so
	for _, c := range checkerDocs() {
		known[c.Name] = true
	}
	for _, b := range inproc.Bugs() {
		for name := range strings.SplitSeq(b.CaughtBy, ",") {
			require.True(t, known[strings.TrimSpace(name)], "bug %s says that %q catches it", b.Name, name)
		}
	}
}
