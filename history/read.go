package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Report says what Read met besides the history.
type Report struct {
	Lines int // lines that were read into the history
	// Torn tells that the last line had no end: the writer was killed in the
	// middle of it. It was dropped; TornBytes is its length, and the history is
	// a prefix of what happened.
	Torn      bool
	TornBytes int
}

// Read reads a history of JSON lines and checks it as New does. The last line,
// if it has no line break and is not a whole object, is dropped and reported
// (section 5 of the protocol, "Exit"); any other bad line is a *LineError.
// Memory is bounded by the history itself and MaxLine.
func Read(r io.Reader) (History, Report, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	d := &decoder{words: map[string]string{}}
	var ops []Op
	var report Report
	var long []byte
	size, read := sizeOf(r), int64(0)
	for {
		if len(ops) == guessAfter && size > 0 { // the lines seen so far tell how many are to come
			ops = slices.Grow(ops, int(size/(read/guessAfter+1))+1)
		}
		line, ended, err := readLine(in, &long)
		if err != nil {
			if errors.Is(err, ErrTooLong) {
				err = lineErrorf(len(ops)+1, ErrTooLong, "more than %d bytes", MaxLine)
			}
			return History{}, report, err
		}
		if !ended && len(line) == 0 {
			break
		}
		d.line = len(ops) + 1
		read += int64(len(line)) + 1
		op, err := d.decode(bytes.TrimSuffix(line, []byte("\r")))
		if err != nil {
			if ended {
				return History{}, report, err
			}
			report.Torn, report.TornBytes = true, len(line)
			break
		}
		ops = append(ops, op)
		if !ended {
			break
		}
	}
	report.Lines = len(ops)
	h, err := New(ops)
	return h, report, err
}

// guessAfter is how many lines are read before their number is guessed.
const guessAfter = 1000

// sizeOf is how many bytes a source holds, 0 if it cannot tell.
func sizeOf(r io.Reader) int64 {
	switch r := r.(type) {
	case interface{ Len() int }:
		return int64(r.Len())
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
}

// readLine gives the next line without its break; ended is false for the last
// one if the file does not end in a line break. The slice is valid until the
// next call.
func readLine(in *bufio.Reader, long *[]byte) (line []byte, ended bool, err error) {
	part, err := in.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], true, nil
	}
	*long = (*long)[:0]
	for {
		*long = append(*long, part...)
		if len(*long) > MaxLine {
			return nil, false, ErrTooLong
		}
		switch {
		case err == nil:
			return (*long)[:len(*long)-1], true, nil
		case errors.Is(err, io.EOF):
			return *long, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, fmt.Errorf("read history: %w", err)
		}
		part, err = in.ReadSlice('\n')
	}
}
