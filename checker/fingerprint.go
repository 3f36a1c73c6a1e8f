package checker

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode"
)

// Fingerprint names a kind of finding: two runs that fail for the same reason
// share one, whatever their seeds. It is the checker and the shape of its
// sentence, without times, names and numbers.
type Fingerprint struct {
	Checker string `json:"checker"`
	Shape   string `json:"shape"`
}

// String is the fingerprint in words: "fencing: # wrote # at zxid #".
func (f Fingerprint) String() string { return f.Checker + ": " + f.Shape }

// ID is the fingerprint in eight hexadecimal digits, for lines and file names.
func (f Fingerprint) ID() string {
	h := fnv.New32a()
	h.Write([]byte(f.String())) // a hash takes every byte
	return fmt.Sprintf("%08x", h.Sum32())
}

// Fingerprints are the distinct kinds of findings of a judged run, the gravest
// first: broken properties that no slow machine excuses, then those bound to
// time, then failures of the harness itself. Coverage is no finding. Each
// checker contributes its invalid parts, or itself where it has none.
func Fingerprints(r Result) []Fingerprint {
	var out []Fingerprint
	seen := map[Fingerprint]bool{}
	for _, wanted := range []func(Verdict) bool{
		func(v Verdict) bool { return v.Class == Property && !v.TimeBound },
		func(v Verdict) bool { return v.Class == Property && v.TimeBound },
		func(v Verdict) bool { return v.Class == Harness },
	} {
		for _, top := range r.Verdicts {
			for _, v := range invalidLeaves(top, nil) {
				f := fingerprint(top.Checker, v)
				if wanted(v) && !seen[f] {
					seen[f] = true
					out = append(out, f)
				}
			}
		}
	}
	return out
}

// invalidLeaves are the most exact invalid verdicts at and below v.
func invalidLeaves(v Verdict, out []Verdict) []Verdict {
	if v.Validity != Invalid {
		return out
	}
	before := len(out)
	for _, part := range v.Parts {
		out = invalidLeaves(part, out)
	}
	if len(out) == before {
		out = append(out, v)
	}
	return out
}

func fingerprint(name string, v Verdict) Fingerprint {
	text, _, _ := strings.Cut(v.Summary, "\n")
	return Fingerprint{Checker: name, Shape: shape(text)}
}

// shape is a sentence without what differs from run to run: every word that
// holds a digit, a slash or a hash becomes "#", a list of them one "#", and a
// plural after a number loses its s.
func shape(text string) string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		bare := strings.TrimFunc(word, unicode.IsPunct)
		tail := word[len(strings.TrimRightFunc(word, unicode.IsPunct)):]
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsDigit(r) || r == '/' || r == '#' }) {
			word = "#" + tail
		}
		last := len(words) - 1
		switch {
		case last < 0 || !strings.HasPrefix(words[last], "#"):
			words = append(words, word)
		case strings.HasPrefix(word, "#") || isUnit(bare):
			words[last] = word
			if isUnit(bare) {
				words[last] = "#" + tail
			}
		default:
			words = append(words, singular(word, bare, tail))
		}
	}
	return strings.Join(words, " ")
}

// singular drops the s of a plural: of a plain word, not of "loss" or "has".
func singular(word, bare, tail string) string {
	if bare+tail != word || len(bare) < 4 || strings.HasSuffix(bare, "ss") || !strings.HasSuffix(bare, "s") {
		return word
	}
	return strings.TrimSuffix(bare, "s") + tail
}

func isUnit(word string) bool { return word == "s" || word == "ms" || word == "µs" || word == "ns" }
