package history

import (
	"bytes"
	"encoding/json"
	"math"
	"time"
)

// decoder reads lines into Ops. Values are copied into chunks and the few
// words that recur (functions, nodes) are shared, because a million lines would
// otherwise be four million allocations.
type decoder struct {
	chunk []byte
	words map[string]string
	line  int
}

// The fields of an Op, as bits: a line may have each of them once.
const (
	fieldIndex = 1 << iota
	fieldTime
	fieldProcess
	fieldType
	fieldF
	fieldValue
	fieldNode
	fieldTries
	fieldError
	fieldMetadata
	fieldsRequired = fieldIndex | fieldTime | fieldProcess | fieldType | fieldF
)

func (d *decoder) fail(format string, args ...any) error {
	return lineErrorf(d.line, ErrSyntax, format, args...)
}

// quick reads a line in the very form that AppendJSON writes. Not ok means that
// decode must decide, not that the line is bad.
func (d *decoder) quick(line []byte, op *Op) bool {
	s := scanner{b: line}
	var n int64
	if !s.word(`{"index":`) || !s.small(&n) {
		return false
	}
	if op.Index = int(n); n > math.MaxInt32 || n < 0 {
		return false
	}
	if !s.word(`,"time":`) || !s.small(&n) {
		return false
	}
	op.Time = time.Duration(n)
	if !s.word(`,"process":`) || !s.small(&n) || n > math.MaxInt32 || n < math.MinInt32 {
		return false
	}
	op.Process = Process(n)
	if !s.word(`,"type":"`) || !d.quickType(&s, op) || !s.word(`","f":`) || !d.quickText(&s, &op.F) {
		return false
	}
	if s.word(`,"value":`) {
		from := s.i
		if !s.value(0) {
			return false
		}
		op.Value = d.keep(s.b[from:s.i])
	}
	if s.word(`,"node":`) && !d.quickText(&s, &op.Node) {
		return false
	}
	if s.word(`,"tries":`) {
		if !s.small(&n) || n > math.MaxInt32 || n < 0 {
			return false
		}
		op.Tries = int(n)
	}
	return s.word(`}`) && s.i == len(line)
}

func (d *decoder) quickType(s *scanner, op *Op) bool {
	for i, name := range typeNames {
		if s.word(name) {
			op.Type = Type(i)
			return true
		}
	}
	return false
}

// quickText reads a plain string that was met before.
func (d *decoder) quickText(s *scanner, text *string) bool {
	quoted, ok := s.str()
	if !ok {
		return false
	}
	*text, ok = d.words[string(quoted[1:len(quoted)-1])]
	return ok
}

// decode reads one line.
func (d *decoder) decode(line []byte) (Op, error) {
	var op Op
	if d.quick(line, &op) {
		return op, nil
	}
	return d.strict(line)
}

// strict reads a line in any form: an unknown or repeated field, a number that is
// no integer, or anything after the object is an error.
func (d *decoder) strict(line []byte) (Op, error) {
	var op Op
	s := scanner{b: line}
	seen := 0
	if !s.eat('{') {
		return op, d.fail("not a JSON object: %.60q", line)
	}
	for first := true; ; first = false {
		if s.eat('}') {
			break
		}
		if !first && !s.eat(',') {
			return op, d.fail("',' or '}' expected at column %d", s.i+1)
		}
		s.space()
		key, ok := s.str()
		if !ok || !s.eat(':') {
			return op, d.fail("field name expected at column %d", s.i+1)
		}
		s.space()
		field, err := d.field(&s, &op, key[1:len(key)-1])
		if err != nil {
			return op, err
		}
		if seen&field != 0 {
			return op, d.fail("field %s stands twice", key)
		}
		seen |= field
	}
	s.space()
	if s.i != len(line) {
		return op, d.fail("something follows the object at column %d", s.i+1)
	}
	if missing := fieldsRequired &^ seen; missing != 0 {
		return op, d.fail("no field %q", fieldName(missing))
	}
	return op, nil
}

func fieldName(fields int) string {
	names := [...]string{"index", "time", "process", "type", "f"}
	for i, name := range names {
		if fields&(1<<i) != 0 {
			return name
		}
	}
	return "?"
}

