package history

import (
	"bytes"
	"encoding/json"
)

// Decode reads the event that an observer's line holds. It refuses a line of
// another kind, and a value that is not the event (a field of a later schema is
// no error: old readers go on reading new files).
func Decode[T Event](op Op) (T, error) {
	var event T
	if op.Process != Observer || op.F != event.Kind() {
		return event, lineErrorf(op.Index+1, ErrEvent, "process %d, %q: not an event of kind %q", op.Process, op.F, event.Kind())
	}
	if hw, is := any(&event).(*HW); is && plainHW(op.Value, hw) {
		return event, nil
	}
	if err := json.Unmarshal(op.Value, &event); err != nil {
		return event, lineErrorf(op.Index+1, ErrEvent, "%s: %v", op.F, err)
	}
	return event, nil
}

// Record is an event with the line that holds it.
type Record[T Event] struct {
	Op    Op
	Event T
}

// Events reads all events of one kind, in the order of the history.
func Events[T Event](h History) ([]Record[T], error) {
	var zero T
	kind := zero.Kind()
	var out []Record[T]
	for _, op := range h.ops {
		if op.Process != Observer || op.F != kind {
			continue
		}
		event, err := Decode[T](op)
		if err != nil {
			return nil, err
		}
		out = append(out, Record[T]{op, event})
	}
	return out, nil
}

// NewEvent makes the line of an event; the recorder sets Index and Time.
func NewEvent(node string, event Event) (Op, error) {
	if hw, is := event.(HW); is {
		return Op{Process: Observer, Type: Info, F: KindHW, Value: appendHW(make([]byte, 0, 160), hw), Node: node}, nil
	}
	value, err := json.Marshal(event)
	if err != nil {
		return Op{}, lineErrorf(1, ErrEvent, "%s: %v", event.Kind(), err)
	}
	return Op{Process: Observer, Type: Info, F: event.Kind(), Value: value, Node: node}, nil
}

// Absent reports whether the value is JSON's null or missing: the key held nothing.
func (kv KeyValue) Absent() bool {
	return len(kv.Value) == 0 || bytes.Equal(kv.Value, []byte("null"))
}

// JSON is the stored form: {"key":"k1","value":34}, with null for an absent value.
func (kv KeyValue) JSON() json.RawMessage {
	out := append(json.RawMessage(nil), `{"key":`...)
	out = appendString(out, kv.Key)
	out = append(out, `,"value":`...)
	if kv.Absent() {
		out = append(out, "null"...)
	} else {
		out = append(out, kv.Value...)
	}
	return append(out, '}')
}

// KeyValueOf reads the key and value of a client's line. The value shares the
// line's bytes.
func KeyValueOf(op Op) (KeyValue, error) {
	if kv, ok := plainKeyValue(op.Value); ok {
		return kv, nil
	}
	var kv struct {
		Key   *string         `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(op.Value, &kv); err != nil || kv.Key == nil {
		return KeyValue{}, lineErrorf(op.Index+1, ErrContract, "value %.60q is not {\"key\":…,\"value\":…}", op.Value)
	}
	return KeyValue{Key: *kv.Key, Value: kv.Value}, nil
}

func plainKeyValue(raw []byte) (KeyValue, bool) {
	key, value, ok := PlainKeyValue(raw)
	return KeyValue{Key: string(key), Value: value}, ok
}

// PlainKeyValue reads the form that KeyValue.JSON writes, which is all but the
// rarest, without allocating: both slices share raw's bytes. Not ok means that
// KeyValueOf must decide.
func PlainKeyValue(raw []byte) (key, value []byte, ok bool) {
	s := scanner{b: raw}
	if !s.word(`{"key":`) {
		return nil, nil, false
	}
	quoted, ok := s.str()
	if !ok || bytes.IndexByte(quoted, '\\') >= 0 || !s.word(`,"value":`) {
		return nil, nil, false
	}
	from := s.i
	if !s.value(0) || s.i != len(raw)-1 || raw[s.i] != '}' {
		return nil, nil, false
	}
	return quoted[1 : len(quoted)-1], raw[from:s.i], true
}
