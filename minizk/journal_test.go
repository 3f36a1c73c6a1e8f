package minizk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/minizk"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// state is everything that survives, in words.
func state(srv *minizk.Server) string {
	out := fmt.Sprintln(srv.Zxid())
	for _, s := range srv.Sessions() {
		out += fmt.Sprintln(s.ID, s.Timeout, s.Ephemerals)
	}
	for _, p := range srv.Paths() {
		data, stat, _ := srv.Node(p)
		out += fmt.Sprintf("%s %v %q %v\n", p, data == nil, data, stat)
	}
	return out
}

// program runs a random program against a server and leaves its sessions open.
func runProgram(t *testing.T, addr string, seed uint64, steps int) *twin {
	t.Helper()
	p, w := newProgram(seed), newTwin(t, addr)
	w.open(p.sessions)
	for range steps {
		w.run(p.step())
	}
	return w
}

func TestStateSurvivesARestart(t *testing.T) {
	for seed := range uint64(6) {
		cfg := minizk.Config{Dir: t.TempDir(), ExtendedTypes: true}
		srv := start(t, cfg)
		if seed%2 == 1 {
			minizk.CompactAt(srv, 5000)
		}
		w := runProgram(t, srv.Addr(), seed, 400)
		silent := dialRaw(t, srv.Addr(), 2000)
		silent.ok(jute.OpCreate, create("/gone-by-expiry", jute.FlagEphemeral))
		require.NoError(t, srv.ExpireSession(silent.id))
		want := state(srv)

		// A copy of the directory is what a kill of the process would leave.
		killed := minizk.Config{Dir: t.TempDir(), ExtendedTypes: true}
		require.NoError(t, os.CopyFS(killed.Dir, os.DirFS(cfg.Dir)))
		require.NoError(t, srv.Close())

		again := start(t, cfg)
		require.Equal(t, want, state(again))
		for i := range w.conns {
			w.addr = again.Addr()
			w.conns[i] = w.resume(w.conns[i])
			require.NotZero(t, w.conns[i].id, "a session lives on")
		}
		require.Equal(t, want, state(start(t, killed)))
	}
}

func TestSessionsExpireAfterARestart(t *testing.T) {
	cfg := minizk.Config{Dir: t.TempDir(), Tick: 50 * time.Millisecond}
	srv := start(t, cfg)
	c := dialRaw(t, srv.Addr(), 100)
	c.ok(jute.OpCreate, create("/e", jute.FlagEphemeral))
	require.NoError(t, srv.Close())
	srv = start(t, cfg)
	require.Eventually(t, func() bool { return len(srv.Sessions()) == 0 }, 5*time.Second, 5*time.Millisecond)
	require.NotContains(t, srv.Paths(), "/e")
	require.NoError(t, srv.Close())
	require.NotContains(t, start(t, cfg).Paths(), "/e")
}

func newest(t *testing.T, dir, kind string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, kind+"-*"))
	require.NoError(t, err)
	require.Len(t, files, 1, "one generation is kept")
	return files[0]
}

func TestJournalsThatAreCutOrDamaged(t *testing.T) {
	cfg := minizk.Config{Dir: t.TempDir()}
	srv := start(t, cfg)
	c := dialRaw(t, srv.Addr(), 4000)
	c.ok(jute.OpCreate, create("/a", 0))
	c.ok(jute.OpCreate, create("/b", 0))
	journal := newest(t, cfg.Dir, "journal")
	b, err := os.ReadFile(journal)
	require.NoError(t, err)
	require.NoError(t, srv.Close())

	require.NoError(t, os.WriteFile(journal, b[:len(b)-5], 0o600))
	srv = start(t, cfg)
	require.Contains(t, srv.Paths(), "/a")
	require.NotContains(t, srv.Paths(), "/b", "its record was cut short")
	require.NoError(t, srv.Close())

	snapshot := newest(t, cfg.Dir, "snapshot")
	whole, err := os.ReadFile(snapshot)
	require.NoError(t, err)
	for name, damage := range map[string][]byte{
		"cut": whole[:len(whole)-3], "empty": {}, "other version": append([]byte{9}, whole[1:]...),
	} {
		require.NoError(t, os.WriteFile(snapshot, damage, 0o600))
		_, err = minizk.Start(cfg)
		require.ErrorContains(t, err, "start minizk: read state in", name)
	}
	require.NoError(t, os.WriteFile(snapshot, whole, 0o600))
	bad := []byte{0, 0, 0, 2, 1, 2, 3, 4, 5, 6}
	require.NoError(t, os.WriteFile(newest(t, cfg.Dir, "journal"), bad, 0o600))
	_, err = minizk.Start(cfg)
	require.ErrorContains(t, err, "checksum does not fit")
}

func TestAServerThatCannotKeepItsStateStops(t *testing.T) {
	cfg := minizk.Config{Dir: filepath.Join(t.TempDir(), "state")}
	srv, err := minizk.Start(cfg)
	require.NoError(t, err)
	c := dialRaw(t, srv.Addr(), 4000)
	minizk.CompactAt(srv, 1)
	require.NoError(t, os.RemoveAll(cfg.Dir))
	_, _, err = c.do(jute.OpCreate, create("/a", 0))
	require.Error(t, err)
	require.ErrorContains(t, srv.Restart(), "restart minizk: ")
	require.ErrorContains(t, srv.Close(), "keep state in")
}
