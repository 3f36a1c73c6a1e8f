package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// s4EndsOfFormerEpochs drops: only ends reported at this leader epoch move the
// high watermark.
func s4EndsOfFormerEpochs() Bug {
	return Bug{
		Name:     "s4-ends-of-former-epochs",
		Source:   "docs/protocol.md 1, rule S4",
		Breaks:   "only ends reported at this leader epoch move the high watermark",
		Trigger:  "a server leads again and counts what followers had under another leader",
		CaughtBy: "linearizable",
		Scenario: "directed: a batch reaches one follower, which leads, acknowledges the retry, and is lost",
		Plant:    func(p *protocol.Policy) { p.Tablet.HeardThisEpoch = false },
	}
}
