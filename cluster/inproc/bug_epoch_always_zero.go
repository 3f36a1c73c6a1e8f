package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// epochAlwaysZero drops: a coordinator epoch belongs to one term.
func epochAlwaysZero() Bug {
	return Bug{
		Name:     "epoch-always-zero",
		Source:   "Apache Fluss FIP-9: the coordinator epoch was the constant 0",
		Breaks:   "a coordinator epoch belongs to one term",
		Trigger:  "a coordinator is cut from ZooKeeper until another leads, then healed",
		CaughtBy: "fencing",
		Scenario: "--nemesis old-leader",
		Plant:    func(p *protocol.Policy) { p.Coordinator.BumpEpoch = false },
	}
}
