package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s2UnsyncedCounts drops: what counts as replicated survives a power loss.
func s2UnsyncedCounts() Bug {
	return Bug{
		Name:     "s2-unsynced-counts",
		Source:   "docs/protocol.md 1, rule S2",
		Breaks:   "what counts as replicated survives a power loss",
		Trigger:  "two replicas lose power",
		CaughtBy: "linearizable",
		Scenario: "power loss of a leader and a follower at once",
		Plant:    func(p *protocol.Policy) { p.Tablet.CountSyncedOnly = false },
	}
}
