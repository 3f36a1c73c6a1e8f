package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// lateNoneBeatsLeader drops: in metadata the higher leader epoch wins, and at the
// same epoch a leader beats none.
func lateNoneBeatsLeader() Bug {
	return Bug{
		Name:     "late-none-beats-leader",
		Source:   "Apache Fluss: metadata caches let the last write win",
		Breaks:   "in metadata the higher leader epoch wins, and at the same epoch a leader beats none",
		Trigger:  "an UpdateMetadata overtaken by its successor",
		CaughtBy: "convergence",
		Scenario: "restart of leaders with UpdateMetadata delayed by up to 3 s and reordered",
		Plant:    func(p *protocol.Policy) { p.Tablet.CompareMetadata = false },
	}
}
