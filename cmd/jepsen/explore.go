package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fencepost-dev/fencepost/internal/lab"
)

// exploreGC lets the heap grow to five times what is alive: runs are short and
// throw everything away, and collecting it would take a fifth of the time. Who
// sets GOGC is obeyed.
const exploreGC = 400

func easeGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(exploreGC)
	}
}

func newExplore(stdout, stderr io.Writer) *cobra.Command {
	o := lab.ExploreOptions{Config: lab.DefaultConfig(), Swarm: true}
	o.Config.World = lab.WorldSim
	o.Config.Options.Seed = 1
	var names lists
	var shard string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Run many seeds in simulation, on all cores",
		Long: `explore runs seed after seed in the simulated world, one a core. Each draws its
own faults, sizes and rates (--swarm=false keeps those of the flags). It stops at
the first finding, or collects them by fingerprint; each kind of finding is run
again into a folder of its own.

Exit codes: 0 nothing found, 1 findings, 2 no seed was judged.`,
		Args: cobra.NoArgs,
		Example: `  jepsen explore --seeds 200
  jepsen explore --for 10m --collect --aimed --shard 1/4
  jepsen explore --bug unfenced-rpc --seeds 200`,
	}
	testFlags(cmd, &o.Config, &names)
	f := cmd.Flags()
	f.Uint64Var(&o.Config.Options.Seed, "seed", o.Config.Options.Seed, "the first seed")
	f.IntVar(&o.Seeds, "seeds", 0, "how many seeds; 0 = until --for is over")
	f.DurationVar(&o.For, "for", 0, "how long")
	f.StringVar(&shard, "shard", "", "i/n: take every n-th seed, from the i-th")
	f.BoolVar(&o.Collect, "collect", false, "go on after a finding")
	f.BoolVar(&o.Swarm, "swarm", o.Swarm, "each seed draws its faults, sizes and rates")
	f.BoolVar(&asJSON, "json", false, "print progress and findings as JSON lines")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		names.apply(&o.Config)
		if shard != "" {
			if n, err := fmt.Sscanf(shard+"\n", "%d/%d\n", &o.Shard, &o.Shards); n != 2 || err != nil || o.Shards < 1 {
				return exitError{exitUsage, fmt.Errorf("--shard %q: want i/n, as in 1/4", shard)}
			}
		}
		easeGC()
		live := newLive(stderr, stdout, asJSON)
		done, err := lab.Explore(cmd.Context(), o, live.update)
		live.end()
		if err != nil && done.Seeds == 0 {
			return classify(err)
		}
		if err := live.result(done); err != nil {
			return exitError{exitHarness, err}
		}
		switch {
		case err != nil:
			return classify(err)
		case len(done.Findings) > 0:
			return verdict(exitInvalid)
		case done.Seeds == 0:
			return verdict(exitUnknown)
		}
		return nil
	}
	return cmd
}

// live shows an exploration: one line that changes on a terminal, a line every
// few seconds elsewhere.
type live struct {
	err, out io.Writer
	json     bool
	terminal bool
	said     time.Duration
	known    int
}

func newLive(stderr, stdout io.Writer, asJSON bool) *live {
	l := &live{err: stderr, out: stdout, json: asJSON}
	if file, ok := stderr.(*os.File); ok && !asJSON {
		l.terminal = term.IsTerminal(int(file.Fd()))
	}
	return l
}

// update is told after every seed, by one at a time.
func (l *live) update(e lab.Explored) {
	if l.json {
		l.event("explored", e)
		return
	}
	for ; l.known < len(e.Findings); l.known++ {
		f := e.Findings[l.known]
		l.clear()
		fmt.Fprintf(l.err, "seed %d: %s  %s\n", f.Seed, f.ID, f.Fingerprint)
	}
	switch {
	case l.terminal:
		l.clear()
		fmt.Fprint(l.err, exploredLine(e))
	case e.Elapsed-l.said >= quietEvery:
		l.said = e.Elapsed
		fmt.Fprintln(l.err, exploredLine(e))
	}
}

func (l *live) clear() {
	if l.terminal {
		fmt.Fprint(l.err, "\r\x1b[K")
	}
}

func (l *live) end() { l.clear() }

func (l *live) event(kind string, e lab.Explored) {
	line, err := json.Marshal(map[string]any{"event": kind, "explored": e})
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(l.err, "jepsen: print progress:", err)
	}
}

func exploredLine(e lab.Explored) string {
	s := max(e.Elapsed.Seconds(), 0.001)
	text := fmt.Sprintf("%d seeds (%.2f/s, %.0f virtual s a second, %.0f lines/s, %d ok a seed): %d valid, %d unknown, %d failed",
		e.Seeds, float64(e.Seeds)/s, e.Virtual.Seconds()/s, float64(e.Events)/s, e.Acknowledged/max(e.Seeds, 1), e.Valid, e.Unknown, e.Failed)
	var counts []string
	for _, f := range e.Findings {
		counts = append(counts, fmt.Sprintf("%s×%d", f.ID, f.Count))
	}
	if len(counts) > 0 {
		text += "; " + strings.Join(counts, " ")
	}
	return text
}

// result prints what was found.
func (l *live) result(e lab.Explored) error {
	if l.json {
		l.event("result", e)
		return nil
	}
	var text strings.Builder
	fmt.Fprintln(&text, exploredLine(e))
	if e.Uncovered > 0 {
		fmt.Fprintf(&text, "in %d of %d seeds a planned fault had no effect\n", e.Uncovered, e.Seeds)
	}
	for _, f := range e.Findings {
		fmt.Fprintf(&text, "\n%s  %s\n  %d of %d seeds, first seed %d, the %dth judged\n", f.ID, f.Fingerprint, f.Count, e.Seeds, f.Seed, f.After)
		if f.Dir != "" {
			fmt.Fprintf(&text, "  run: %s\n", f.Dir)
		}
		fmt.Fprintf(&text, "  again: %s\n", f.Command)
	}
	_, err := io.WriteString(l.out, text.String())
	return err
}
