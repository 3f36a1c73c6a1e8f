package minizk_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
)

// TestKazoo has a client library of another language do its common work.
func TestKazoo(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here, so kazoo cannot be tried")
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import kazoo").Run(); err != nil {
		t.Skip("python3 has no kazoo here (pip install kazoo==2.11.0), so it cannot be tried")
	}
	srv := start(t, minizk.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "testdata/kazoo_client.py", srv.Addr())
	var errors strings.Builder
	cmd.Stderr = &errors
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, argument, _ := strings.Cut(lines.Text(), " ")
		if word == "expire" {
			id, err := strconv.ParseInt(argument, 10, 64)
			require.NoError(t, err)
			require.NoError(t, srv.ExpireSession(id))
			_, err = io.WriteString(in, "expired\n")
			require.NoError(t, err)
			continue
		}
		said = append(said, word)
	}
	require.NoError(t, cmd.Wait(), errors.String())
	require.Equal(t, []string{"data", "transactions", "watches", "acls", "locks", "elections", "expiry", "end"}, said)
}
