package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// repeatAcksEarly drops: a tablet answers success only once it serves.
func repeatAcksEarly() Bug {
	return Bug{
		Name:     "repeat-acks-early",
		Source:   "Apache Fluss: a repeated notification at the same epoch skips activation and succeeds",
		Breaks:   "a tablet answers success only once it serves",
		Trigger:  "the notification is sent again during a restore",
		CaughtBy: "storms",
		Scenario: "restart,slow-recovery with --recovery 10s, together with client-no-backoff",
		Plant:    func(p *protocol.Policy) { p.Tablet.AckWhenServing = false },
	}
}
