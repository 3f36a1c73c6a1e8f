package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// bounceUnseen drops: a restarted tablet is told its replicas again.
func bounceUnseen() Bug {
	return Bug{
		Name:     "bounce-unseen",
		Source:   "Apache Fluss: a changed registration node is ignored",
		Breaks:   "a restarted tablet is told its replicas again",
		Trigger:  "a tablet restarts inside its session, or while the coordinator is disconnected",
		CaughtBy: "convergence",
		Scenario: "restart of tablets while the ZooKeeper of the leading coordinator is held",
		Plant:    func(p *protocol.Policy) { p.Coordinator.SeeBounce = false },
	}
}
