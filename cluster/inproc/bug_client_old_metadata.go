package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// clientOldMetadata drops: a client's view of who leads never goes back to a lower
// leader epoch.
func clientOldMetadata() Bug {
	return Bug{
		Name:     "client-old-metadata",
		Source:   "Apache Fluss: the client replaces its cache by any answer",
		Breaks:   "a client's view of who leads never goes back to a lower leader epoch",
		Trigger:  "a tablet whose metadata lags answers after one whose metadata does not",
		CaughtBy: "storms",
		Scenario: "restart with a tablet cut from the coordinators, together with client-no-backoff; one seed in six",
		Plant:    func(p *protocol.Policy) { p.Client.CompareMetadata = false },
	}
}
