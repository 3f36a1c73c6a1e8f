package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s5JoinAtHW drops: a follower that joins the ISR holds all that an earlier leader
// acknowledged.
func s5JoinAtHW() Bug {
	return Bug{
		Name:     "s5-join-at-hw",
		Source:   "docs/protocol.md 1, rule S5; Apache Kafka issue 7128",
		Breaks:   "a follower that joins the ISR holds all that an earlier leader acknowledged",
		Trigger:  "a follower joins between the high watermark and the epoch start, then leads",
		CaughtBy: "linearizable",
		Scenario: "directed: a follower joins between high watermark and epoch start, and leads",
		Plant:    func(p *protocol.Policy) { p.Tablet.JoinAtEpochStart = false },
	}
}
