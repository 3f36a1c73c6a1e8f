package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sample is a history with every kind of line.
func sample() []Op {
	ops := []Op{
		{Time: 0, Process: 0, Type: Invoke, F: "write", Value: json.RawMessage(`{"key":"k1","value":1}`)},
		{Time: 1, Process: 1, Type: Invoke, F: "read", Value: json.RawMessage(`{"key":"k1","value":null}`)},
		{Time: 2, Process: Nemesis, Type: Invoke, F: "kill", Value: json.RawMessage(`{"id":3}`)},
		{Time: 2, Process: Observer, Type: Info, F: KindReady, Value: json.RawMessage(`{"server":1,"incarnation":7}`), Node: "tablet-1"},
		{Time: 5, Process: 1, Type: Ok, F: "read", Value: json.RawMessage(`{"key":"k1","value":1}`), Node: "tablet-1", Tries: 3, Metadata: 1},
		{Time: 6, Process: 0, Type: Info, F: "write", Error: "timed out: \"quoted\"\nand a second line \u2028 \x01"},
		{Time: 7, Process: 2, Type: Invoke, F: "read"},
		{Time: 8, Process: 2, Type: Fail, F: "read", Error: "refused"},
		{Time: 9, Process: Nemesis, Type: Info, F: "kill", Value: json.RawMessage(`{"id":3,"killed":["tablet-1"]}`)},
		{Time: time.Duration(math.MaxInt64 - 1), Process: 3, Type: Invoke, F: "read"},
	}
	for i := range ops {
		ops[i].Index = i
	}
	return ops
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, Write(&file, sample()))
	h, report, err := Read(&file)
	require.NoError(t, err)
	require.Equal(t, Report{Lines: len(sample())}, report)
	require.Equal(t, sample(), h.Ops())
}

// Others read our files with encoding/json, and ours must read theirs.
func TestTheFormIsThatOfEncodingJSON(t *testing.T) {
	for _, op := range sample() {
		line, err := AppendJSON(nil, op)
		require.NoError(t, err)
		var back Op
		require.NoError(t, json.Unmarshal(line, &back))
		require.Equal(t, op, back)
		std, err := json.Marshal(op)
		require.NoError(t, err)
		d := &decoder{words: map[string]string{}, line: 1}
		again, err := d.decode(std)
		require.NoError(t, err)
		require.Equal(t, op, again)
	}
}

func TestAppendRefusesWhatNoReaderCouldRead(t *testing.T) {
	for name, op := range map[string]Op{
		"unknown type":     {Type: 9, F: "read"},
		"value is no JSON": {F: "read", Value: json.RawMessage(`{"key":`)},
		"two values":       {F: "read", Value: json.RawMessage(`1 2`)},
		"too long":         {F: "read", Error: strings.Repeat("x", MaxLine)},
	} {
		dst := []byte("before")
		out, err := AppendJSON(dst, op)
		require.Error(t, err, name)
		require.Equal(t, dst, out, name)
	}
}

func TestAValueWithLineBreaksIsWrittenOnOneLine(t *testing.T) {
	line, err := AppendJSON(nil, Op{F: "read", Value: json.RawMessage("{\n \"a\": \"b c\" }")})
	require.NoError(t, err)
	require.Contains(t, string(line), `"value":{"a":"b c"}`)
	require.NotContains(t, string(line), "\n")
}

func TestATornLastLineIsDroppedAndReported(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, Write(&file, sample()))
	whole := file.Bytes()
	lastLine := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := lastLine + 1; cut < len(whole)-1; cut++ {
		h, report, err := Read(bytes.NewReader(whole[:cut]))
		require.NoError(t, err)
		require.Equal(t, Report{Lines: len(sample()) - 1, Torn: true, TornBytes: cut - lastLine}, report)
		require.Equal(t, len(sample())-1, h.Len())
	}
	// Only the line break is missing: the object is whole, so nothing is lost.
	h, report, err := Read(bytes.NewReader(whole[:len(whole)-1]))
	require.NoError(t, err)
	require.Equal(t, Report{Lines: len(sample())}, report)
	require.Equal(t, len(sample()), h.Len())
}

