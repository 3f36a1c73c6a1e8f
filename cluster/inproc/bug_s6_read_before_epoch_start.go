package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s6ReadBeforeEpochStart drops: a new leader's reads hold all that was
// acknowledged before it.
func s6ReadBeforeEpochStart() Bug {
	return Bug{
		Name:     "s6-read-before-epoch-start",
		Source:   "docs/protocol.md 1, rule S6",
		Breaks:   "a new leader's reads hold all that was acknowledged before it",
		Trigger:  "a read reaches a leader that was elected a moment ago",
		CaughtBy: "linearizable",
		Scenario: "leaders cut from all servers but not from clients, FetchLog delayed by up to 4 s",
		Plant:    func(p *protocol.Policy) { p.Tablet.ServeAfterEpochStart = false },
	}
}
