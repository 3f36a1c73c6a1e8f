package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// standbyServes drops: only the coordinator in office executes requests.
func standbyServes() Bug {
	return Bug{
		Name:     "standby-serves",
		Source:   "Apache Fluss FIP-9: what a standby may answer",
		Breaks:   "only the coordinator in office executes requests",
		Trigger:  "a client or tablet that asks a standby",
		CaughtBy: "fencing",
		Scenario: "a client keeps the address of a coordinator whose session expired",
		Plant:    func(p *protocol.Policy) { p.Coordinator.StandbyRefuses = false },
	}
}
