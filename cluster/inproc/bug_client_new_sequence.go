package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// clientNewSequence drops: a write that is tried again is executed at most once.
func clientNewSequence() Bug {
	return Bug{
		Name:     "client-new-sequence",
		Source:   "docs/protocol.md 5: a retry carries the same writer id and sequence",
		Breaks:   "a write that is tried again is executed at most once",
		Trigger:  "a reply to a put is lost, another client writes the key, the put is tried again",
		CaughtBy: "linearizable",
		Scenario: "three in ten replies of PutKv are lost",
		Plant:    func(p *protocol.Policy) { p.Client.SameSequence = false },
	}
}
