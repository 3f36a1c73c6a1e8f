package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s7UnconfirmedReads drops: a leader that was replaced answers no reads.
func s7UnconfirmedReads() Bug {
	return Bug{
		Name:     "s7-unconfirmed-reads",
		Source:   "docs/protocol.md 1, rule S7; Apache Fluss",
		Breaks:   "a leader that was replaced answers no reads",
		Trigger:  "a leader is cut off or paused while another is elected, and clients reach both",
		CaughtBy: "linearizable",
		Scenario: "leaders cut from all servers but not from clients, links of 5 to 50 ms",
		Plant:    func(p *protocol.Policy) { p.Tablet.ConfirmReads = false },
	}
}
