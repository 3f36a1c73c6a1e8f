package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s1RestartedLeaderLeadsOn drops: after a restart no server leads at a leader
// epoch that it knew before.
func s1RestartedLeaderLeadsOn() Bug {
	return Bug{
		Name:     "s1-restarted-leader-leads-on",
		Source:   "docs/protocol.md 1, rule S1",
		Breaks:   "after a restart no server leads at a leader epoch that it knew before",
		Trigger:  "a leader restarts and is told its old role again",
		CaughtBy: "linearizable",
		Scenario: "not reached: the coordinator elects a restarted leader again, and tokens name the incarnation",
		Plant:    func(p *protocol.Policy) { p.Tablet.RefuseOldLeadership = false },
	}
}
