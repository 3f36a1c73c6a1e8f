package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s8UnmatchedReply drops: a fetch reply counts only for the request it answers, at
// that leader epoch.
func s8UnmatchedReply() Bug {
	return Bug{
		Name:     "s8-unmatched-reply",
		Source:   "docs/protocol.md 1, rule S8",
		Breaks:   "a fetch reply counts only for the request it answers, at that leader epoch",
		Trigger:  "a fetch reply of an older leader arrives late",
		CaughtBy: "linearizable",
		Scenario: "not reached yet: replies delayed beyond the time-out of their requests, with moves of leaders",
		Plant:    func(p *protocol.Policy) { p.Tablet.MatchReply = false },
	}
}
