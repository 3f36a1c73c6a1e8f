package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// MaxLine bounds a line of a history file, its line break included. Longer
// ones are refused when written and when read, so a reader's memory is bounded
// whatever the file holds.
const MaxLine = 4 << 20

// AppendJSON appends op to dst as one JSON object without a line break and
// returns the longer slice. On an error (unknown type, a value that is no JSON,
// a line beyond MaxLine) dst comes back as it was. The form is the one that
// encoding/json gives to Op, so that any reader can read it.
func AppendJSON(dst []byte, op Op) ([]byte, error) {
	if int(op.Type) >= len(typeNames) {
		return dst, fmt.Errorf("encode op %d: type %d is unknown", op.Index, uint8(op.Type))
	}
	start := len(dst)
	out := append(dst, `{"index":`...)
	out = strconv.AppendInt(out, int64(op.Index), 10)
	out = append(out, `,"time":`...)
	out = strconv.AppendInt(out, int64(op.Time), 10)
	out = append(out, `,"process":`...)
	out = strconv.AppendInt(out, int64(op.Process), 10)
	out = append(out, `,"type":"`...)
	out = append(out, typeNames[op.Type]...)
	out = append(out, `","f":`...)
	out = appendString(out, op.F)
	if len(op.Value) > 0 {
		out = append(out, `,"value":`...)
		var err error
		if out, err = appendValue(out, op.Value); err != nil {
			return dst, fmt.Errorf("encode op %d: %w", op.Index, err)
		}
	}
	if op.Node != "" {
		out = append(out, `,"node":`...)
		out = appendString(out, op.Node)
	}
	if op.Tries != 0 {
		out = append(out, `,"tries":`...)
		out = strconv.AppendInt(out, int64(op.Tries), 10)
	}
	if op.Error != "" {
		out = append(out, `,"error":`...)
		out = appendString(out, op.Error)
	}
	if op.Metadata != 0 {
		out = append(out, `,"metadata":`...)
		out = strconv.AppendInt(out, int64(op.Metadata), 10)
	}
	out = append(out, '}')
	if n := len(out) - start; n >= MaxLine {
		return dst, fmt.Errorf("encode op %d: %w: %d bytes, limit %d", op.Index, ErrTooLong, n, MaxLine)
	}
	return out, nil
}

func appendValue(dst []byte, value json.RawMessage) ([]byte, error) {
	ok, spaced := valid(value)
	if !ok {
		return dst, fmt.Errorf("value is no JSON: %.60q", value)
	}
	if !spaced {
		return append(dst, value...), nil
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, value); err != nil {
		return dst, fmt.Errorf("compact value: %w", err)
	}
	return append(dst, flat.Bytes()...), nil
}

// Write writes ops as JSON lines.
func Write(w io.Writer, ops []Op) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for _, op := range ops {
		var err error
		if line, err = AppendJSON(line[:0], op); err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}
