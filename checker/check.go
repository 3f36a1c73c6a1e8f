package checker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// Reasons of an unknown or broken verdict, as Verdict.Reason holds them.
const (
	ReasonTime        = "time"           // a limit on time ran out
	ReasonMemory      = "memory"         // the predicted memory is beyond the limit
	ReasonValues      = "values"         // repeated values, and no search that could decide them in time
	ReasonOpen        = "too-many-open"  // too many operations open at once
	ReasonVacuous     = "vacuous"        // nothing, or not enough, was there to judge
	ReasonIncomplete  = "incomplete"     // the history is a prefix of the run
	ReasonEnvironment = "environment"    // the host stalled, which excuses a time-bound finding
	ReasonCrash       = "crash"          // a checker failed
	ReasonContract    = "contract"       // the history breaks a checker's input contract
	ReasonDisagree    = "disagreement"   // two algorithms give different answers
	ReasonNoEvidence  = "no-evidence"    // a checker says invalid and shows nothing
	ReasonNotReached  = "not-applicable" // the path does not apply to this history
)

// Exit codes of a judged run (section 5 of the protocol, "Exit").
const (
	ExitValid   = 0
	ExitInvalid = 1
	ExitUnknown = 2
	ExitUsage   = 254
	ExitHarness = 255
)

// Result is the judgement of a run: the three verdicts and what they rest on.
type Result struct {
	Property Validity  `json:"property"`
	Coverage Validity  `json:"coverage"`
	Harness  Validity  `json:"harness"`
	Exit     int       `json:"exit"`
	Verdicts []Verdict `json:"verdicts"`
}

// CheckAll runs the checkers one after another, in their order, and composes
// their answers. A checker that panics, fails, or says invalid without any
// evidence becomes a harness verdict: its silence would mean nothing. A checker
// that ctx cut short is unknown. A stall of the host turns the time-bound
// findings near it into unknown (section 5, "Environment").
func CheckAll(ctx context.Context, h history.History, checkers ...Checker) Result {
	verdicts := make([]Verdict, 0, len(checkers))
	stalls, _ := stalls(h) // what cannot be read is the harness checker's to report
	for _, c := range checkers {
		v := safely(ctx, h, c)
		verdicts = append(verdicts, excuse(v, stalls))
	}
	return Compose(verdicts)
}

// Compose derives the three verdicts and the exit code from the single ones.
// Without any property verdict the property is unknown: silence is not success.
func Compose(verdicts []Verdict) Result {
	r := Result{Verdicts: verdicts}
	worst := map[Class]Validity{}
	asked := false
	walk(verdicts, func(v Verdict) {
		worst[v.Class] = max(worst[v.Class], v.Validity)
		asked = asked || v.Class == Property
	})
	if !asked {
		worst[Property] = max(worst[Property], Unknown)
	}
	r.Property, r.Coverage, r.Harness = worst[Property], worst[Coverage], worst[Harness]
	r.Exit = exit(r, verdicts)
	return r
}

// exit puts evidence-backed invalid first: a broken harness does not unsay it.
func exit(r Result, verdicts []Verdict) int {
	contract := false
	walk(verdicts, func(v Verdict) { contract = contract || v.Class == Harness && v.Reason == ReasonContract })
	switch {
	case r.Property == Invalid:
		return ExitInvalid
	case contract:
		return ExitUsage
	case r.Harness == Invalid:
		return ExitHarness
	case r.Property != Valid || r.Coverage != Valid || r.Harness != Valid:
		return ExitUnknown
	}
	return ExitValid
}

// walk visits every verdict and its parts, parents first.
func walk(verdicts []Verdict, visit func(Verdict)) {
	for _, v := range verdicts {
		visit(v)
		walk(v.Parts, visit)
	}
}

// Merge is the worst validity of several verdicts, Valid for none.
func Merge(verdicts ...Verdict) Validity {
	worst := Valid
	for _, v := range verdicts {
		worst = max(worst, v.Validity)
	}
	return worst
}

func safely(ctx context.Context, h history.History, c Checker) (v Verdict) {
	broken := func(reason, summary, story string) Verdict {
		return Verdict{Checker: c.Name(), Class: Harness, Validity: Invalid, Reason: reason, Summary: summary, Story: story}
	}
	defer func() {
		if p := recover(); p != nil {
			v = broken(ReasonCrash, fmt.Sprintf("the checker panicked: %v", p), string(debug.Stack()))
		}
	}()
	v, err := c.Check(ctx, h)
	var line *history.LineError
	switch {
	case errors.As(err, &line):
		return broken(ReasonContract, err.Error(), "")
	case err != nil && ctx.Err() != nil:
		return Verdict{Checker: c.Name(), Validity: Unknown, Reason: ReasonTime, Summary: "cut short: " + err.Error()}
	case err != nil:
		return broken(ReasonCrash, err.Error(), "")
	}
	if v.Checker == "" {
		v.Checker = c.Name()
	}
	if v.Class == Property && v.Validity == Invalid && !evident(v) {
		return broken(ReasonNoEvidence, "says invalid without evidence: "+v.Summary, v.Story)
	}
	return v
}

func evident(v Verdict) bool {
	if len(v.Evidence) > 0 {
		return true
	}
	for _, part := range v.Parts {
		if part.Validity == Invalid && part.Class == Property && evident(part) {
			return true
		}
	}
	return false
}

// stallReach is how far from a stall a time-bound finding may lie and still be
// its doing: a stalled host expires sessions, and recovery takes a while.
const stallReach = 30 * time.Second

// excuse turns time-bound invalid findings into unknown if the host stalled at
// that time. Findings that are not bound to time stay, however slow the machine.
func excuse(v Verdict, stalls []stall) Verdict {
	if len(stalls) == 0 {
		return v
	}
	if len(v.Parts) > 0 {
		parts := make([]Verdict, len(v.Parts))
		still := Valid
		for i, part := range v.Parts {
			parts[i] = excuse(part, stalls)
			if parts[i].Class == v.Class {
				still = max(still, parts[i].Validity)
			}
		}
		v.Parts = parts
		if v.TimeBound && v.Validity == Invalid && still == Unknown && v.Reason == "" {
			v.Validity, v.Reason = Unknown, ReasonEnvironment
			v.Summary += " (excused: the host stalled)"
		}
		return v
	}
	if !v.TimeBound || v.Validity != Invalid {
		return v
	}
	for _, s := range stalls {
		if v.At >= s.From-stallReach && v.At <= s.To+stallReach {
			v.Validity, v.Reason = Unknown, ReasonEnvironment
			v.Summary += fmt.Sprintf(" (excused: the host stalled for %v at %v)", s.To-s.From, s.From)
			return v
		}
	}
	return v
}
