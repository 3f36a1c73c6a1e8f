package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/internal/lab"
)

// The first question: a leader that is advertised before it admits the role
// starts a storm of refusals; withheld until then, clients with the same tight
// loop are not refused at all.
func TestWithholdingThePendingLeaderEndsTheStorm(t *testing.T) {
	c := config(*seedFlag)
	c.Nemesis = []string{"restart", "slow-recovery"}
	c.Options.Recovery = 10 * time.Second
	c.Bugs = []string{"advertise-before-admit", "client-no-backoff"}
	storm := perform(t, c)
	require.Equal(t, checker.ExitInvalid, storm.Exit, explain(storm))
	require.Equal(t, checker.Invalid, verdict(t, storm, "storms").Validity)

	c.Bugs = []string{"client-no-backoff"}
	calm := perform(t, c)
	require.Zero(t, calm.Exit, explain(calm))
}

// The second question: each of the three defences against an old leader, left
// out, is missed.
func TestAnOldLeaderIsCaughtWhereADefenceIsMissing(t *testing.T) {
	for _, bugs := range [][]string{
		{"unfenced-rpc"},
		{"unguarded-zk-writes"},
		{"epoch-always-zero", "unfenced-rpc", "unguarded-zk-writes"},
	} {
		t.Run(bugs[0], func(t *testing.T) {
			c := config(*seedFlag)
			c.Nemesis, c.Bugs = []string{"old-leader"}, bugs
			outcome := perform(t, c)
			require.Equal(t, checker.ExitInvalid, outcome.Exit, explain(outcome))
		})
	}
}

func verdict(t *testing.T, o lab.Outcome, name string) checker.Verdict {
	t.Helper()
	for _, v := range o.Verdicts {
		if v.Checker == name {
			return v
		}
	}
	require.Fail(t, "no verdict of "+name)
	return checker.Verdict{}
}
