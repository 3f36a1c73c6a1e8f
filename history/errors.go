package history

import (
	"errors"
	"fmt"
)

// The ways in which a history can be wrong; a LineError wraps one of them.
var (
	// ErrSyntax: a line is not the JSON object of an Op.
	ErrSyntax = errors.New("malformed line")
	// ErrTooLong: a line is longer than MaxLine.
	ErrTooLong = errors.New("line too long")
	// ErrIllFormed: the line reads well, but cannot stand where it stands.
	ErrIllFormed = errors.New("ill-formed history")
	// ErrEvent: an observer's line does not hold the event that its F names.
	ErrEvent = errors.New("malformed event")
	// ErrContract: a checker's input contract is broken by the line.
	ErrContract = errors.New("input contract broken")
)

// LineError says which line of a history is wrong, and how. Line counts from 1,
// as editors do, so the Op of Line n has Index n-1.
type LineError struct {
	Line   int
	Kind   error // one of the sentinel errors of this package
	Detail string
}

// Error names the line first: it is what the reader will go to.
func (e *LineError) Error() string {
	return fmt.Sprintf("line %d: %v: %s", e.Line, e.Kind, e.Detail)
}

// Unwrap gives the kind, for errors.Is.
func (e *LineError) Unwrap() error { return e.Kind }

func lineErrorf(line int, kind error, format string, args ...any) *LineError {
	return &LineError{Line: line, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Contract makes the error of a checker that needs something which op breaks.
func Contract(op Op, format string, args ...any) error {
	return lineErrorf(op.Index+1, ErrContract, format, args...)
}
