package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// servesBeforeRegistration drops: a restarted server refuses no client in the name
// of its former life.
func servesBeforeRegistration() Bug {
	return Bug{
		Name:     "serves-before-registration",
		Source:   "Apache Fluss: the port is open seconds before the registration",
		Breaks:   "a restarted server refuses no client in the name of its former life",
		Trigger:  "a leader restarts well within its session time-out, and clients do not back off",
		CaughtBy: "storms",
		Scenario: "--nemesis restart --bug serves-before-registration,client-no-backoff: counted as lost refusals, which make no storm",
		Plant:    func(p *protocol.Policy) { p.Tablet.ServeOnceRegistered = false },
	}
}
