package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/history"
)

var update = flag.Bool("update", false, "rewrite golden files")

const hostile = `</script><img src=x onerror=alert(1)>"'&`

// sample is a small run by hand: a leader is restarted, one read is stale, and
// every text that comes from outside is hostile.
func sample(t *testing.T) Input {
	t.Helper()
	var ops []history.Op
	at := time.Duration(0)
	add := func(op history.Op) int {
		op.Index, op.Time = len(ops), at
		ops = append(ops, op)
		at += 7 * time.Millisecond
		return op.Index
	}
	event := func(e history.Event) {
		op, err := history.NewEvent("tablet-0", e)
		require.NoError(t, err)
		add(op)
	}
	kv := func(v int) json.RawMessage {
		text, err := json.Marshal(hostile)
		require.NoError(t, err)
		return json.RawMessage(fmt.Sprintf(`{"key":%s,"value":%d}`, text, v))
	}
	event(history.Term{Coordinator: "coordinator-0", Epoch: 1, Zxid: 16, State: history.TermElected})
	event(history.Term{Coordinator: "coordinator-0", Epoch: 1, Zxid: 16, State: history.TermServing})
	event(history.Session{Node: "tablet-0", ID: 77, State: history.SessionConnected})
	event(history.LAI{Bucket: "registers#1/0", Leader: 0, ISR: []int{0, 1, 2}, Replicas: []int{0, 1, 2}, Zxid: 20})
	event(history.Advertised{Bucket: "registers#1/0", Leader: 0, By: 1})
	event(history.Role{Bucket: "registers#1/0", Server: 0, State: history.RoleAdmitted, Incarnation: 18})
	for i := range 120 {
		p := history.Process(i % 4)
		add(history.Op{Process: p, Type: history.Invoke, F: "write", Value: kv(i)})
		kind, text := history.Ok, ""
		if i%37 == 36 {
			kind, text = history.Fail, hostile
		}
		add(history.Op{Process: p, Type: kind, F: "write", Value: kv(i), Error: text, Node: hostile})
		if i == 60 {
			event(history.Fault{Name: "restart", ID: 3, Target: []string{hostile}, State: history.StateStart, Effect: "killed"})
			event(history.Term{Coordinator: "coordinator-1", Epoch: 2, Zxid: 40, State: history.TermElected})
			event(history.Refused{Bucket: "registers#1/0", Client: "client-1", API: "put", Code: 12})
		}
	}
	event(history.Fault{Name: "restart", ID: 3, Target: []string{"tablet-0"}, State: history.StateEnd})
	h, err := history.New(ops)
	require.NoError(t, err)
	return Input{
		Title: "register, seed 7", Command: "go run ./cmd/jepsen test --seed 7", History: h, Exit: 1,
		Plan:      []Field{{"seed", "7"}, {"bugs", hostile}},
		Notes:     []string{"the history's last line was cut off"},
		Generated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Verdicts: []checker.Verdict{
			{
				Checker: "linearizable", Validity: checker.Invalid, Summary: "1 of 9 keys is not linearizable " + hostile,
				Subject: hostile, At: 300 * time.Millisecond, Evidence: []int{6, 7, 100000},
				Story: "a stale read\nby " + hostile,
			},
			{Checker: "storms", Validity: checker.Valid, TimeBound: true, Summary: "no storm", Data: json.RawMessage(
				`{"buckets":[{"bucket":"registers#1/0","refusals":4,"window":1500000000}],"heat":{"width":1000000000,"buckets":["registers#1/0"],"cells":[[0,4]]}}`)},
			{Checker: "coverage", Class: checker.Coverage, Validity: checker.Unknown, Reason: "vacuous", Summary: "too little"},
			{Checker: "harness", Class: checker.Harness, Validity: checker.Valid, Summary: "healthy"},
		},
		Picture: []byte("<html><body>picture " + hostile + "</body></html>"), PictureKey: hostile,
	}
}

func TestHTMLShowsTheViolationAndEscapesEverything(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, HTML(&b, sample(t)))
	page := b.String()
	for _, want := range []string{
		"register, seed 7", "invalid", "a stale read", "1 of 9 keys is not linearizable", "registers#1/0", "restart",
		"go run ./cmd/jepsen test --seed 7", "epoch 2 began elsewhere", "1.500 s", "4 refusals and hangs",
	} {
		if !strings.Contains(page, want) { // a whole page in a failure's text helps nobody
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<img src=x", "http://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q: hostile text must not become markup, and nothing is fetched", bad)
		}
	}
	if out := os.Getenv("FENCEPOST_REPORT"); out != "" {
		require.NoError(t, os.WriteFile(out, b.Bytes(), 0o644))
	}
}

func TestTextIsGolden(t *testing.T) {
	in := sample(t)
	for name, render := range map[string]func(*bytes.Buffer) error{
		"summary.txt": func(b *bytes.Buffer) error { return Text(b, in) },
		"summary.md":  func(b *bytes.Buffer) error { return Markdown(b, in) },
		"junit.xml":   func(b *bytes.Buffer) error { return JUnit(b, in) },
	} {
		var b bytes.Buffer
		require.NoError(t, render(&b))
		golden := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String(), name)
	}
}

func TestJUnitIsXMLWhateverTheText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, JUnit(&b, sample(t)))
	var suite junitSuite
	require.NoError(t, xml.Unmarshal(b.Bytes(), &suite))
	require.Equal(t, 4, suite.Tests)
	require.Equal(t, 1, suite.Failures)
	require.Equal(t, 1, suite.Errors, "unknown is not a pass")
}

func TestAnEmptyHistoryStillMakesAPage(t *testing.T) {
	h, err := history.New(nil)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, HTML(&b, Input{Title: "nothing", History: h, Exit: 2}))
	require.Contains(t, b.String(), "no checker judged")
}

func TestThinKeepsEveryFailure(t *testing.T) {
	var points []latencyPoint
	for i := range 100_000 {
		p := latencyPoint{at: time.Duration(i), latency: 1, outcome: history.Ok, index: i}
		if i%1000 == 0 {
			p.outcome = history.Info
		}
		points = append(points, p)
	}
	kept := thin(points, 4000)
	require.LessOrEqual(t, len(kept), 4100)
	infos := 0
	for _, p := range kept {
		if p.outcome == history.Info {
			infos++
		}
	}
	require.Equal(t, 100, infos)
}

func TestLanesShowAZombie(t *testing.T) {
	in := sample(t)
	s := newSeries(in.History)
	var kinds []string
	for _, l := range buildLanes(in.History, s.end, s.bands) {
		if l.Name == "coordinator-0" {
			for _, sp := range l.Spans {
				kinds = append(kinds, sp.Kind)
			}
		}
	}
	require.Equal(t, []string{"elected", "serving", "zombie"}, kinds)
}

func TestNaturalOrder(t *testing.T) {
	require.True(t, naturalLess("registers#1/2", "registers#1/10"))
	require.False(t, naturalLess("b10", "b2"))
	require.True(t, naturalLess("a", "ab"))
	require.Less(t, "b10", "b2", "which plain order gets wrong")
}
