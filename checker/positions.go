package checker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fencepost-dev/fencepost/history"
)

// scanValue is the value of a fetch: From is the offset asked for, Next the one
// to ask for next, HW the high watermark that came with it, Count the records.
type scanValue struct {
	Table  string `json:"table"`
	Bucket *int   `json:"bucket"`
	From   int64  `json:"from"`
	Next   int64  `json:"next"`
	HW     int64  `json:"hw"`
	Count  int64  `json:"count"`
}

// PositionsData is the Data of the positions checker.
type PositionsData struct {
	Scanners []ScannerRow `json:"scanners"` // by (table, bucket), in order of appearance
	Fetches  int          `json:"fetches"`
	Records  int64        `json:"records"`
	// Behind counts fetches that showed a high watermark below the position asked
	// for: the server that answered was behind one that had answered before.
	Behind int `json:"behind"`
}

// ScannerRow is one bucket's tail scanner.
type ScannerRow struct {
	Table    string `json:"table"`
	Bucket   int    `json:"bucket"`
	Fetches  int    `json:"fetches"`
	Records  int64  `json:"records"`
	Position int64  `json:"position"` // the last
	HW       int64  `json:"hw"`       // the highest seen
}

type positions struct{}

// NewPositions checks the tail scanners (operations "fetch"): a position only
// moves forward, within a fetch and from one to the next; the answer starts where
// it was asked to; it holds no more records than offsets, and none beyond the
// high watermark that came with it. Without a completed fetch the answer is
// Unknown. Contract: values are {"table","bucket","from","next","hw","count"}.
// Data: PositionsData.
func NewPositions() Checker { return positions{} }

func (positions) Name() string { return "positions" }

type scannerKey struct {
	table  string
	bucket int
}

// scanner is what is known of a bucket's scanner so far.
type scanner struct {
	row  ScannerRow
	line int // of the completion that its position comes from
}

func (c positions) Check(_ context.Context, h history.History) (Verdict, error) {
	t, err := newTimeline(h)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Checker: c.Name()}
	data := PositionsData{Scanners: []ScannerRow{}}
	scanners := map[scannerKey]*scanner{}
	var order []*scanner
	for invoke, complete := range h.Pairs() {
		if !invoke.Client() || invoke.F != "fetch" || complete.Type != history.Ok {
			continue
		}
		asked, err := scanOf(invoke)
		if err != nil {
			return Verdict{}, err
		}
		got, err := scanOf(complete)
		if err != nil {
			return Verdict{}, err
		}
		if got.Table != asked.Table || *got.Bucket != *asked.Bucket {
			return Verdict{}, history.Contract(complete, "answers a fetch of another bucket")
		}
		key := scannerKey{asked.Table, *asked.Bucket}
		s := scanners[key]
		if s == nil {
			s = &scanner{row: ScannerRow{Table: key.table, Bucket: key.bucket}, line: -1}
			scanners[key] = s
			order = append(order, s)
		}
		if what := s.take(asked, got, invoke); what != "" {
			v.Parts = append(v.Parts, c.part(t, key, what, s.line, invoke, complete))
		}
		s.move(got, complete)
		data.Fetches++
		data.Records += got.Count
		if got.HW < asked.From {
			data.Behind++
		}
	}
	for _, s := range order {
		data.Scanners = append(data.Scanners, s.row)
	}
	v.Parts = v.Parts[:min(len(v.Parts), maxFencingParts)]
	switch {
	case data.Fetches == 0:
		v.Validity, v.Reason, v.Summary = Unknown, ReasonVacuous, "no completed fetch"
	case len(v.Parts) > 0:
		first := v.Parts[0]
		v.Validity, v.At, v.Story, v.Subject, v.Evidence, v.Summary = Invalid, first.At, first.Story, first.Subject, first.Evidence, first.Summary
	default:
		v.Summary = fmt.Sprintf("%s of %s, %s, every position moved forward",
			plural(data.Fetches, "fetch"), plural(len(order), "scanner"), plural(int(data.Records), "record"))
	}
	return withData(v, data)
}

func scanOf(op history.Op) (scanValue, error) {
	var s scanValue
	if err := json.Unmarshal(op.Value, &s); err != nil || s.Bucket == nil {
		return s, history.Contract(op, "value %.60q is no fetch: want table, bucket, from, next, hw, count", op.Value)
	}
	return s, nil
}

// take judges one fetch; the empty string is good.
func (s *scanner) take(asked, got scanValue, invoke history.Op) string {
	switch {
	case got.From != asked.From:
		return fmt.Sprintf("asked from offset %d, answered from %d", asked.From, got.From)
	case s.line >= 0 && s.line < invoke.Index && asked.From < s.row.Position:
		return fmt.Sprintf("asked from offset %d after position %d had been reached", asked.From, s.row.Position)
	case got.Next < asked.From:
		return fmt.Sprintf("the position moved backward from %d to %d", asked.From, got.Next)
	case got.Count < 0 || got.Next-asked.From < got.Count:
		return fmt.Sprintf("%d records came for the offsets %d to %d", got.Count, asked.From, got.Next-1)
	case got.Count > 0 && got.Next > got.HW:
		return fmt.Sprintf("records up to offset %d came, beyond the high watermark %d that came with them", got.Next-1, got.HW)
	}
	return ""
}

func (s *scanner) move(got scanValue, complete history.Op) {
	s.row.Fetches++
	s.row.Records += got.Count
	s.row.HW = max(s.row.HW, got.HW)
	if got.Next >= s.row.Position {
		s.row.Position, s.line = got.Next, complete.Index
	}
}

func (c positions) part(t *timeline, key scannerKey, what string, before int, invoke, complete history.Op) Verdict {
	subject := fmt.Sprintf("%s bucket %d", key.table, key.bucket)
	v := Verdict{
		Checker: c.Name(), Validity: Invalid, Subject: subject, At: complete.Time, Evidence: lines(before, invoke.Index, complete.Index),
		Summary: fmt.Sprintf("%s: %s at %s", subject, what, seconds(complete.Time)),
	}
	v.Story = fmt.Sprintf("The scanner of %s, process %d (lines %d and %d, answered by %s): %s. %s.", subject, invoke.Process,
		invoke.Index+1, complete.Index+1, complete.Node, what, upper(t.inForce(invoke.Time, complete.Time)))
	return v
}
