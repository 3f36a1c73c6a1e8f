package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s7CommittedISRConfirms drops: a read is confirmed by all that may be in sync,
// not by those known to be.
func s7CommittedISRConfirms() Bug {
	return Bug{
		Name:     "s7-committed-isr-confirms",
		Source:   "PROTOCOL 1, rule S7",
		Breaks:   "a read is confirmed by all that may be in sync, not by those known to be",
		Trigger:  "an ISR shrinks by a proposal whose answer is lost, with four or more replicas",
		CaughtBy: "linearizable",
		Scenario: "replication factor 4 or 5, lost AdjustIsr replies, partitions",
		Plant:    func(p *protocol.Policy) { p.Tablet.ReadsNeedMaximalISR = false },
	}
}
