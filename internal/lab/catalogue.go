package lab

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/fencepost-dev/fencepost/cluster/inproc"
	"github.com/fencepost-dev/fencepost/nemesis"
	"github.com/fencepost-dev/fencepost/workloads"
)

// Item is one thing that can be named on the command line.
type Item struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// More are further sentences: what is guaranteed, who catches it.
	More []Item `json:"more,omitempty"`
}

// Section is a kind of thing.
type Section struct {
	Title string `json:"title"`
	Items []Item `json:"items"`
}

// Catalogue lists everything that can be named.
type Catalogue struct {
	Workloads []Item `json:"workloads"`
	Faults    []Item `json:"faults"`
	Checkers  []Item `json:"checkers"`
	Bugs      []Item `json:"bugs"`
	Presets   []Item `json:"presets"`
}

// NewCatalogue reads the registries.
func NewCatalogue() Catalogue {
	var c Catalogue
	for _, w := range workloads.All() {
		c.Workloads = append(c.Workloads, Item{w.Name, w.Doc, []Item{{"consistency", w.Consistency, nil}}})
	}
	for _, f := range nemesis.All() {
		c.Faults = append(c.Faults, Item{Name: f.Name, Doc: f.Doc})
	}
	c.Checkers = checkerDocs()
	for _, b := range inproc.Bugs() {
		c.Bugs = append(c.Bugs, Item{b.Name, b.Breaks, []Item{
			{"source", b.Source, nil},
			{"trigger", b.Trigger, nil},
			{"caught by", b.CaughtBy, nil},
			{"scenario", b.Scenario, nil},
		}})
	}
	for _, p := range inproc.Presets() {
		c.Presets = append(c.Presets, Item{p.Name, p.Doc, []Item{{"bugs", strings.Join(p.Bugs, ", "), nil}}})
	}
	return c
}

// Sections lists the catalogue by kind, in the order of the reference.
func (c Catalogue) Sections() []Section {
	return []Section{
		{"workloads", c.Workloads},
		{"faults", c.Faults},
		{"checkers", c.Checkers},
		{"bugs", c.Bugs},
		{"presets", c.Presets},
	}
}

// Markdown writes docs/reference.md.
func (c Catalogue) Markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "# Reference\n\nPrinted by `jepsen list --markdown`; a test holds that it is up to date.")
	for _, s := range c.Sections() {
		fmt.Fprintf(out, "\n## %s\n", strings.ToUpper(s.Title[:1])+s.Title[1:])
		for _, i := range s.Items {
			fmt.Fprintf(out, "\n### %s\n\n%s\n", i.Name, i.Doc)
			for n, m := range i.More {
				if n == 0 {
					fmt.Fprintln(out)
				}
				if m.Doc != "" {
					fmt.Fprintf(out, "- %s: %s\n", m.Name, m.Doc)
				}
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write reference: %w", err)
	}
	return nil
}
