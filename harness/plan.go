package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/history"
)

// The files that stand in a run's directory before the first operation.
const (
	PlanFile     = "test.json"
	ScheduleFile = "schedule.json"
)

// PlanSchema numbers the shape of test.json and schedule.json; a change that an
// old reader would misread raises it.
const PlanSchema = 1

// Plan is the fully resolved plan of a run, as test.json holds it: what a
// reader needs to judge the history, and what a person needs to repeat it.
type Plan struct {
	Schema int    `json:"schema"`
	Events int    `json:"events"` // history.SchemaVersion
	Name   string `json:"name"`
	// World is sim, local or fluss; ZooKeeper says in words which one it is.
	World     string   `json:"world"`
	ZooKeeper string   `json:"zookeeper,omitempty"`
	Workload  string   `json:"workload"`
	Faults    []string `json:"faults"`
	Preset    string   `json:"preset,omitempty"`
	Bugs      []string `json:"bugs,omitempty"`
	Options   Options  `json:"options"`
	// Planned is what coverage asks for.
	Planned []checker.PlannedFault `json:"planned"`
	// Checkers holds the parameters of each checker, by its name.
	Checkers map[string]json.RawMessage `json:"checkers,omitempty"`
	// Versions of what took part: fencepost, go, zookeeper, fluss.
	Versions map[string]string `json:"versions,omitempty"`
	// Command repeats the run. Started is its date, RFC 3339.
	Command string `json:"command,omitempty"`
	Started string `json:"started,omitempty"`
}

// scheduleDoc is the shape of schedule.json.
type scheduleDoc struct {
	Schema  int     `json:"schema"`
	Entries []Entry `json:"entries"`
}

// WritePlan writes test.json into dir, in one step.
func WritePlan(dir string, p Plan) error {
	p.Schema, p.Events = PlanSchema, history.SchemaVersion
	return writeJSON(filepath.Join(dir, PlanFile), p)
}

// LoadPlan reads the plan of a run's directory, or the file itself. It refuses
// unknown fields, other schemas and options that no run can have.
func LoadPlan(path string) (Plan, error) {
	var p Plan
	file := inDir(path, PlanFile)
	if err := readJSON(file, &p); err != nil {
		return Plan{}, fmt.Errorf("load plan: %w", err)
	}
	if p.Schema != PlanSchema {
		return Plan{}, fmt.Errorf("load plan %s: schema %d, this program reads %d", file, p.Schema, PlanSchema)
	}
	if p.Events != history.SchemaVersion {
		return Plan{}, fmt.Errorf("load plan %s: events of schema %d, this program reads %d", file, p.Events, history.SchemaVersion)
	}
	if err := p.Options.Validate(); err != nil {
		return Plan{}, fmt.Errorf("load plan %s: %w", file, err)
	}
	return p, nil
}

// WriteSchedule writes schedule.json into dir, in one step.
func WriteSchedule(dir string, entries []Entry) error {
	if entries == nil {
		entries = []Entry{}
	}
	return writeJSON(filepath.Join(dir, ScheduleFile), scheduleDoc{PlanSchema, entries})
}

// LoadSchedule reads the schedule of a run's directory, or a file that somebody
// wrote by hand, and checks it against the faults that exist.
func LoadSchedule(path string, faults []Fault) ([]Entry, error) {
	var doc scheduleDoc
	file := inDir(path, ScheduleFile)
	if err := readJSON(file, &doc); err != nil {
		return nil, fmt.Errorf("load schedule: %w", err)
	}
	if doc.Schema != PlanSchema {
		return nil, fmt.Errorf("load schedule %s: schema %d, this program reads %d", file, doc.Schema, PlanSchema)
	}
	if err := ValidateSchedule(doc.Entries, faults); err != nil {
		return nil, fmt.Errorf("load schedule %s: %w", file, err)
	}
	return doc.Entries, nil
}

// inDir gives the file itself, or the named file if path is a directory.
func inDir(path, name string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, name)
	}
	return path
}

// writeJSON writes by way of a second file and a rename, so that a reader
// never sees half of it.
func writeJSON(path string, v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path+".part", out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// readJSON reads one JSON value and nothing after it; unknown fields are
// refused because a misspelt one would be ignored in silence.
func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if dec.More() {
		return fmt.Errorf("%s: something follows the first value", path)
	}
	return nil
}
