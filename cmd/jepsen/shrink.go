package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

func newShrink(stdout, stderr io.Writer) *cobra.Command {
	o := lab.ShrinkOptions{For: 2 * time.Minute, Out: lab.DefaultConfig().Out}
	cmd := &cobra.Command{
		Use:   "shrink RUN",
		Short: "Make a failing simulated run smaller",
		Long: `shrink removes faults, time, load, keys, nodes and planted bugs from a failing
run of the simulated world, and then lines from its history, as long as it still
fails for the same reason (the same fingerprint). The smallest run gets a folder
of its own, with its minimal history and report in minimal/ and the case as a Go
test.

Exit codes: 1 the shrunk run fails as it should, 254 the run does not fail.`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.DurationVar(&o.For, "for", o.For, "how long to look for something smaller")
	f.StringVar(&o.Out, "out", o.Out, "folder of results")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		easeGC()
		s, err := lab.Shrink(cmd.Context(), args[0], o, func(step string) { fmt.Fprintln(stderr, step) })
		if err != nil {
			return classify(err)
		}
		if _, err := io.WriteString(stdout, s.Text()); err != nil {
			return exitError{exitHarness, err}
		}
		return verdict(exitInvalid)
	}
	return cmd
}
