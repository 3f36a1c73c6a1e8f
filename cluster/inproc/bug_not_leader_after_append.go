package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// notLeaderAfterAppend drops: a write that failed has not happened.
func notLeaderAfterAppend() Bug {
	return Bug{
		Name:     "not-leader-after-append",
		Source:   "docs/protocol.md 5: a refusal after the append is not definite",
		Breaks:   "a write that failed has not happened",
		Trigger:  "a leader loses its role between append and acknowledgement",
		CaughtBy: "linearizable",
		Scenario: "sessions of leaders expire, operations end after 300 ms, links of 5 to 50 ms",
		Plant:    func(p *protocol.Policy) { p.Tablet.LostAfterAppendIsUnknown = false },
	}
}
