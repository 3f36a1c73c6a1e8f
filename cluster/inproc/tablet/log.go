package tablet

import (
	"slices"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// segmentSize bounds what growing the log ever copies.
const (
	segmentBits = 12
	segmentSize = 1 << segmentBits
	segmentMask = segmentSize - 1
)

// changelog is the log of one replica in memory: dense offsets from 0, whole
// batches. A record, once appended, is never written again, so that replies may
// point into the log: truncation gives up arrays instead of reusing them.
type changelog struct {
	segments [][]protocol.LogRecord
	end      int64
	epochs   []epochMark // ascending in both fields: the leader-epoch cache
}

// epochMark is the first offset of a leader epoch that has records.
type epochMark struct {
	epoch int
	start int64
}

func (l *changelog) at(offset int64) *protocol.LogRecord {
	return &l.segments[offset>>segmentBits][offset&segmentMask]
}

// append adds a record whose offset must be the end.
func (l *changelog) append(r protocol.LogRecord) {
	i := int(l.end >> segmentBits)
	if i == len(l.segments) {
		l.segments = append(l.segments, nil)
	}
	if n := len(l.epochs); n == 0 || l.epochs[n-1].epoch != r.Epoch {
		l.epochs = append(l.epochs, epochMark{r.Epoch, r.Offset})
	}
	l.segments[i] = append(l.segments[i], r)
	l.end++
}

// slice returns the records [from, to), without a copy where they lie in one
// segment. The caller must not change them.
func (l *changelog) slice(from, to int64) []protocol.LogRecord {
	if from >= to {
		return nil
	}
	first, last := from>>segmentBits, (to-1)>>segmentBits
	if first == last {
		return l.segments[first][from&segmentMask : (to-1)&segmentMask+1 : (to-1)&segmentMask+1]
	}
	out := make([]protocol.LogRecord, 0, to-from)
	for i := first; i <= last; i++ {
		lo, hi := int64(0), int64(len(l.segments[i]))
		if i == first {
			lo = from & segmentMask
		}
		if i == last {
			hi = (to-1)&segmentMask + 1
		}
		out = append(out, l.segments[i][lo:hi]...)
	}
	return out
}

// wholeBatches is the end of a fetch from offset of about max records: at least
// one batch, and never a part of one, so that followers hold batches whole and a
// half-applied write cannot be led on.
func (l *changelog) wholeBatches(from int64, limit int) int64 {
	to := min(from+int64(max(limit, 1)), l.end)
	for to < l.end && l.at(to).Index != 0 {
		to++
	}
	return to
}

// truncate drops every record from offset to on.
func (l *changelog) truncate(to int64) {
	if to >= l.end {
		return
	}
	keep := int((to + segmentMask) >> segmentBits)
	l.segments = slices.Delete(l.segments, keep, len(l.segments))
	if n := to & segmentMask; n != 0 {
		last := len(l.segments) - 1
		l.segments[last] = l.segments[last][:n:n] // the next append moves elsewhere
	}
	l.end = to
	for len(l.epochs) > 0 && l.epochs[len(l.epochs)-1].start >= to {
		l.epochs = l.epochs[:len(l.epochs)-1]
	}
}

// lastEpoch is the leader epoch of the last record, -1 for an empty log.
func (l *changelog) lastEpoch() int {
	if len(l.epochs) == 0 {
		return -1
	}
	return l.epochs[len(l.epochs)-1].epoch
}

// epochEnd is the largest epoch of the log that is ≤ epoch, and that epoch's end;
// (-1, 0) if there is none (rule S8).
func (l *changelog) epochEnd(epoch int) (int, int64) {
	end := l.end
	for _, mark := range slices.Backward(l.epochs) {
		if mark.epoch <= epoch {
			return mark.epoch, end
		}
		end = mark.start
	}
	return -1, 0
}
