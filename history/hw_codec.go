package history

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// High watermarks move with every write, so half of all events are theirs. What
// follows is encoding/json's form of HW (but for its escapes of HTML), written and
// read without reflection; a test holds that both are the same.

// appendHW writes the event as encoding/json does.
func appendHW(out []byte, e HW) []byte {
	out = append(out, `{"bucket":`...)
	out = appendString(out, e.Bucket)
	for _, field := range [...]struct {
		name  string
		value int64
	}{
		{`,"server":`, int64(e.Server)},
		{`,"incarnation":`, e.Incarnation},
		{`,"leader_epoch":`, int64(e.LeaderEpoch)},
		{`,"from":`, e.From},
		{`,"to":`, e.To},
	} {
		out = append(out, field.name...)
		out = strconv.AppendInt(out, field.value, 10)
	}
	out = append(out, `,"leading":`...)
	return append(strconv.AppendBool(out, e.Leading), '}')
}

// plainHW reads what appendHW wrote. It is false for any other form of the
// event, which encoding/json then reads.
func plainHW(value json.RawMessage, e *HW) bool {
	r := plainReader{rest: value}
	r.skip(`{"bucket":"`)
	end := bytes.IndexByte(r.rest, '"')
	if r.bad || end < 0 || bytes.ContainsFunc(r.rest[:end], func(c rune) bool { return c < ' ' || c == '\\' || c > '~' }) {
		return false
	}
	var got HW
	got.Bucket, r.rest = string(r.rest[:end]), r.rest[end+1:]
	got.Server = int(r.integer(`,"server":`))
	got.Incarnation = r.integer(`,"incarnation":`)
	got.LeaderEpoch = int(r.integer(`,"leader_epoch":`))
	got.From = r.integer(`,"from":`)
	got.To = r.integer(`,"to":`)
	r.skip(`,"leading":`)
	switch string(r.rest) {
	case "true}":
		got.Leading = true
	case "false}":
	default:
		return false
	}
	if r.bad {
		return false
	}
	*e = got
	return true
}

// plainReader reads JSON of a known form; bad is set by the first byte that is
// not as expected.
type plainReader struct {
	rest []byte
	bad  bool
}

func (r *plainReader) skip(text string) {
	if r.bad || !bytes.HasPrefix(r.rest, []byte(text)) {
		r.bad = true
		return
	}
	r.rest = r.rest[len(text):]
}

// integer reads a number that has one form only and is far from overflow.
func (r *plainReader) integer(name string) int64 {
	r.skip(name)
	negative := !r.bad && len(r.rest) > 0 && r.rest[0] == '-'
	if negative {
		r.rest = r.rest[1:]
	}
	n, digits := int64(0), 0
	for digits < len(r.rest) && r.rest[digits] >= '0' && r.rest[digits] <= '9' && n < math.MaxInt64/100 {
		n = n*10 + int64(r.rest[digits]-'0')
		digits++
	}
	if r.bad || digits == 0 || digits > 1 && r.rest[0] == '0' {
		r.bad = true
		return 0
	}
	r.rest = r.rest[digits:]
	if negative {
		return -n
	}
	return n
}
