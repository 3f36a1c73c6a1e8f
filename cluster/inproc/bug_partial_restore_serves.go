package inproc

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// partialRestoreServes drops: a table that could not be restored is not served.
func partialRestoreServes() Bug {
	return Bug{
		Name:     "partial-restore-serves",
		Source:   "Apache Fluss: after five failed tries to restore a table its leader goes on with what it has",
		Breaks:   "a table that could not be restored is not served",
		Trigger:  "a new leader's disk fails while it restores",
		CaughtBy: "linearizable",
		Scenario: "failing disks, restart of leaders, slow recovery",
		Plant:    func(p *protocol.Policy) { p.Tablet.FailedRestoreFails = false },
	}
}
