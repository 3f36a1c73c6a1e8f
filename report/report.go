// Package report turns a judged run into pages and files that people and
// machines read: one self-contained HTML page, JUnit XML, a Markdown summary
// and a text for the terminal. It sees histories and verdicts only, so any
// stored run can be rendered again.
package report

import (
	"encoding/json"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/history"
)

// Input is everything that a report shows. All text in it may be hostile
// (keys, errors, node names) and is escaped on the way out.
type Input struct {
	Title string // the test's name and seed
	// Plan holds the rows of the plan's table, in order: seed, workload, faults,
	// bugs, world, ZooKeeper, versions, sizes.
	Plan []Field
	// Command repeats the run.
	Command string
	History history.History
	// Verdicts are those of the single checkers; Overall is the run's.
	Verdicts []checker.Verdict
	Exit     int // the exit code that the verdicts come to
	// Notes are sentences about the run itself: a torn last line, a signal.
	Notes []string
	// Picture is Porcupine's own page for the first violating key, or nil.
	Picture    []byte
	PictureKey string
	// StormsData and so on are found in the verdicts' Data.
	Generated time.Time
}

// Field is one row of a table: a name and a value.
type Field struct{ Name, Value string }

// Words are an exit code's meaning, in one short sentence.
func Words(exit int) string {
	switch exit {
	case 0:
		return "valid: every checker judged and none objected"
	case 1:
		return "invalid: a checker found a violation and gives its evidence"
	case 2:
		return "unknown: nothing was found, but something could not be judged or did not happen"
	case 254:
		return "usage: the command or a file was malformed"
	default:
		return "harness: the test harness itself failed, so its silence means nothing"
	}
}

// find returns the verdict of a checker, searching parts too.
func find(verdicts []checker.Verdict, name string) (checker.Verdict, bool) {
	for _, v := range verdicts {
		if v.Checker == name {
			return v, true
		}
		if inner, ok := find(v.Parts, name); ok {
			return inner, true
		}
	}
	return checker.Verdict{}, false
}

// worst is the worst validity of one class, and whether any checker is of it.
func worst(verdicts []checker.Verdict, class checker.Class) (checker.Validity, bool) {
	out, any := checker.Valid, false
	for _, v := range verdicts {
		if v.Class == class {
			out, any = max(out, v.Validity), true
		}
	}
	return out, any
}

// firstViolation is the invalid verdict with the earliest bad moment; its
// deepest invalid part tells the story.
func firstViolation(verdicts []checker.Verdict) (checker.Verdict, bool) {
	var best checker.Verdict
	found := false
	for _, v := range verdicts {
		if v.Validity != checker.Invalid {
			continue
		}
		candidate := v
		if inner, ok := firstViolation(v.Parts); ok && inner.Story != "" {
			candidate = inner
		}
		if !found || candidate.At < best.At {
			best, found = candidate, true
		}
	}
	return best, found
}

// decodeData reads a verdict's Data, leaving out untouched where it is absent
// or of another shape: a report must come out of any run.
func decodeData(v checker.Verdict, out any) bool {
	return len(v.Data) > 0 && json.Unmarshal(v.Data, out) == nil
}
