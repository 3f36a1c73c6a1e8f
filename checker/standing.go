package checker

import "github.com/fencepost-dev/fencepost/history"

// StandingOptions are what the checkers of every run need to know.
type StandingOptions struct {
	Storms       StormOptions
	Coverage     CoverageOptions
	Availability AvailabilityOptions
	// Report is what reading the history met; a torn last line makes the run incomplete.
	Report history.Report
}

// Standing are the checkers that judge every run whatever its workload, in the
// order of a report: storms, fencing, single-leader, invariants, convergence,
// availability, coverage, harness.
func Standing(o StandingOptions) []Checker {
	return []Checker{
		NewStorms(o.Storms), NewFencing(), NewSingleLeader(), NewInvariants(), NewConvergence(),
		NewAvailability(o.Availability), NewCoverage(o.Coverage), NewHarness(o.Report),
	}
}
