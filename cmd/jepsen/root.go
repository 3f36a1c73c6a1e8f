package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "jepsen",
		Short: "Test a ZooKeeper-coordinated cluster under faults, and judge what it did",
		Long: `jepsen runs a workload against a cluster while faults are injected, records
everything, and judges the record: linearizability, retry storms, fencing of old
leaders, invariants, convergence.

Exit codes: 0 valid, 1 invalid, 2 unknown, 254 usage, 255 the harness failed.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(newTest(stdout, stderr), newExplore(stdout, stderr), newReplay(stdout, stderr), newShrink(stdout, stderr), newCheck(stdout), newReport(stdout), newList(stdout))
	return root
}

// classify gives an error its exit code: what the user can mend by another
// command line is usage, the rest is the harness's own failure.
func classify(err error) error {
	var exit exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	if _, usage := errors.AsType[lab.UsageError](err); usage {
		return exitError{exitUsage, err}
	}
	return exitError{exitHarness, err}
}

// verdict turns a judged run's exit code into the program's.
func verdict(code int) error {
	if code == exitValid {
		return nil
	}
	return exitError{code: code}
}
