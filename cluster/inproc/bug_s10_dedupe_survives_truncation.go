package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s10DedupeSurvivesTruncation drops: what is remembered of writers is what the log
// holds.
func s10DedupeSurvivesTruncation() Bug {
	return Bug{
		Name:     "s10-dedupe-survives-truncation",
		Source:   "docs/protocol.md 1, rule S10",
		Breaks:   "what is remembered of writers is what the log holds",
		Trigger:  "a follower truncates, then leads, and a retry of what it dropped arrives",
		CaughtBy: "linearizable",
		Scenario: "directed: a follower drops a batch under one leader, and leads itself when the client tries again",
		Plant:    func(p *protocol.Policy) { p.Tablet.DedupeFromLog = false },
	}
}
