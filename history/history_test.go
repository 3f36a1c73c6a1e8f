package history

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func number(ops []Op) []Op {
	for i := range ops {
		ops[i].Index = i
	}
	return ops
}

func TestIllFormedHistoriesAreRefused(t *testing.T) {
	invoke := Op{Process: 1, Type: Invoke, F: "read"}
	ok := Op{Process: 1, Type: Ok, F: "read"}
	info := Op{Process: 1, Type: Info, F: "read"}
	for _, test := range []struct {
		name string
		ops  []Op
		line int
		want string
	}{
		{"gap", []Op{{Index: 0, Process: 1, F: "read"}, {Index: 2, Process: 1, Type: Ok, F: "read"}}, 2, "index 2 where 1"},
		{"negative time", number([]Op{{Time: -1, Process: 1, F: "read"}}), 1, "below zero"},
		{"time goes back", number([]Op{{Time: 5, Process: 1, F: "read"}, {Time: 4, Process: 1, Type: Ok, F: "read"}}), 2, "goes back"},
		{"unknown type", number([]Op{{Type: 4, F: "read"}}), 1, "type 4"},
		{"unknown process", number([]Op{{Process: -3, F: "read"}}), 1, "process -3"},
		{"nameless", number([]Op{{Process: 1}}), 1, "no name"},
		{"observer invokes", number([]Op{{Process: Observer, F: "term"}}), 1, "want info"},
		{"completion alone", number([]Op{ok}), 1, "has not invoked"},
		{"two completions", number([]Op{invoke, ok, ok}), 3, "completed before"},
		{"two open", number([]Op{invoke, invoke}), 2, "line 1 is open"},
		{"after info", number([]Op{invoke, info, invoke}), 3, "retired"},
		{"completes after info", number([]Op{invoke, info, ok}), 3, "completed before"},
		{"another function", number([]Op{invoke, {Process: 1, Type: Ok, F: "write"}}), 2, "line 1 invoked"},
		{"nemesis completes nothing", number([]Op{{Process: Nemesis, Type: Info, F: "kill"}}), 1, "not open"},
		{"high process reused", number([]Op{{Process: nearLimit, F: "r"}, {Process: nearLimit, Type: Info, F: "r"}, {Process: nearLimit, F: "r"}}), 3, "retired"},
	} {
		_, err := New(test.ops)
		var at *LineError
		require.ErrorAs(t, err, &at, test.name)
		require.Equal(t, test.line, at.Line, test.name)
		require.ErrorIs(t, err, ErrIllFormed, test.name)
		require.ErrorContains(t, err, test.want, test.name)
	}
}

func TestPairs(t *testing.T) {
	h, err := New(sample())
	require.NoError(t, err)
	type pair struct{ invoke, complete int }
	var got []pair
	for invoke, complete := range h.Pairs() {
		require.Equal(t, Invoke, invoke.Type)
		require.Equal(t, invoke.Process, complete.Process)
		require.Equal(t, invoke.F, complete.F)
		got = append(got, pair{invoke.Index, complete.Index})
		if complete.Index < 0 {
			require.Equal(t, Forever, complete.Time)
			require.Equal(t, Info, complete.Type)
		}
	}
	require.Equal(t, []pair{{0, 5}, {1, 4}, {2, 8}, {6, 7}, {9, -1}}, got)
	for range h.Pairs() {
		break // an early end of the loop is allowed
	}
	partner, ok := h.Partner(5)
	require.True(t, ok)
	require.Equal(t, 0, partner)
	_, ok = h.Partner(3)
	require.False(t, ok)
}

func TestOverlappingFaultsArePairedByTheirID(t *testing.T) {
	h, err := New(number([]Op{
		{Process: Nemesis, F: "kill", Value: json.RawMessage(`{"id":1}`)},
		{Process: Nemesis, F: "kill", Value: json.RawMessage(`{"id":2}`)},
		{Process: Nemesis, F: "pause"},
		{Process: Nemesis, Type: Info, F: "kill", Value: json.RawMessage(`{"id":2}`)},
		{Process: Nemesis, Type: Info, F: "pause"},
		{Process: Nemesis, Type: Info, F: "kill", Value: json.RawMessage(`{"id":1}`)},
	}))
	require.NoError(t, err)
	for complete, invoke := range map[int]int{3: 1, 4: 2, 5: 0} {
		got, ok := h.Partner(complete)
		require.True(t, ok)
		require.Equal(t, invoke, got)
	}
}

func TestDecodeRefusesOtherLines(t *testing.T) {
	h, err := New(sample())
	require.NoError(t, err)
	ready, err := Decode[Ready](h.Ops()[3])
	require.NoError(t, err)
	require.Equal(t, Ready{Server: 1, Incarnation: 7}, ready)
	_, err = Decode[Term](h.Ops()[3])
	require.ErrorIs(t, err, ErrEvent)
	_, err = Decode[Ready](h.Ops()[0])
	require.ErrorIs(t, err, ErrEvent)
	records, err := Events[Ready](h)
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Equal(t, 3, records[0].Op.Index)
	bad := h.Ops()[3]
	bad.Value = json.RawMessage(`{"server":"one"}`)
	_, err = Decode[Ready](bad)
	require.ErrorContains(t, err, "line 4")
}

func TestKeyValues(t *testing.T) {
	for raw, want := range map[string]KeyValue{
		`{"key":"k1","value":34}`:        {Key: "k1", Value: json.RawMessage(`34`)},
		`{"key":"k1","value":null}`:      {Key: "k1", Value: json.RawMessage(`null`)},
		`{ "value": [1], "key": "a\"b"}`: {Key: `a"b`, Value: json.RawMessage(`[1]`)},
		`{"key":"k1"}`:                   {Key: "k1"},
	} {
		got, err := KeyValueOf(Op{Value: json.RawMessage(raw)})
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
		again, err := KeyValueOf(Op{Value: got.JSON()})
		require.NoError(t, err, raw)
		require.Equal(t, got.Key, again.Key)
		require.Equal(t, got.Absent(), again.Absent())
	}
	for _, raw := range []string{``, `{}`, `{"value":1}`, `{"key":1,"value":2}`, `[]`, `{"key":"a","value":}`} {
		_, err := KeyValueOf(Op{Index: 4, Value: json.RawMessage(raw)})
		require.ErrorContains(t, err, "line 5", raw)
	}
}

// docs/events.md is the reference of the events: every kind and every field
// stands there, and nothing that no event has.
func TestTheReferenceOfEventsIsComplete(t *testing.T) {
	page, err := os.ReadFile("../docs/events.md")
	require.NoError(t, err)
	documented := map[string][]string{}
	section := regexp.MustCompile("(?m)^## `([a-z_]+)`")
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	heads := section.FindAllSubmatchIndex(page, -1)
	for i, head := range heads {
		end := len(page)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		kind := string(page[head[2]:head[3]])
		for _, match := range row.FindAllSubmatch(page[head[1]:end], -1) {
			documented[kind] = append(documented[kind], string(match[1]))
		}
	}
	actual := map[string][]string{}
	for _, event := range allEvents() {
		actual[event.Kind()] = jsonFields(event)
	}
	require.Equal(t, actual, documented)
}
