package sim

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnotherProcessRunsTheSame runs the same seeds in other processes, with
// other settings of the scheduler and the collector of Go.
func TestAnotherProcessRunsTheSame(t *testing.T) {
	hashes := func() string {
		var b strings.Builder
		for seed := range uint64(20) {
			trace, events := gossipRun(t, seed, inOrder)
			fmt.Fprintf(&b, "%d %016x %d\n", seed, trace, len(events))
		}
		return b.String()
	}
	if path := os.Getenv("FENCEPOST_SIM_HASHES"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(hashes()), 0o600))
		return
	}
	want := hashes()
	for name, setting := range map[string][]string{
		"one processor":       {"GOMAXPROCS=1"},
		"eight processors":    {"GOMAXPROCS=8"},
		"eager collector":     {"GOGC=5"},
		"no collector":        {"GOGC=off"},
		"no async preemption": {"GODEBUG=asyncpreemptoff=1"},
		"another place":       {"GODEBUG=randautoseed=0", "TZ=Asia/Tokyo"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/hashes"
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAnotherProcessRunsTheSame$")
			cmd.Env = append(append(os.Environ(), setting...), "FENCEPOST_SIM_HASHES="+path)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		})
	}
}
