package checker

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/history"
)

var update = flag.Bool("update", false, "rewrite the golden texts beside the histories")

// corpusCheckers are the checkers as the corpus in testdata/<name> is judged: with
// limits that fit histories of a few lines.
func corpusCheckers(report history.Report) map[string]Checker {
	storm := DefaultStorms()
	storm.Limit, storm.Run, storm.Session = 6, 3, 10*time.Second
	bucket := func(string) string { return "t#1/0" }
	register := DefaultLinearizable()
	register.Bucket = bucket
	return map[string]Checker{
		"linearizable": NewLinearizable(register),
		"storms":       NewStorms(storm),
		"coverage": NewCoverage(CoverageOptions{MinAcknowledged: 2, Planned: []PlannedFault{
			{Name: "restart", Min: 1, Effects: []Effect{
				{Event: history.KindNode, Where: map[string]string{"state": "down"}, OnTarget: true},
				{Event: history.KindReady, After: time.Second, OnTarget: true},
				{Overlap: 1},
			}},
		}}),
		"harness":       NewHarness(report),
		"fencing":       NewFencing(),
		"single-leader": NewSingleLeader(),
		"invariants":    NewInvariants(),
		"convergence":   NewConvergence(),
		"availability":  NewAvailability(AvailabilityOptions{MaxGap: 2 * time.Second, MaxRecovery: time.Second, Bucket: bucket}),
		"positions":     NewPositions(),
	}
}

// Every history of the corpus gets the verdict of its folder, the same one each
// time, and every invalid one comes with evidence and a story that stands in a
// golden file beside it.
func TestCorpus(t *testing.T) {
	for name := range corpusCheckers(history.Report{}) {
		for _, want := range []Validity{Valid, Invalid, Unknown} {
			files, err := filepath.Glob(filepath.Join("testdata", name, want.String(), "*.jsonl"))
			require.NoError(t, err)
			if want != Invalid || name != "coverage" { // coverage is never invalid
				require.NotEmpty(t, files, "no %v history for %s", want, name)
			}
			for _, file := range files {
				t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".jsonl"), func(t *testing.T) {
					judgeFile(t, file, name, want)
				})
			}
		}
	}
}

func judgeFile(t *testing.T, file, name string, want Validity) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	h, report, err := history.Read(bytes.NewReader(raw))
	require.NoError(t, err)
	checker := corpusCheckers(report)[name]
	v, err := checker.Check(context.Background(), h)
	require.NoError(t, err)
	again, err := checker.Check(context.Background(), h)
	require.NoError(t, err)
	require.Equal(t, v, again, "not the same twice")
	require.Equal(t, checker.Name(), v.Checker)
	require.Equal(t, want, v.Validity, v.Summary)
	require.NotEmpty(t, v.Summary)
	if want == Unknown {
		require.NotEmpty(t, v.Reason)
	}
	if want == Invalid {
		require.True(t, evident(v), "no evidence")
		require.NotEmpty(t, v.Story)
	}
	golden := strings.TrimSuffix(file, ".jsonl") + ".txt"
	text := "summary: " + v.Summary + "\nstory: " + v.Story + "\ndata: " + string(v.Data) + "\n"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	expected, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(expected), text)
}

// A folder that no checker judges would be a test that never runs.
func TestTheCorpusHasNoStrangers(t *testing.T) {
	dirs, err := os.ReadDir("testdata")
	require.NoError(t, err)
	known := corpusCheckers(history.Report{})
	for _, dir := range dirs {
		if dir.Name() != "fuzz" { // go test's own corpus
			require.Contains(t, known, dir.Name())
		}
	}
}
