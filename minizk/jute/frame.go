package jute

import (
	"encoding/binary"
	"fmt"
	"io"
)

// FrameError says that a frame's announced length is negative or above the
// limit. The real server closes the connection without an answer.
type FrameError struct{ Len, Max int }

// Error follows the real server's log line.
func (e FrameError) Error() string {
	return fmt.Sprintf("Len error. A message with advertised length of %d is either a malformed message "+
		"or too large to process (length is greater than jute.maxbuffer=%d)", e.Len, e.Max)
}

// FrameLen checks the four bytes before a frame and gives its length in bytes.
// Limit is jute.maxbuffer: a frame of exactly that length passes.
func FrameLen(head [4]byte, limit int) (int, error) {
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > limit {
		return 0, FrameError{Len: n, Max: limit}
	}
	return n, nil
}

// ReadFrame reads one frame from r and returns its body, in buf if it fits
// there. io.EOF means a clean end between frames; a stream that ends inside a
// frame gives io.ErrUnexpectedEOF.
func ReadFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err //nolint:wrapcheck // io.EOF must stay bare
	}
	n, err := FrameLen(head, limit)
	if err != nil {
		return nil, err
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read frame of %d bytes: %w", n, err)
	}
	return buf, nil
}

// AppendFrame appends a frame that carries the records one after the other.
// Nil records are left out.
func AppendFrame(buf []byte, records ...Record) []byte {
	e := NewEncoder(append(buf, 0, 0, 0, 0))
	for _, r := range records {
		if r != nil {
			r.Encode(e)
		}
	}
	out := e.Bytes()
	binary.BigEndian.PutUint32(out[len(buf):], uint32(len(out)-len(buf)-4))
	return out
}
