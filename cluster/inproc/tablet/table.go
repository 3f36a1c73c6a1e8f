package tablet

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// table is the state of a KV bucket at its leader, in two views: committed is
// the changelog applied up to the high watermark, and what lookups read; the
// pre-write view adds what was appended since, and is where a put finds the old
// value. Followers have none: a new leader rebuilds it from its log.
type table struct {
	committed map[string][]byte
	pending   map[string]pendingRow
	applied   int64 // committed covers [0, applied)
}

// pendingRow is a row above the high watermark. A nil value is a deletion.
type pendingRow struct {
	value  []byte
	offset int64
}

// rebuild replays a log over a snapshot, nil for none: what lies below the high
// watermark is committed, the rest pending.
func rebuild(l *changelog, hw int64, snap *snapshot) *table {
	t := &table{committed: map[string][]byte{}, pending: map[string]pendingRow{}}
	if snap != nil {
		t.committed, t.applied = snap.rows, snap.offset
	}
	t.advance(l, hw)
	for offset := t.applied; offset < l.end; offset++ {
		t.stage(l.at(offset))
	}
	return t
}

// latest is a row as of the end of the log.
func (t *table) latest(key string) ([]byte, bool) {
	if p, ok := t.pending[key]; ok {
		return p.value, p.value != nil
	}
	v, ok := t.committed[key]
	return v, ok
}

// stage takes in a record that was appended.
func (t *table) stage(r *protocol.LogRecord) {
	switch r.Change {
	case protocol.ChangeInsert, protocol.ChangeUpdateAfter:
		t.pending[r.Key] = pendingRow{r.Value, r.Offset}
	case protocol.ChangeDelete:
		t.pending[r.Key] = pendingRow{nil, r.Offset}
	case protocol.ChangeAppend, protocol.ChangeUpdateBefore: // they change no row
	}
}

// advance commits everything below hw.
func (t *table) advance(l *changelog, hw int64) {
	for ; t.applied < hw; t.applied++ {
		r := l.at(t.applied)
		switch r.Change {
		case protocol.ChangeInsert, protocol.ChangeUpdateAfter:
			t.committed[r.Key] = r.Value
		case protocol.ChangeDelete:
			delete(t.committed, r.Key)
		case protocol.ChangeAppend, protocol.ChangeUpdateBefore:
			continue
		}
		if p, ok := t.pending[r.Key]; ok && p.offset <= r.Offset {
			delete(t.pending, r.Key)
		}
	}
}

// changes are the records of one put, in order, by what the rows were before it.
// Every row leaves a record, the deletion of an absent key too: the batch must be
// in the log for its writer's sequence to be.
func (t *table) changes(rows []protocol.Row) []protocol.LogRecord {
	out := make([]protocol.LogRecord, 0, 2*len(rows))
	var batch map[string]pendingRow // rows of this very batch
	if len(rows) > 1 {
		batch = make(map[string]pendingRow, len(rows))
	}
	for _, row := range rows {
		old, existed := t.latest(row.Key)
		if batch != nil {
			if p, ok := batch[row.Key]; ok {
				old, existed = p.value, p.value != nil
			}
			batch[row.Key] = pendingRow{value: row.Value}
		}
		switch {
		case row.Value == nil:
			out = append(out, protocol.LogRecord{Change: protocol.ChangeDelete, Key: row.Key, Value: old})
		case existed:
			out = append(out,
				protocol.LogRecord{Change: protocol.ChangeUpdateBefore, Key: row.Key, Value: old},
				protocol.LogRecord{Change: protocol.ChangeUpdateAfter, Key: row.Key, Value: row.Value})
		default:
			out = append(out, protocol.LogRecord{Change: protocol.ChangeInsert, Key: row.Key, Value: row.Value})
		}
	}
	return out
}
