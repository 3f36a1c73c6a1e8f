// Package history is the vocabulary of a test: operations, the processes that
// issue them, and the events that nodes report of themselves. It imports
// nothing of this module, so that a stored history can be read and judged by
// anybody, years later.
package history

import (
	"encoding/json"
	"fmt"
	"time"
)

// Process numbers whoever issues an operation. Clients are 0 and above; a
// client whose operation ended in Info never uses its number again.
type Process int

// The two processes that are not clients.
const (
	Nemesis  Process = -1 // the fault injector
	Observer Process = -2 // what the nodes report of themselves, see Event
)

// Type tells what an Op records: the start of an operation or how it ended.
type Type uint8

// The four types, in Jepsen's sense. Fail means "did not happen and never
// will"; Info means "may have happened, or may still happen".
const (
	Invoke Type = iota
	Ok
	Fail
	Info
)

var typeNames = [...]string{Invoke: "invoke", Ok: "ok", Fail: "fail", Info: "info"}

// String returns the lower-case name used in files.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// MarshalText writes the name of a known type.
func (t Type) MarshalText() ([]byte, error) {
	if int(t) >= len(typeNames) {
		return nil, fmt.Errorf("encode type %d: unknown", uint8(t))
	}
	return []byte(typeNames[t]), nil
}

// UnmarshalText reads the name of a type and refuses any other word.
func (t *Type) UnmarshalText(text []byte) error {
	for i, name := range typeNames {
		if name == string(text) {
			*t = Type(i)
			return nil
		}
	}
	return fmt.Errorf("decode type %q: want invoke, ok, fail or info", text)
}

// Op is one line of a history: an invocation, a completion, or an event of an
// observer. Time counts from the start of the run on the harness's monotonic
// clock; Index is the line's position, from 0, without gaps.
type Op struct {
	Index   int             `json:"index"`
	Time    time.Duration   `json:"time"` // nanoseconds
	Process Process         `json:"process"`
	Type    Type            `json:"type"`
	F       string          `json:"f"`               // the function: read, write, kill, … or an event's kind
	Value   json.RawMessage `json:"value,omitempty"` // the stored form is the only form
	Node    string          `json:"node,omitempty"`  // the node that answered, or that an event is about
	Tries   int             `json:"tries,omitempty"` // attempts made for this completion, metadata requests included
	Error   string          `json:"error,omitempty"`

	// Metadata counts those of Tries that asked for metadata.
	Metadata int `json:"metadata,omitempty"`
}

// Client reports whether the operation belongs to a client.
func (o Op) Client() bool { return o.Process >= 0 }

// KeyValue is the value of operations on one key of a table: what a write
// stores, what a read returned. A nil Value is an absent key. A workload that
// partitions its histories by key uses this shape.
type KeyValue struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}
