package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// words is a duration that reads and writes as text, because schedules are
// edited by hand.
type words time.Duration

func (w words) MarshalText() ([]byte, error) { return []byte(time.Duration(w).String()), nil }

func (w *words) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: want a number with a unit, as in 1.5s or 200ms", text)
	}
	*w = words(d)
	return nil
}

type entryJSON struct {
	ID      int             `json:"id"`
	Fault   string          `json:"fault"`
	Trigger Trigger         `json:"trigger"`
	Target  Target          `json:"target"`
	Params  json.RawMessage `json:"params,omitempty"`
	Lease   words           `json:"lease"`
}

type triggerJSON struct {
	At         words             `json:"at,omitempty"`
	Ops        int               `json:"ops,omitempty"`
	Event      string            `json:"event,omitempty"`
	Where      map[string]string `json:"where,omitempty"`
	Skip       int               `json:"skip,omitempty"`
	Gate       *Gate             `json:"gate,omitempty"`
	Wait       words             `json:"wait,omitempty"`
	AfterFault *int              `json:"after_fault,omitempty"`
}

// MarshalJSON writes durations as words.
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal(entryJSON{e.ID, e.Fault, e.Trigger, e.Target, e.Params, words(e.Lease)})
}

// UnmarshalJSON refuses unknown fields.
func (e *Entry) UnmarshalJSON(b []byte) error {
	var in entryJSON
	if err := strict(b, &in); err != nil {
		return err
	}
	*e = Entry{
		ID: in.ID, Fault: in.Fault, Trigger: in.Trigger, Target: in.Target, Params: in.Params, Lease: time.Duration(in.Lease),
	}
	return nil
}

// MarshalJSON writes durations as words.
func (t Trigger) MarshalJSON() ([]byte, error) {
	return json.Marshal(triggerJSON{words(t.At), t.Ops, t.Event, t.Where, t.Skip, t.Gate, words(t.Wait), t.AfterFault})
}

// UnmarshalJSON refuses unknown fields.
func (t *Trigger) UnmarshalJSON(b []byte) error {
	var in triggerJSON
	if err := strict(b, &in); err != nil {
		return err
	}
	*t = Trigger{time.Duration(in.At), in.Ops, in.Event, in.Where, in.Skip, in.Gate, time.Duration(in.Wait), in.AfterFault}
	return nil
}

func strict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

func sortEntries(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		switch {
		case a.Trigger.At != b.Trigger.At:
			return int(max(-1, min(1, a.Trigger.At-b.Trigger.At)))
		default:
			return a.ID - b.ID
		}
	})
}
