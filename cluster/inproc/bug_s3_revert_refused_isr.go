package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s3RevertRefusedISR drops: an ISR that was ever proposed counts until a higher
// bucket epoch clears it.
func s3RevertRefusedISR() Bug {
	return Bug{
		Name:     "s3-revert-refused-isr",
		Source:   "docs/protocol.md 1, rule S3; Apache Kafka and Apache Fluss revert a refused proposal",
		Breaks:   "an ISR that was ever proposed counts until a higher bucket epoch clears it",
		Trigger:  "an AdjustIsr is accepted and its answer is lost",
		CaughtBy: "linearizable",
		Scenario: "directed: a follower joins the ISR, the leader never hears of it, and the follower leads",
		Plant:    func(p *protocol.Policy) { p.Tablet.MaximalISR = false },
	}
}
