package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// restartedLeaderKept drops: a restarted leader is elected again, at a higher
// leader epoch.
func restartedLeaderKept() Bug {
	return Bug{
		Name:     "restarted-leader-kept",
		Source:   "docs/protocol.md 1, rule S1",
		Breaks:   "a restarted leader is elected again, at a higher leader epoch",
		Trigger:  "a leader restarts before its session has ended",
		CaughtBy: "convergence",
		Scenario: "a leader restarts, its session expired, while the ZooKeeper of the leading coordinator is held",
		Plant:    func(p *protocol.Policy) { p.Coordinator.ReelectRestarted = false },
	}
}
