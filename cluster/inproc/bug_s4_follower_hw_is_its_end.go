package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s4FollowerHWIsItsEnd drops: a follower's high watermark covers committed records
// only.
func s4FollowerHWIsItsEnd() Bug {
	return Bug{
		Name:     "s4-follower-hw-is-its-end",
		Source:   "docs/protocol.md 1, rule S4; Apache Fluss",
		Breaks:   "a follower's high watermark covers committed records only",
		Trigger:  "a follower with uncommitted records becomes leader or truncates",
		CaughtBy: "invariants",
		Scenario: "kill of a leader and of its successor, links of 5 to 50 ms",
		Plant:    func(p *protocol.Policy) { p.Tablet.FollowerHWFromLeader = false },
	}
}
