package checker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// FileSchema numbers the shape of verdict.json. A reader refuses any other.
const FileSchema = 1

type file struct {
	Schema int `json:"schema"`
	Result
}

// WriteResult writes verdict.json: {"schema":1,"property":…,"coverage":…,
// "harness":…,"exit":n,"verdicts":[…]}, indented for people who read it.
func WriteResult(w io.Writer, r Result) error {
	if r.Verdicts == nil {
		r.Verdicts = []Verdict{}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(file{FileSchema, r}); err != nil {
		return fmt.Errorf("encode verdict: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}

// ReadResult reads verdict.json. It refuses another schema, unknown fields and
// anything after the object, so that a foreign file is not taken for a verdict.
func ReadResult(r io.Reader) (Result, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var f file
	if err := dec.Decode(&f); err != nil {
		return Result{}, fmt.Errorf("read verdict: %w", err)
	}
	if f.Schema != FileSchema {
		return Result{}, fmt.Errorf("read verdict: schema %d, this version reads %d", f.Schema, FileSchema)
	}
	if dec.More() {
		return Result{}, fmt.Errorf("read verdict: something follows the object")
	}
	return f.Result, nil
}
