package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s9NoCompareAndSet drops: every change of leader and ISR builds on the one before
// it.
func s9NoCompareAndSet() Bug {
	return Bug{
		Name:     "s9-no-compare-and-set",
		Source:   "docs/protocol.md 1, rule S9; Apache Fluss issue 3780",
		Breaks:   "every change of leader and ISR builds on the one before it",
		Trigger:  "an election and an AdjustIsr of the same bucket at the same time",
		CaughtBy: "linearizable",
		Scenario: "the write of a smaller ISR is cut before it reaches ZooKeeper, then coordinator and leader are lost",
		Plant:    func(p *protocol.Policy) { p.Coordinator.CompareAndSetLAI = false },
	}
}
