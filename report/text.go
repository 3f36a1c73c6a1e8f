package report

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/fencepost-dev/fencepost/checker"
)

// Text writes what a terminal shows after a run: the three verdicts, every
// checker that is not valid, the first violation's story, the command.
func Text(w io.Writer, in Input) error {
	out := bufio.NewWriter(w)
	for _, c := range classes(in.Verdicts) {
		name, _, _ := strings.Cut(c.Name, ":")
		fmt.Fprintf(out, "%-9s %s", name, c.Word)
		if c.Text != "" {
			fmt.Fprintf(out, " (%s)", c.Text)
		}
		fmt.Fprintln(out)
	}
	for _, v := range in.Verdicts {
		fmt.Fprintf(out, "  %-8s %-18s %s\n", v.Validity, v.Checker, v.Summary)
	}
	if v, ok := firstViolation(in.Verdicts); ok {
		story := v.Story
		if story == "" {
			story = v.Summary
		}
		fmt.Fprintf(out, "\nfirst violation, by %s at %s:\n%s\n", v.Checker, seconds(v.At), indent(story))
	}
	for _, note := range in.Notes {
		fmt.Fprintf(out, "note: %s\n", note)
	}
	fmt.Fprintf(out, "\nrun it again: %s\nexit %d: %s\n", in.Command, in.Exit, Words(in.Exit))
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}

// Markdown writes the same for the page of a CI job.
func Markdown(w io.Writer, in Input) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "## %s: exit %d\n\n%s.\n\n| checker | class | verdict | summary |\n|---|---|---|---|\n", cell(in.Title), in.Exit, Words(in.Exit))
	for _, v := range in.Verdicts {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", cell(v.Checker), v.Class, v.Validity, cell(v.Summary))
	}
	if v, ok := firstViolation(in.Verdicts); ok {
		fmt.Fprintf(out, "\nFirst violation:\n\n%s\n", fence(v.Story))
	}
	fmt.Fprintf(out, "\nRun it again:\n\n%s\n", fence(in.Command))
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write markdown summary: %w", err)
	}
	return nil
}

// cell makes hostile text harmless inside a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "`", "'").Replace(s)
}

// fence quotes text with more backticks than it contains in a row.
func fence(s string) string {
	longest, run := 0, 0
	for _, r := range s {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	ticks := strings.Repeat("`", max(3, longest+1))
	return ticks + "\n" + strings.TrimRight(s, "\n") + "\n" + ticks
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Failure *junitText `xml:"failure"`
	Error   *junitText `xml:"error"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes one case a checker. Invalid is a failure; unknown is an error,
// because a reader of JUnit must not take it for a pass.
func JUnit(w io.Writer, in Input) error {
	suite := junitSuite{Name: in.Title}
	for _, v := range in.Verdicts {
		c := junitCase{Class: v.Class.String(), Name: v.Checker}
		text := &junitText{Message: v.Summary, Text: v.Story}
		switch v.Validity {
		case checker.Valid:
		case checker.Invalid:
			c.Failure = text
			suite.Failures++
		default:
			c.Error = text
			suite.Errors++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write junit: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return fmt.Errorf("encode junit: %w", err)
	}
	return nil
}
