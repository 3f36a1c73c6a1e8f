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
		Scenario: "stale clients that keep an old coordinator's address, under old-leader",
		Plant:    func(p *protocol.Policy) { p.Coordinator.StandbyRefuses = false },
	}
}
