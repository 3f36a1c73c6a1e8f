package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// clearedOnRPCFailure drops: a pending activation ends by that leader's own
// answer, a newer epoch, or deletion.
func clearedOnRPCFailure() Bug {
	return Bug{
		Name:     "cleared-on-rpc-failure",
		Source:   "Apache Fluss main: the pending mark is dropped when the notification fails",
		Breaks:   "a pending activation ends by that leader's own answer, a newer epoch, or deletion",
		Trigger:  "the link to a tablet breaks while it restores",
		CaughtBy: "storms",
		Scenario: "restart,slow-recovery while NotifyLeaderAndIsr is now and then refused on its way, together with client-no-backoff",
		Plant:    func(p *protocol.Policy) { p.Coordinator.KeepPendingOnRPCFailure = false },
	}
}
