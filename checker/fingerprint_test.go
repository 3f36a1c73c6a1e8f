package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShapeForgetsWhatDiffersFromRunToRun(t *testing.T) {
	for _, c := range []struct{ want, a, b string }{
		{
			"# wrote # at zxid #, after zxid #",
			"coordinator-0 wrote /fluss/a/1 at zxid 17, after zxid 16", "coordinator-2 wrote /fluss/b at zxid 4000, after zxid 1",
		},
		{"# refused # time from # to #", "registers#1/3 refused 140 times from 3.2 s to 8.0 s", "registers#2/0 refused 1 time from 0.2 s to 9 s"},
		{"stale read on key # at #", "stale read on key k12 at 4.5 s", "stale read on key k3 at 17.25 s"},
		{"# error, first # (session-loss): done", "3 errors, first e1 (session-loss): done", "1 error, first e2 (session-loss): done"},
		{"# has no leader", "b#1/2 has no leader", "b#3/4 has no leader"},
		{"not served: #", "not served: a#1/1, a#1/2, a#1/3", "not served: a#1/7"},
	} {
		require.Equal(t, c.want, shape(c.a))
		require.Equal(t, c.want, shape(c.b))
	}
}

func TestFingerprintsNameEachKindOnceGravestFirst(t *testing.T) {
	late := Verdict{Checker: "storms", Validity: Invalid, TimeBound: true, Summary: "2 storms", Parts: []Verdict{
		{Validity: Invalid, TimeBound: true, Summary: "a#1/1 refused 200 times"},
		{Validity: Invalid, TimeBound: true, Summary: "a#1/2 refused 300 times"},
	}}
	broken := Verdict{Checker: "run", Class: Harness, Validity: Invalid, Summary: "deadlock"}
	fenced := Verdict{Checker: "fencing", Validity: Invalid, Summary: "tablet 1 obeyed"}
	fine := Verdict{Checker: "linearizable", Validity: Unknown, Summary: "no time"}
	uncovered := Verdict{Checker: "coverage", Class: Coverage, Validity: Invalid, Summary: "no effect"}
	got := Fingerprints(Result{Verdicts: []Verdict{broken, late, fine, uncovered, fenced}})
	require.Equal(t, []Fingerprint{
		{"fencing", "tablet # obeyed"}, {"storms", "# refused # time"}, {"run", "deadlock"},
	}, got)
	require.Len(t, got[0].ID(), 8)
	require.NotEqual(t, got[0].ID(), got[1].ID())
	require.Empty(t, Fingerprints(Result{}))
}
