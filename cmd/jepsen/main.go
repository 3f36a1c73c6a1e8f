// Command jepsen tests a ZooKeeper-coordinated cluster under faults, judges
// the recorded history and writes a report. See jepsen help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes, Jepsen's. 0, 1 and 2 are a run's verdict.
const (
	exitValid   = 0
	exitInvalid = 1
	exitUnknown = 2
	exitUsage   = 254
	exitHarness = 255
)

// reaperVariable switches testcontainers' own reaper off.
const reaperVariable = "TESTCONTAINERS_RYUK_DISABLED"

func main() {
	// Our containers carry their owner, and every start removes those whose owner
	// is dead; so the reaper's image, one more to pull, is not needed. Whoever
	// sets the variable is obeyed.
	if _, set := os.LookupEnv(reaperVariable); !set {
		_ = os.Setenv(reaperVariable, "true")
	}
	// A reader of our output that goes away (jepsen test | head) is an error to
	// report after everything is cleaned up, not a reason to die at once.
	signal.Ignore(syscall.SIGPIPE)
	// The first signal ends the load, heals, checks what there is and writes the
	// report; the second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop()
	}()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitValid
	}
	var exit exitError
	if !errors.As(err, &exit) {
		// What cobra itself refuses: unknown commands, flags, values.
		exit = exitError{exitUsage, err}
	}
	if exit.err != nil {
		fmt.Fprintln(stderr, "jepsen:", exit.err)
	}
	return exit.code
}

// exitError carries an exit code. A nil err means that everything has been said.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }
