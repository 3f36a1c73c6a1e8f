package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// unfencedRPC drops: a tablet that has heard a newer term obeys no older one.
func unfencedRPC() Bug {
	return Bug{
		Name:     "unfenced-rpc",
		Source:   "Apache Fluss FIP-9",
		Breaks:   "a tablet that has heard a newer term obeys no older one",
		Trigger:  "an old leader that still reaches tablets after a newer one has",
		CaughtBy: "fencing",
		Scenario: "--nemesis old-leader",
		Plant:    func(p *protocol.Policy) { p.Tablet.CheckCoordinatorEpoch = false },
	}
}
