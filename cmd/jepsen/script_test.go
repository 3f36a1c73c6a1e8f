package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMain makes the program a command of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"jepsen": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script/*.txt: what a user types and what comes back.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
			"chop":  chop,
			"edit":  edit,
		},
	})
}

// exits runs the program and asks for an exit code, of which testscript itself
// tells only failure from success: exits CODE args...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE args...")
	}
	code := 0
	err := ts.Exec("jepsen", args[1:]...)
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("exit %s, want %s", got, args[0])
	}
}

// chop cuts the last bytes off a file, as a kill in the middle of a write does:
// chop N file.
func chop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: chop N file")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	file := ts.MkAbs(args[1])
	b, err := os.ReadFile(file)
	ts.Check(err)
	ts.Check(os.WriteFile(file, b[:len(b)-n], 0o644))
}

// edit changes the first digit of a file: edit file.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: edit file")
	}
	file := ts.MkAbs(args[0])
	b, err := os.ReadFile(file)
	ts.Check(err)
	i := bytes.IndexAny(b, "0123456789")
	b[i] = '9' - (b[i] - '0')
	ts.Check(os.WriteFile(file, b, 0o644))
}

// TestReferenceIsUpToDate holds that docs/reference.md is what the registries
// say; -update rewrites it.
func TestReferenceIsUpToDate(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"list", "--markdown"}, &out, &errs), errs.String())
	file := filepath.Join("..", "..", "docs", "reference.md")
	if *update {
		require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "run: go test ./cmd/jepsen -update")
}
