package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// advertiseBeforeAdmit drops: metadata names a leader only once that leader has
// admitted the role.
func advertiseBeforeAdmit() Bug {
	return Bug{
		Name:     "advertise-before-admit",
		Source:   "Apache Fluss issue 4149, pull request 4150",
		Breaks:   "metadata names a leader only once that leader has admitted the role",
		Trigger:  "any election while the new leader's restore takes long",
		CaughtBy: "storms",
		Scenario: "--bug advertise-before-admit,client-no-backoff --nemesis restart,slow-recovery --recovery 10s",
		Plant:    func(p *protocol.Policy) { p.Coordinator.WithholdPending = false },
	}
}
