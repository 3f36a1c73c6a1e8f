package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// clientNoBackoff drops: clients that are refused come back later and later, each
// at its own time.
func clientNoBackoff() Bug {
	return Bug{
		Name:     "client-no-backoff",
		Source:   "Apache Fluss issue 4402 and the Java client's open TODO on retry back-off",
		Breaks:   "clients that are refused come back later and later, each at its own time",
		Trigger:  "a leader that refuses for long: advertised too early, or restarted inside its session",
		CaughtBy: "storms",
		Scenario: "--bug advertise-before-admit,client-no-backoff --nemesis restart,slow-recovery --recovery 10s",
		Plant:    func(p *protocol.Policy) { p.Client.BackOff = false },
	}
}
