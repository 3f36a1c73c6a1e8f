// Package checker judges histories. It sees nothing but package history, so
// any stored history can be judged again, on any machine, years later.
package checker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// Validity is the answer of a checker. The order composes: the worst of
// several is their maximum.
type Validity uint8

// The three answers.
const (
	Valid Validity = iota
	Unknown
	Invalid
)

var validityNames = [...]string{Valid: "valid", Unknown: "unknown", Invalid: "invalid"}

// String returns the word used in files and reports.
func (v Validity) String() string {
	if int(v) < len(validityNames) {
		return validityNames[v]
	}
	return fmt.Sprintf("validity(%d)", uint8(v))
}

// MarshalText writes the word.
func (v Validity) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the word.
func (v *Validity) UnmarshalText(text []byte) error {
	for i, name := range validityNames {
		if name == string(text) {
			*v = Validity(i)
			return nil
		}
	}
	return fmt.Errorf("decode validity %q: want valid, unknown or invalid", text)
}

// Class says which of a run's three verdicts a checker's answer belongs to.
type Class uint8

// The three verdicts of a run.
const (
	Property Class = iota // is the system safe and live?
	Coverage              // did the test exercise what it planned?
	Harness               // did the harness itself stay healthy?
)

var classNames = [...]string{Property: "property", Coverage: "coverage", Harness: "harness"}

// String returns the word used in files and reports.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// MarshalText writes the word.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the word.
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range classNames {
		if name == string(text) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("decode class %q: want property, coverage or harness", text)
}

// Verdict is a checker's answer with its evidence. Evidence holds indices of
// operations in the history. Story is the failure text: property, bucket,
// epochs, offsets or zxids, the two operations, who led, faults in force. Data
// is the checker's own result for the report, in a shape that it documents.
type Verdict struct {
	Checker  string   `json:"checker"`
	Class    Class    `json:"class"`
	Validity Validity `json:"validity"`
	// TimeBound marks an answer that a stall of the host excuses: convergence,
	// availability, storms, expiry.
	TimeBound bool            `json:"time_bound,omitempty"`
	Summary   string          `json:"summary"`
	Story     string          `json:"story,omitempty"`
	Subject   string          `json:"subject,omitempty"` // the bucket, key or znode concerned
	Reason    string          `json:"reason,omitempty"`  // of unknown: too-many-open, time, memory, vacuous, …
	At        time.Duration   `json:"at,omitempty"`      // the first bad moment
	Evidence  []int           `json:"evidence,omitempty"`
	Parts     []Verdict       `json:"parts,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// Checker judges one property of a history. An error means that the checker
// itself failed; Check wraps it into a harness verdict.
type Checker interface {
	Name() string
	Check(ctx context.Context, h history.History) (Verdict, error)
}
