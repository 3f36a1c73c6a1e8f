package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// unguardedZKWrites drops: no write of an old term reaches ZooKeeper after the
// start of a newer one.
func unguardedZKWrites() Bug {
	return Bug{
		Name:     "unguarded-zk-writes",
		Source:   "Apache Fluss FIP-9",
		Breaks:   "no write of an old term reaches ZooKeeper after the start of a newer one",
		Trigger:  "an old leader wakes inside the partition creator's tick, or between decision and write",
		CaughtBy: "fencing",
		Scenario: "--nemesis old-leader",
		Plant:    func(p *protocol.Policy) { p.Coordinator.GuardWrites = false },
	}
}