func (d *decoder) field(s *scanner, op *Op, key []byte) (int, error) {
	var err error
	switch string(key) {
	case "index":
		op.Index, err = d.smallInt(s, "index")
		return fieldIndex, err
	case "time":
		var n int64
		n, err = d.integer(s, "time")
		op.Time = time.Duration(n)
		return fieldTime, err
	case "process":
		var n int
		n, err = d.smallInt(s, "process")
		op.Process = Process(n)
		return fieldProcess, err
	case "type":
		err = d.typ(s, op)
		return fieldType, err
	case "f":
		op.F, err = d.text(s, "f", true)
		return fieldF, err
	case "value":
		op.Value, err = d.value(s)
		return fieldValue, err
	case "node":
		op.Node, err = d.text(s, "node", true)
		return fieldNode, err
	case "tries":
		op.Tries, err = d.smallInt(s, "tries")
		return fieldTries, err
	case "metadata":
		op.Metadata, err = d.smallInt(s, "metadata")
		return fieldMetadata, err
	case "error":
		op.Error, err = d.text(s, "error", false)
		return fieldError, err
	}
	return 0, d.fail("unknown field %.40q", key)
}

// integer reads a JSON integer that fits 64 bits. NaN, fractions and exponents
// are refused: no field of an Op can mean them.
func (d *decoder) integer(s *scanner, name string) (int64, error) {
	from := s.i
	negative := s.i < len(s.b) && s.b[s.i] == '-'
	if negative {
		s.i++
	}
	start := s.i
	var n int64
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		digit := int64(s.b[s.i] - '0')
		if n > (math.MaxInt64-digit)/10 {
			return 0, d.fail("%s is out of range", name)
		}
		n = n*10 + digit
		s.i++
	}
	end := s.i < len(s.b) && (s.b[s.i] == ',' || s.b[s.i] == '}' || s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\r')
	if s.i == start || s.b[start] == '0' && s.i > start+1 || !end {
		return 0, d.fail("%s is no integer: %.30q", name, s.b[from:])
	}
	if negative {
		n = -n
	}
	return n, nil
}

// smallInt reads an integer that fits 32 bits, as indices, processes and counts do.
func (d *decoder) smallInt(s *scanner, name string) (int, error) {
	n, err := d.integer(s, name)
	if err == nil && (n > math.MaxInt32 || n < math.MinInt32) {
		err = d.fail("%s is out of range", name)
	}
	return int(n), err
}

func (d *decoder) typ(s *scanner, op *Op) error {
	quoted, ok := s.str()
	if !ok {
		return d.fail("type is no string")
	}
	name := quoted[1 : len(quoted)-1]
	for i, known := range typeNames {
		if string(name) == known {
			op.Type = Type(i)
			return nil
		}
	}
	return d.fail("type %.30q is unknown: want invoke, ok, fail or info", name)
}

func (d *decoder) text(s *scanner, name string, shared bool) (string, error) {
	quoted, ok := s.str()
	if !ok {
		return "", d.fail("%s is no string", name)
	}
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var text string
		if err := json.Unmarshal(quoted, &text); err != nil {
			return "", d.fail("%s: %v", name, err)
		}
		return text, nil
	}
	plain := quoted[1 : len(quoted)-1]
	if !shared {
		return string(plain), nil
	}
	if word, ok := d.words[string(plain)]; ok {
		return word, nil
	}
	word := string(plain)
	if len(d.words) < 1<<16 { // a hostile file must not fill the table
		d.words[word] = word
	}
	return word, nil
}

func (d *decoder) value(s *scanner) (json.RawMessage, error) {
	from := s.i
	if !s.value(0) {
		return nil, d.fail("value is no JSON at column %d", s.i+1)
	}
	return d.keep(s.b[from:s.i]), nil
}

// keep copies a value out of the line.
func (d *decoder) keep(raw []byte) json.RawMessage {
	const chunk = 1 << 16
	if len(raw) > chunk/8 {
		return bytes.Clone(raw)
	}
	if cap(d.chunk)-len(d.chunk) < len(raw) {
		d.chunk = make([]byte, 0, chunk)
	}
	start := len(d.chunk)
	d.chunk = append(d.chunk, raw...)
	return d.chunk[start:len(d.chunk):len(d.chunk)]
}
