package history

import "unicode/utf8"

// maxDepth bounds the nesting of a value: deep enough for any event, and no
// hostile line can exhaust the stack of a later reader.
const maxDepth = 200

// scanner walks over one line of JSON without allocating. The values of a
// history are kept as they were written, so reading a line is mostly finding
// out where a value ends; encoding/json would cost some twenty times as much.
type scanner struct {
	b []byte
	i int
	// spaced is set when white space was skipped: such a value is compacted
	// before it is written, so that no line break can split a line.
	spaced bool
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
			s.spaced = true
		default:
			return
		}
	}
}

// eat skips white space and takes the byte c if it comes next.
func (s *scanner) eat(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
		s.i += len(w)
		return true
	}
	return false
}

// small reads an integer of at most 18 digits.
func (s *scanner) small(n *int64) bool {
	negative := s.i < len(s.b) && s.b[s.i] == '-'
	if negative {
		s.i++
	}
	from := s.i
	var v int64
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		v = v*10 + int64(s.b[s.i]-'0')
		s.i++
	}
	if digits := s.i - from; digits == 0 || digits > 18 || s.b[from] == '0' && digits > 1 {
		return false
	}
	if negative {
		v = -v
	}
	*n = v
	return true
}

// value skips one JSON value and reports whether it was one.
func (s *scanner) value(depth int) bool {
	s.space()
	if s.i >= len(s.b) || depth > maxDepth {
		return false
	}
	switch c := s.b[s.i]; c {
	case '"':
		_, ok := s.str()
		return ok
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) object(depth int) bool {
	s.i++
	if s.eat('}') {
		return true
	}
	for {
		s.space()
		if _, ok := s.str(); !ok || !s.eat(':') || !s.value(depth+1) {
			return false
		}
		if s.eat('}') {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}

func (s *scanner) array(depth int) bool {
	s.i++
	if s.eat(']') {
		return true
	}
	for {
		if !s.value(depth + 1) {
			return false
		}
		if s.eat(']') {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}

// str skips a string and returns it with its quotes; plain is implied by the
// absence of a backslash, which the caller looks for when it needs the text.
func (s *scanner) str() ([]byte, bool) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, false
	}
	from := s.i
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[from:s.i], true
		case c < 0x20:
			return nil, false
		case c == '\\':
			if !s.escape() {
				return nil, false
			}
		}
	}
	return nil, false
}

// escape stands on a backslash and leaves i on the escape's last byte.
func (s *scanner) escape() bool {
	s.i++
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.i++
			if s.i >= len(s.b) || !hex(s.b[s.i]) {
				return false
			}
		}
		return true
	}
	return false
}

func hex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) number() bool {
	if s.b[s.i] == '-' {
		s.i++
	}
	from := s.i
	if !s.digits() || s.b[from] == '0' && s.i > from+1 {
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

// valid reports whether b is exactly one JSON value, and whether it holds white
// space outside of strings.
func valid(b []byte) (ok, spaced bool) {
	s := scanner{b: b}
	ok = s.value(0)
	s.space()
	return ok && s.i == len(b), s.spaced
}

// appendString writes text as a JSON string; bytes that are no UTF-8 become
// U+FFFD, as in encoding/json.
func appendString(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r != utf8.RuneError || size != 1 {
				i += size
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			if c >= utf8.RuneSelf {
				dst = append(dst, "\ufffd"...)
			} else {
				dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
		}
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}
