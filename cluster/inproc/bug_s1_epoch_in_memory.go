package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s1EpochInMemory drops: a replica never accepts a lower leader epoch than it
// knew, restarts included.
func s1EpochInMemory() Bug {
	return Bug{
		Name:     "s1-epoch-in-memory",
		Source:   "docs/protocol.md 1, rule S1; Apache Fluss keeps epochs in memory",
		Breaks:   "a replica never accepts a lower leader epoch than it knew, restarts included",
		Trigger:  "a tablet restarts, and an order of an older epoch arrives late",
		CaughtBy: "linearizable",
		Scenario: "not reached: a late order names the incarnation that it was meant for, and another refuses it",
		Plant:    func(p *protocol.Policy) { p.Tablet.SyncLeaderEpoch = false },
	}
}
