package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s10DuplicateAtOnce drops: a duplicate is acknowledged only when the original is
// replicated.
func s10DuplicateAtOnce() Bug {
	return Bug{
		Name:     "s10-duplicate-at-once",
		Source:   "docs/protocol.md 1, rule S10",
		Breaks:   "a duplicate is acknowledged only when the original is replicated",
		Trigger:  "a put times out, is tried again, and the leader is lost",
		CaughtBy: "linearizable",
		Scenario: "two in five replies of PutKv are lost while leaders are cut off and restarted",
		Plant:    func(p *protocol.Policy) { p.Tablet.DuplicateWaits = false },
	}
}
