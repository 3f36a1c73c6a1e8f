package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// DefaultMaxBuffer is ZooKeeper's default of jute.maxbuffer, in bytes: the
// longest frame, string or buffer that a reader accepts.
const DefaultMaxBuffer = 0xfffff

// ErrTorn says that a record ends in the middle of a field.
var ErrTorn = errors.New("record ends early")

// LengthError says that a field announces a length that no honest writer would:
// negative (other than -1) or above the limit.
type LengthError struct{ Len int }

// Error gives the text of the real server.
func (e LengthError) Error() string { return fmt.Sprintf("Unreasonable length = %d", e.Len) }

// Record is a message of the protocol, or a part of one.
type Record interface {
	Encode(e *Encoder)
	// Decode reads the fields from d; errors stay in d.
	Decode(d *Decoder)
}

// Marshal returns the record's bytes.
func Marshal(r Record) []byte {
	var e Encoder
	r.Encode(&e)
	return e.Bytes()
}

// Unmarshal fills r from b, which may be longer than the record. Strings and
// buffers are copied: r shares nothing with b.
func Unmarshal(b []byte, r Record) error {
	d := NewDecoder(b)
	r.Decode(d)
	return d.Err()
}

// Encoder appends fields to a byte slice. The zero value is empty and usable.
type Encoder struct{ buf []byte }

// NewEncoder appends to buf.
func NewEncoder(buf []byte) *Encoder { return &Encoder{buf: buf} }

// Bytes are what has been written; they belong to the caller until the Encoder
// is used again.
func (e *Encoder) Bytes() []byte { return e.buf }

// Reset empties the encoder and keeps its memory.
func (e *Encoder) Reset() { e.buf = e.buf[:0] }

// Len is the number of bytes written.
func (e *Encoder) Len() int { return len(e.buf) }

// Int32 writes an int.
func (e *Encoder) Int32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }

// Int64 writes a long.
func (e *Encoder) Int64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

// Bool writes a boolean as one byte.
func (e *Encoder) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

// Buffer writes bytes with their length; nil is written as length -1.
func (e *Encoder) Buffer(b []byte) {
	if b == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(b)))
	e.buf = append(e.buf, b...)
}

// Raw writes bytes as they are.
func (e *Encoder) Raw(b []byte) { e.buf = append(e.buf, b...) }

// String writes a string with its length; it is never null.
func (e *Encoder) String(s string) {
	e.Int32(int32(len(s)))
	e.buf = append(e.buf, s...)
}

// Strings writes a list of strings; nil is written as an empty list, as the
// real server does.
func (e *Encoder) Strings(list []string) {
	e.Int32(int32(len(list)))
	for _, s := range list {
		e.String(s)
	}
}

// Decoder reads fields from a byte slice. The first error sticks; after it all
// reads give zero values.
type Decoder struct {
	buf []byte
	off int
	max int
	err error
}

// NewDecoder reads from b with the default limit of lengths.
func NewDecoder(b []byte) *Decoder { return &Decoder{buf: b, max: 2 * DefaultMaxBuffer} }

// NewDecoderLimit reads from b; strings and buffers longer than limit are
// refused with a LengthError. The real server's limit is jute.maxbuffer plus
// an extra of the same size.
func NewDecoderLimit(b []byte, limit int) *Decoder { return &Decoder{buf: b, max: limit} }

// Err is the first error, or nil.
func (d *Decoder) Err() error { return d.err }

// Rest is what has not been read.
func (d *Decoder) Rest() []byte { return d.buf[d.off:] }

// Left is the number of bytes not yet read.
func (d *Decoder) Left() int { return len(d.buf) - d.off }

// Fail records an error, unless there is one already.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *Decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if len(d.buf)-d.off < n {
		d.err = ErrTorn
		return nil
	}
	b := d.buf[d.off : d.off+n]
	d.off += n
	return b
}

// Int32 reads an int.
func (d *Decoder) Int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads a long.
func (d *Decoder) Int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads a boolean; any byte but zero is true.
func (d *Decoder) Bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// length reads the length of a string or buffer. Null is reported apart.
func (d *Decoder) length() (n int, null bool) {
	n = int(d.Int32())
	if d.err != nil {
		return 0, true
	}
	if n == -1 {
		return 0, true
	}
	if n < 0 || n > d.max {
		d.err = LengthError{Len: n}
		return 0, true
	}
	return n, false
}

// Buffer reads bytes; null gives nil, an empty buffer a non-nil slice. The
// result is a copy.
func (d *Decoder) Buffer() []byte {
	n, null := d.length()
	if null {
		return nil
	}
	b := d.take(n)
	if d.err != nil {
		return nil
	}
	return append(make([]byte, 0, n), b...)
}

// String reads a string; null gives "". The result is a copy.
func (d *Decoder) String() string {
	n, null := d.length()
	if null {
		return ""
	}
	return string(d.take(n))
}

// Count reads the length of a list whose elements take at least size bytes
// each, so that a forged length cannot reserve memory that the frame does not
// back. Null gives -1.
func (d *Decoder) Count(size int) int {
	n := int(d.Int32())
	if d.err != nil || n < 0 {
		return -1
	}
	if n > d.Left()/size {
		d.err = ErrTorn
		return -1
	}
	return n
}

// Strings reads a list of strings; null gives nil.
func (d *Decoder) Strings() []string {
	n := d.Count(4)
	if n < 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.String())
	}
	if d.err != nil {
		return nil
	}
	return list
}
