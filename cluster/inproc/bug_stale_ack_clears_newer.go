package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// staleAckClearsNewer drops: a pending activation ends only by an answer with the
// same bucket, leader epoch and incarnation.
func staleAckClearsNewer() Bug {
	return Bug{
		Name:     "stale-ack-clears-newer",
		Source:   "Apache Fluss: no epoch in the answer to NotifyLeaderAndIsr",
		Breaks:   "a pending activation ends only by an answer with the same bucket, leader epoch and incarnation",
		Trigger:  "a delayed answer of an older leader epoch arrives while a newer one is pending",
		CaughtBy: "storms",
		Scenario: "sessions of leaders expire while answers to NotifyLeaderAndIsr take up to 4 s, together with client-no-backoff",
		Plant:    func(p *protocol.Policy) { p.Coordinator.MatchAckKey = false },
	}
}
