package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s7BareCounter drops: an echo confirms reads of the leadership that it was meant
// for only.
func s7BareCounter() Bug {
	return Bug{
		Name:     "s7-bare-counter",
		Source:   "docs/protocol.md 1, rule S7",
		Breaks:   "an echo confirms reads of the leadership that it was meant for only",
		Trigger:  "a leader restarts and hears echoes of its former life",
		CaughtBy: "linearizable",
		Scenario: "directed: a leader that has led for a moment, and followers that remember the tokens of the one before",
		Plant:    func(p *protocol.Policy) { p.Tablet.TokenNamesLeadership = false },
	}
}
