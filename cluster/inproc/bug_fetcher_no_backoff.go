package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// fetcherNoBackoff drops: a follower that is refused waits before it asks again.
func fetcherNoBackoff() Bug {
	return Bug{
		Name:     "fetcher-no-backoff",
		Source:   "Apache Fluss issue 2075",
		Breaks:   "a follower that is refused waits before it asks again",
		Trigger:  "a follower is told of a leader that has not admitted the role",
		CaughtBy: "none",
		Scenario: "not judged: the refusals are between servers, and no client sees them",
		Plant:    func(p *protocol.Policy) { p.Tablet.FetcherBacksOff = false },
	}
}
