package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s7CommittedISRConfirms drops: a read is confirmed by all that may be in sync,
// not by those known to be.
func s7CommittedISRConfirms() Bug {
	return Bug{
		Name:     "s7-committed-isr-confirms",
		Source:   "docs/protocol.md 1, rule S7",
		Breaks:   "a read is confirmed by all that may be in sync, not by those known to be",
		Trigger:  "an ISR shrinks by a proposal whose answer is lost, with four or more replicas",
		CaughtBy: "linearizable",
		Scenario: "directed: a follower joins unknown to its leader, and leads the other half; min-ISR 1",
		Plant:    func(p *protocol.Policy) { p.Tablet.ReadsNeedMaximalISR = false },
	}
}
