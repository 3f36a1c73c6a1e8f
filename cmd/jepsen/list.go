package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

func newList(stdout io.Writer) *cobra.Command {
	var asJSON, asMarkdown bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workloads, faults, checkers, bugs and presets",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "as the reference page")
	cmd.RunE = func(*cobra.Command, []string) error {
		catalogue := lab.NewCatalogue()
		var err error
		switch {
		case asJSON && asMarkdown:
			return exitError{exitUsage, fmt.Errorf("--json and --markdown exclude each other; give one")}
		case asJSON:
			enc := json.NewEncoder(stdout)
			enc.SetIndent("", "  ")
			err = enc.Encode(catalogue)
		case asMarkdown:
			err = catalogue.Markdown(stdout)
		default:
			err = printCatalogue(stdout, catalogue)
		}
		if err != nil {
			return exitError{exitHarness, fmt.Errorf("print list: %w", err)}
		}
		return nil
	}
	return cmd
}

func printCatalogue(w io.Writer, c lab.Catalogue) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, section := range c.Sections() {
		fmt.Fprintf(t, "%s\n", section.Title)
		for _, item := range section.Items {
			fmt.Fprintf(t, "  %s\t%s\n", item.Name, item.Doc)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
