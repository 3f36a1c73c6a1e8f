package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// failoverWithholdsServingLeaders drops: a leader that serves stays known when the
// coordinator changes.
func failoverWithholdsServingLeaders() Bug {
	return Bug{
		Name:     "failover-withholds-serving-leaders",
		Source:   "docs/protocol.md 2: a new coordinator never sends \"no leader\" at an unchanged leader epoch",
		Breaks:   "a leader that serves stays known when the coordinator changes",
		Trigger:  "the leading coordinator is killed while clients work",
		CaughtBy: "availability",
		Scenario: "kill of the leading coordinator with slow answers to NotifyLeaderAndIsr, together with client-old-metadata: sound clients compare leader epochs and do not notice",
		Plant:    func(p *protocol.Policy) { p.Coordinator.SilentUntilConfirmed = false },
	}
}
