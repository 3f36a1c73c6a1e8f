package checker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/history"
)

type fake struct {
	verdict Verdict
	err     error
	crash   bool
}

func (fake) Name() string { return "fake" }

func (f fake) Check(context.Context, history.History) (Verdict, error) {
	if f.crash {
		panic("off by one")
	}
	return f.verdict, f.err
}

func empty(t *testing.T) history.History {
	t.Helper()
	h, err := history.New(nil)
	require.NoError(t, err)
	return h
}

func TestExitCodes(t *testing.T) {
	valid := Verdict{Checker: "a"}
	covered := Verdict{Checker: "b", Class: Coverage}
	healthy := Verdict{Checker: "c", Class: Harness}
	with := func(v Verdict, validity Validity) Verdict {
		v.Validity = validity
		return v
	}
	for _, test := range []struct {
		name     string
		verdicts []Verdict
		exit     int
	}{
		{"all valid", []Verdict{valid, covered, healthy}, ExitValid},
		{"nothing judged", nil, ExitUnknown},
		{"no property judged", []Verdict{covered, healthy}, ExitUnknown},
		{"vacuous", []Verdict{valid, with(covered, Unknown)}, ExitUnknown},
		{"unknown", []Verdict{with(valid, Unknown), valid}, ExitUnknown},
		{"incomplete", []Verdict{valid, with(healthy, Unknown)}, ExitUnknown},
		{"harness broken", []Verdict{valid, with(healthy, Invalid)}, ExitHarness},
		{"harness broken and unknown", []Verdict{with(valid, Unknown), with(healthy, Invalid)}, ExitHarness},
		{"invalid beats a broken harness", []Verdict{with(valid, Invalid), with(healthy, Invalid)}, ExitInvalid},
		{"a broken part counts", []Verdict{{Checker: "a", Parts: []Verdict{with(healthy, Invalid)}}}, ExitHarness},
		{"contract", []Verdict{valid, {Class: Harness, Validity: Invalid, Reason: ReasonContract}}, ExitUsage},
	} {
		require.Equal(t, test.exit, Compose(test.verdicts).Exit, test.name)
	}
}

func TestABrokenCheckerIsAHarnessFailure(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name   string
		ctx    context.Context
		f      fake
		reason string
		class  Class
		exit   int
	}{
		{"panic", t.Context(), fake{crash: true}, ReasonCrash, Harness, ExitHarness},
		{"error", t.Context(), fake{err: errors.New("no memory")}, ReasonCrash, Harness, ExitHarness},
		{"contract", t.Context(), fake{err: history.Contract(history.Op{Index: 6}, "odd")}, ReasonContract, Harness, ExitUsage},
		{"no evidence", t.Context(), fake{verdict: Verdict{Validity: Invalid}}, ReasonNoEvidence, Harness, ExitHarness},
		{"cut short", cancelled, fake{err: context.Canceled}, ReasonTime, Property, ExitUnknown},
	} {
		r := CheckAll(test.ctx, empty(t), fake{verdict: Verdict{Checker: "good"}}, test.f)
		require.Equal(t, test.exit, r.Exit, test.name)
		require.Equal(t, test.reason, r.Verdicts[1].Reason, test.name)
		require.Equal(t, test.class, r.Verdicts[1].Class, test.name)
	}
	r := CheckAll(t.Context(), empty(t), fake{err: history.Contract(history.Op{Index: 6}, "odd")})
	require.Contains(t, r.Verdicts[0].Summary, "line 7")
}

func TestAStallExcusesOnlyWhatIsBoundToTimeAndNear(t *testing.T) {
	stall, err := history.NewEvent("control", history.Stall{Late: int64(5 * time.Second)})
	require.NoError(t, err)
	stall.Time = 100 * time.Second
	h, err := history.New([]history.Op{stall})
	require.NoError(t, err)
	bad := func(at time.Duration, bound bool) Verdict {
		return Verdict{Checker: "x", Validity: Invalid, TimeBound: bound, At: at, Evidence: []int{0}}
	}
	judge := func(v Verdict) Verdict { return CheckAll(t.Context(), h, fake{verdict: v}).Verdicts[0] }
	require.Equal(t, Unknown, judge(bad(110*time.Second, true)).Validity)
	require.Equal(t, Invalid, judge(bad(110*time.Second, false)).Validity)
	require.Equal(t, Invalid, judge(bad(300*time.Second, true)).Validity)
	whole := bad(110*time.Second, true)
	whole.Parts = []Verdict{bad(110*time.Second, true), bad(90*time.Second, true)}
	got := judge(whole)
	require.Equal(t, Unknown, got.Validity)
	require.Equal(t, ReasonEnvironment, got.Reason)
	whole.Parts = append(whole.Parts, bad(400*time.Second, true))
	require.Equal(t, Invalid, judge(whole).Validity)
}

func TestVerdictFile(t *testing.T) {
	r := Compose([]Verdict{
		{Checker: "a", Summary: "<fine>", Data: json.RawMessage(`{"n":1}`), Parts: []Verdict{{Checker: "a", Validity: Unknown, Reason: ReasonTime}}},
		{Checker: "c", Class: Harness, At: time.Second, Evidence: []int{1, 2}, TimeBound: true},
	})
	var out bytes.Buffer
	require.NoError(t, WriteResult(&out, r))
	require.Contains(t, out.String(), `"<fine>"`)
	back, err := ReadResult(&out)
	require.NoError(t, err)
	var again bytes.Buffer
	require.NoError(t, WriteResult(&again, back))
	back2, err := ReadResult(&again)
	require.NoError(t, err)
	require.Equal(t, back, back2)
	require.Equal(t, r.Exit, back.Exit)
	for name, text := range map[string]string{
		"another schema": `{"schema":2,"verdicts":[]}`,
		"unknown field":  `{"schema":1,"colour":"red"}`,
		"unknown word":   `{"schema":1,"property":"fine"}`,
		"two objects":    `{"schema":1} {"schema":1}`,
		"torn":           `{"schema":1,"verd`,
	} {
		_, err := ReadResult(strings.NewReader(text))
		require.Error(t, err, name)
	}
}
