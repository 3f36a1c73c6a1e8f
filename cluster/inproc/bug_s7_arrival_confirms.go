package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s7ArrivalConfirms drops: a fetch that was sent before the read confirms nothing.
func s7ArrivalConfirms() Bug {
	return Bug{
		Name:     "s7-arrival-confirms",
		Source:   "docs/protocol.md 1, rule S7",
		Breaks:   "a fetch that was sent before the read confirms nothing",
		Trigger:  "fetches that are seconds on their way across an election",
		CaughtBy: "linearizable",
		Scenario: "directed: fetches are 5 s on the wire while their leader is replaced",
		Plant:    func(p *protocol.Policy) { p.Tablet.EchoConfirms = false },
	}
}
