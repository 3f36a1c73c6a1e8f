package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// ackLostPendingForever drops: no bucket is pending longer than its restore and
// two resend intervals.
func ackLostPendingForever() Bug {
	return Bug{
		Name:     "ack-lost-pending-forever",
		Source:   "Apache Fluss: a lost control request is never sent again",
		Breaks:   "no bucket is pending longer than its restore and two resend intervals",
		Trigger:  "one NotifyLeaderAndIsr, or the answer to it, is lost",
		CaughtBy: "convergence",
		Scenario: "restart of leaders while nearly all answers to NotifyLeaderAndIsr are lost",
		Plant:    func(p *protocol.Policy) { p.Coordinator.ResendNotify = false },
	}
}
