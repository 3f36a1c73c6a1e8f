package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s8TruncateToHW drops: logs agree below the high watermark.
func s8TruncateToHW() Bug {
	return Bug{
		Name:     "s8-truncate-to-hw",
		Source:   "docs/protocol.md 1, rule S8; Apache Fluss issues 673 and 749",
		Breaks:   "logs agree below the high watermark",
		Trigger:  "two quick changes of leader",
		CaughtBy: "invariants",
		Scenario: "kill of a leader and of its successor with slow NotifyLeaderAndIsr, links of 5 to 50 ms",
		Plant:    func(p *protocol.Policy) { p.Tablet.TruncateByEpoch = false },
	}
}
