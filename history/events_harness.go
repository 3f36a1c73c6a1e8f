package history

// The kinds of what the harness reports of itself and of the run as a whole.
const (
	KindPhase     = "phase"
	KindConverged = "converged"
	KindHarness   = "harness"
	KindStall     = "stall"
)

// Phase is the run entering one of its phases. The load phase ends where the
// heal phase begins.
type Phase struct {
	Name string `json:"name"` // setup, load, heal, converge, final, end
}

// The phases of a run, in their order.
const (
	PhaseSetup    = "setup"
	PhaseLoad     = "load"
	PhaseHeal     = "heal"
	PhaseConverge = "converge"
	PhaseFinal    = "final"
	PhaseEnd      = "end"
)

// Converged says how the wait for recovery after the last heal went. Unmet is
// empty if every predicate held in the end; otherwise the time allowed ran out.
type Converged struct {
	Took  int64   `json:"took"`  // nanoseconds since the last heal
	Limit int64   `json:"limit"` // nanoseconds allowed
	Unmet []Unmet `json:"unmet,omitempty"`
	// Unasked says why nobody could be asked: the system lacks the capability.
	Unasked string `json:"unasked,omitempty"`
}

// Unmet is a named predicate of a healthy cluster that does not hold, and why.
type Unmet struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Harness is a problem of the harness itself; any of them breaks the harness
// verdict.
type Harness struct {
	Problem string `json:"problem"`
	Detail  string `json:"detail"`
	// Process is the client concerned, -1 for none.
	Process Process `json:"process"`
}

// The problems of a Harness event.
const (
	ProblemPanic   = "panic"   // a client, a generator or a nemesis panicked
	ProblemNemesis = "nemesis" // a fault could not be injected as planned
	ProblemHeal    = "heal"    // a fault could not be healed
	ProblemStuck   = "stuck"   // a client did not return although its time was over
	ProblemSetup   = "setup"   // the cluster or the workload did not start
	ProblemTask    = "task"    // a task of the harness failed
	ProblemStop    = "stop"    // the cluster did not stop in good order
)

// Stall is a moment at which the control loop ran late: the host was too slow,
// which excuses verdicts that are bound to time.
type Stall struct {
	Late int64 `json:"late"` // nanoseconds
}

// Kind names the event.
func (Phase) Kind() string { return KindPhase }

// Kind names the event.
func (Converged) Kind() string { return KindConverged }

// Kind names the event.
func (Harness) Kind() string { return KindHarness }

// Kind names the event.
func (Stall) Kind() string { return KindStall }
