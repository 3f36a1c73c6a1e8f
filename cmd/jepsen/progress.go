package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/fencepost-dev/fencepost/harness"
)

// progress shows a running test: a bar on a terminal, a line every few seconds
// elsewhere, events with --json. It is told from the control node's goroutine
// and from the main one, so it locks.
type progress struct {
	mu    sync.Mutex
	err   io.Writer // notices and the bar
	out   io.Writer // JSON
	json  bool
	bar   *progressbar.ProgressBar
	limit time.Duration
	last  harness.Progress // the one that was shown last; rates count from it
	phase string
}

// quietEvery is how often a line appears where there is no terminal.
const quietEvery = 5 * time.Second

func newProgress(stderr, stdout io.Writer, asJSON bool) *progress {
	p := &progress{err: stderr, out: stdout, json: asJSON}
	if file, ok := stderr.(*os.File); ok && !asJSON && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions64(100, progressbar.OptionSetWriter(stderr), progressbar.OptionSetWidth(24),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false), progressbar.OptionShowElapsedTimeOnFinish())
	}
	return p
}

// Notice prints a sentence about the run.
func (p *progress) Notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.json {
		p.event(map[string]any{"event": "notice", "text": text})
		return
	}
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(p.err, text)
}

// Limit says how long the load lasts, for the bar.
func (p *progress) Limit(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = d
}

// Update takes a snapshot of the run and shows it where it is time to.
func (p *progress) Update(now harness.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := now.Time - p.last.Time
	if p.bar == nil && now.Phase == p.phase && elapsed < quietEvery {
		return
	}
	rate := 0.0
	if elapsed > 0 {
		rate = float64(now.Ok-p.last.Ok) / elapsed.Seconds()
	}
	p.phase, p.last = now.Phase, now
	switch {
	case p.json:
		p.event(map[string]any{"event": "progress", "progress": now, "rate": rate})
	case p.bar != nil:
		p.bar.Describe(line(now, rate))
		if p.limit > 0 {
			_ = p.bar.Set64(min(int64(100*now.Time/p.limit), 100))
		}
	default:
		fmt.Fprintf(p.err, "%6.1fs %s\n", now.Time.Seconds(), line(now, rate))
	}
}

func (p *progress) event(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = p.out.Write(append(b, '\n'))
	}
	if err != nil {
		fmt.Fprintln(p.err, "jepsen: print progress:", err)
	}
}

func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

func line(p harness.Progress, rate float64) string {
	text := fmt.Sprintf("%-8s %6.0f ok/s, %d ok, %d fail, %d info, %d open, %d refused", p.Phase, rate, p.Ok, p.Fail, p.Info, p.Open, p.Refused)
	if p.Leader != "" {
		text += ", " + p.Leader + " leads"
	}
	if len(p.Faults) > 0 {
		text += "; now: " + strings.Join(p.Faults, ", ")
	}
	return text
}
