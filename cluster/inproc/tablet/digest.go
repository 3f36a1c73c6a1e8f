package tablet

import (
	"fmt"
	"hash/crc64"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// digestEvery is the distance of the marks at which a digest is remembered, and
// at which a leader sends it along with what it sends anyway.
const digestEvery = 64

// digest is a running hash over a replica's records, for comparing replicas below
// their high watermarks: no byte there may differ (section 5, invariants). It is
// brought up to date when asked for.
type digest struct {
	marks   []uint64 // the sum below (i+1) × digestEvery
	upTo    int64
	sum     uint64
	scratch []byte
}

// at returns the hash over [0, to).
func (d *digest) at(l *changelog, to int64) uint64 {
	if to < d.upTo {
		d.rewind(to)
	}
	table := crc64.MakeTable(crc64.ECMA)
	for d.upTo < to {
		r := l.at(d.upTo)
		d.scratch = appendRecord(appendHeader(d.scratch[:0], r), r)
		d.sum = crc64.Update(d.sum, table, d.scratch)
		d.upTo++
		if d.upTo%digestEvery == 0 && int(d.upTo/digestEvery) > len(d.marks) {
			d.marks = append(d.marks, d.sum)
		}
	}
	return d.sum
}

// rewind goes back to the last mark at or before an offset.
func (d *digest) rewind(to int64) {
	n := min(int(to/digestEvery), len(d.marks))
	d.upTo, d.sum = int64(n)*digestEvery, 0
	if n > 0 {
		d.sum = d.marks[n-1]
	}
}

// truncate forgets what was summed up from an offset on.
func (d *digest) truncate(to int64) {
	d.marks = d.marks[:min(int(to/digestEvery), len(d.marks))]
	if to < d.upTo {
		d.rewind(to)
	}
}

// sign adds the leader's digest to an answer: at the newest mark that the
// follower has not been sent, or at the high watermark itself when there is
// nothing else to say.
func (l *leadership) sign(f *follower, out *protocol.FetchedBucket, idle bool) {
	at := l.r.hw / digestEvery * digestEvery
	if idle {
		at = l.r.hw
	}
	if at > f.digestSent {
		f.digestSent = at
		out.DigestAt, out.Digest = at, l.r.digest.at(&l.r.records, at)
	}
}

// compare holds the leader's digest against the own log.
func (r *replica) compare(b *protocol.FetchedBucket) {
	if b.DigestAt == 0 || b.DigestAt > r.hw || r.differs == r.leaderEpoch {
		return
	}
	if own := r.digest.at(&r.records, b.DigestAt); own != b.Digest {
		r.differs = r.leaderEpoch // said once a leader epoch
		r.violation("replicas-equal-below-high-watermark",
			fmt.Sprintf("below %d differs from the leader's log at leader epoch %d", b.DigestAt, r.leaderEpoch))
	}
}
