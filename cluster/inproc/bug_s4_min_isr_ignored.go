package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s4MinISRIgnored drops: nothing is acknowledged by fewer replicas than min-ISR.
func s4MinISRIgnored() Bug {
	return Bug{
		Name:     "s4-min-isr-ignored",
		Source:   "docs/protocol.md 1, rule S4",
		Breaks:   "nothing is acknowledged by fewer replicas than min-ISR",
		Trigger:  "all followers fall out of the ISR, then the leader is lost",
		CaughtBy: "linearizable",
		Scenario: "not reached: elections stay within the ISR, so only the loss of a disk would show it",
		Plant:    func(p *protocol.Policy) { p.Tablet.HoldBelowMinISR = false },
	}
}