func TestMalformedLinesAreNamed(t *testing.T) {
	good := `{"index":0,"time":1,"process":0,"type":"invoke","f":"read"}` + "\n"
	for name, line := range map[string]string{
		"empty line":      ``,
		"no object":       `[1]`,
		"text":            `hello`,
		"unknown type":    `{"index":1,"time":1,"process":1,"type":"maybe","f":"read"}`,
		"unknown field":   `{"index":1,"time":1,"process":1,"type":"invoke","f":"read","colour":1}`,
		"field twice":     `{"index":1,"index":1,"time":1,"process":1,"type":"invoke","f":"read"}`,
		"no function":     `{"index":1,"time":1,"process":1,"type":"invoke"}`,
		"time not a num":  `{"index":1,"time":NaN,"process":1,"type":"invoke","f":"read"}`,
		"time a fraction": `{"index":1,"time":1.5,"process":1,"type":"invoke","f":"read"}`,
		"time too large":  `{"index":1,"time":99999999999999999999,"process":1,"type":"invoke","f":"read"}`,
		"time a string":   `{"index":1,"time":"1","process":1,"type":"invoke","f":"read"}`,
		"leading zero":    `{"index":01,"time":1,"process":1,"type":"invoke","f":"read"}`,
		"process too big": `{"index":1,"time":1,"process":4294967296,"type":"invoke","f":"read"}`,
		"value torn":      `{"index":1,"time":1,"process":1,"type":"invoke","f":"read","value":{"a":}}`,
		"value too deep":  `{"index":1,"time":1,"process":1,"type":"invoke","f":"read","value":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`,
		"text after it":   `{"index":1,"time":1,"process":1,"type":"invoke","f":"read"} x`,
	} {
		for _, rest := range []string{"\n", "\n" + good} {
			_, _, err := Read(strings.NewReader(good + line + rest))
			var at *LineError
			require.ErrorAs(t, err, &at, name)
			require.Equal(t, 2, at.Line, name)
			require.ErrorIs(t, err, ErrSyntax, name)
		}
	}
}

// endless is a file of one line that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestAnEndlessLineStopsTheReaderEarly(t *testing.T) {
	source := &endless{}
	_, _, err := Read(source)
	require.ErrorIs(t, err, ErrTooLong)
	require.Less(t, source.read, 2*MaxLine)
}

func TestErrorsOfTheSourceAreNotTakenForTheEnd(t *testing.T) {
	broken := errors.New("disk on fire")
	_, _, err := Read(io.MultiReader(strings.NewReader(`{"index":0`), &failing{broken}))
	require.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	require.NoError(f, Write(&file, sample()))
	f.Add(file.Bytes())
	f.Add([]byte(`{"index":0,"time":0,"process":0,"type":"invoke","f":"read","value":[1,{"a":"\u00e9"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, _, err := Read(bytes.NewReader(data))
		if err != nil {
			var at *LineError
			require.ErrorAs(t, err, &at)
			require.LessOrEqual(t, at.Line, bytes.Count(data, []byte("\n"))+1)
			return
		}
		// Whatever was accepted is written and read back the same.
		var again bytes.Buffer
		require.NoError(t, Write(&again, h.Ops()))
		h2, report, err := Read(&again)
		require.NoError(t, err)
		require.False(t, report.Torn)
		require.Equal(t, h.Len(), h2.Len())
		for i, op := range h.Ops() {
			if ok, spaced := valid(op.Value); ok && !spaced {
				require.Equal(t, op, h2.Ops()[i])
			}
		}
	})
}

// What the quick reader accepts, the strict one must accept, and read the same.
func FuzzQuick(f *testing.F) {
	for _, op := range sample() {
		line, err := AppendJSON(nil, op)
		require.NoError(f, err)
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		words := map[string]string{"read": "read", "write": "write", "kill": "kill", "tablet-1": "tablet-1", KindReady: KindReady}
		var quick Op
		if !(&decoder{words: words}).quick(line, &quick) {
			return
		}
		strict, err := (&decoder{words: words, line: 1}).strict(line)
		require.NoError(t, err)
		require.Equal(t, strict, quick)
	})
}

// The scanner must agree with encoding/json on what a value is.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+3,true,null,"x\n\u12aF"]}`, `01`, `-`, `"\x"`, "\"\t\"", `[1,]`, `{}`, `{"a"}`, ` 1 `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if depth(data) > maxDepth {
			return
		}
		ok, _ := valid(data)
		require.Equal(t, json.Valid(data), ok)
	})
}

func depth(data []byte) int {
	return bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{"))
}

func BenchmarkAppendJSON(b *testing.B) {
	op := Op{Index: 123456, Time: 12345678901, Process: 12, Type: Ok, F: "write", Value: json.RawMessage(`{"key":"k12","value":123456}`), Node: "tablet-1", Tries: 1}
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		line, _ = AppendJSON(line[:0], op)
	}
}

func BenchmarkRead(b *testing.B) {
	var ops []Op
	for i := range 100_000 {
		kind := Invoke
		if i%2 == 1 {
			kind = Ok
		}
		ops = append(ops, Op{Index: i, Time: time.Duration(i) * 1000, Process: 1, Type: kind, F: "write", Value: json.RawMessage(`{"key":"k12","value":123456}`), Node: "tablet-1"})
	}
	var file bytes.Buffer
	if err := Write(&file, ops); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		if _, _, err := Read(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
