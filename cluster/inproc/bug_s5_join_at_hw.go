package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s5JoinAtHW drops: a follower that joins the ISR holds all that an earlier leader
// acknowledged.
func s5JoinAtHW() Bug {
	return Bug{
		Name:     "s5-join-at-hw",
		Source:   "PROTOCOL 1, rule S5; Apache Kafka issue 7128",
		Breaks:   "a follower that joins the ISR holds all that an earlier leader acknowledged",
		Trigger:  "a follower joins between the high watermark and the epoch start, then leads",
		CaughtBy: "linearizable",
		Scenario: "directed: ten steps, see PROTOCOL 6",
		Plant:    func(p *protocol.Policy) { p.Tablet.JoinAtEpochStart = false },
	}
}
