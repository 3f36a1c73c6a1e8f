package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

func newCheck(stdout io.Writer) *cobra.Command {
	var o lab.CheckOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "check RUN|FILE",
		Aliases: []string{"analyze"},
		Short:   "Judge a stored history again",
		Long: `check judges a run's folder, or a history file alone, and prints the verdict.
Of a folder it also renders verdict.json and report.html again. The history of a
run that was killed is judged as far as it goes: 1 if it holds a violation,
else 2, never 0.`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&o.Model, "model", "register", "model of a history file without a plan: register")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdict as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		outcome, err := lab.Check(cmd.Context(), args[0], o)
		if err != nil {
			return classify(err)
		}
		return finish(stdout, outcome, asJSON)
	}
	return cmd
}

func newReport(stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Render the report of a stored run again",
		Args:  cobra.ExactArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := lab.Report(cmd.Context(), args[0])
		if err != nil {
			return classify(err)
		}
		if _, err := io.WriteString(stdout, file+"\n"); err != nil {
			return exitError{exitHarness, err}
		}
		return nil
	}
	return cmd
}
