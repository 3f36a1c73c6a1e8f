package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

func newReplay(stdout, stderr io.Writer) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "Run a stored run again and compare the histories",
		Long: `replay runs again what test.json and schedule.json of a run's folder say. In
simulation the history must be the stored one, byte for byte; it says whether it
is. Elsewhere time is real, and only the verdict is repeated.

Exit codes: those of the verdict; 255 if a simulated history differs.`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&out, "out", "", "folder of results for the new run; empty: nothing is written")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ui := newProgress(stderr, stdout, false)
		r, err := lab.Replay(cmd.Context(), args[0], out, ui)
		ui.close()
		if err != nil {
			return classify(err)
		}
		if err := r.WriteText(stdout); err != nil {
			return exitError{exitHarness, err}
		}
		return replayed(stdout, r)
	}
	return cmd
}

func replayed(stdout io.Writer, r lab.Replayed) error {
	switch {
	case !r.Compared:
		fmt.Fprintln(stdout, "replay: time was real, so the histories are not compared")
	case r.Equal():
		fmt.Fprintln(stdout, "replay: the same history, byte for byte")
	default:
		fmt.Fprintf(stdout, "replay: the history differs from line %d on\n  was: %s\n  is:  %s\n", r.Line, r.Was, r.Is)
		return exitError{exitHarness, errors.New("the history differs: another build, another machine, or a draw that does not come from the seed")}
	}
	return verdict(r.Exit)
}
