package tablet

import "github.com/fencepost-dev/fencepost/cluster/inproc/protocol"

// remembered is how many batches of a writer are kept for telling duplicates,
// as in Fluss. A client has fewer in flight.
const remembered = 5

// batchRef is a batch that the log holds.
type batchRef struct {
	seq       int
	base, end int64
}

// writerState is what the log says of one writer: its last batches, oldest
// first.
type writerState struct {
	batches [remembered]batchRef
	n       int
}

// writers is the dedupe state of one replica. It is a function of the log
// (rule S10): everything appended passes through add, and truncation rebuilds it.
type writers map[int64]*writerState

// verdict says what to do with a batch.
type verdict uint8

const (
	fresh     verdict = iota
	duplicate         // the log holds it: batchRef says where
	forgotten         // it was appended, too long ago to say where
	outOfOrder
)

// judge compares a batch with what the log holds. A writer's batches count up
// from 0 without holes.
func (w writers) judge(writer int64, seq int) (verdict, batchRef) {
	if writer < 0 {
		return fresh, batchRef{}
	}
	s := w[writer]
	if s == nil {
		if seq == 0 {
			return fresh, batchRef{}
		}
		return outOfOrder, batchRef{}
	}
	for _, b := range s.batches[:s.n] {
		if b.seq == seq {
			return duplicate, b
		}
	}
	last := s.batches[s.n-1].seq
	switch {
	case seq == last+1:
		return fresh, batchRef{}
	case seq < last:
		return forgotten, batchRef{}
	default:
		return outOfOrder, batchRef{}
	}
}

func (w writers) add(writer int64, seq int, base, end int64) {
	if writer < 0 {
		return
	}
	s := w[writer]
	if s == nil {
		s = &writerState{}
		w[writer] = s
	}
	if s.n == remembered {
		copy(s.batches[:], s.batches[1:])
		s.n--
	}
	s.batches[s.n] = batchRef{seq, base, end}
	s.n++
}

// note takes in a record that was appended; the first of a batch stands for all.
func (w writers) note(r *protocol.LogRecord) {
	if r.Index == 0 {
		w.add(r.Writer, r.Seq, r.Offset, r.Offset+int64(r.Batch))
	}
}

// writersOf derives the dedupe state from a log.
func writersOf(l *changelog) writers {
	w := writers{}
	for offset := int64(0); offset < l.end; offset++ {
		w.note(l.at(offset))
	}
	return w
}
