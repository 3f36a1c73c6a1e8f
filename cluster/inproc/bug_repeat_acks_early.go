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
		Scenario: "--bug repeat-acks-early,client-no-backoff --nemesis restart,slow-recovery --recovery 10s",
		Plant:    func(p *protocol.Policy) { p.Tablet.AckWhenServing = false },
	}
}
