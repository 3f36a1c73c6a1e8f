package checker

import (
	"fmt"

	"github.com/fencepost-dev/fencepost/history"
)

// replicaLife is a replica within one incarnation of its server.
type replicaLife struct {
	bucket      string
	server      int
	incarnation int64
}

// served is the range of high watermarks that admitted leaders showed at one
// leader epoch.
type served struct {
	low, high         int64
	lowLine, highLine int
	server            int
}

// highWatermarks: a replica's never goes back within an incarnation, and what
// the leaders of a bucket serve never goes back from one leader epoch to the
// next. Leader epochs are compared as such and not by the clock, because a move
// of an old leader that changes nothing for anybody may be reported late.
func (b *broken) highWatermarks(h history.History) error {
	replicas := map[replicaLife]history.Record[history.HW]{}
	buckets := map[string]map[int]*served{}
	for _, op := range h.Ops() {
		if op.Process != history.Observer {
			continue
		}
		switch op.F {
		case history.KindNode:
			e, err := history.Decode[history.Node](op)
			if err != nil {
				return err
			}
			if server, ok := serverOf(e.Node); ok && e.State != history.NodePaused && e.State != history.NodeResumed {
				for life := range replicas { // each is dropped for itself: order does not matter
					if life.server == server {
						delete(replicas, life)
					}
				}
			}
		case history.KindHW:
			e, err := history.Decode[history.HW](op)
			if err != nil {
				return err
			}
			b.data.Checked[history.KindHW]++
			life := replicaLife{e.Bucket, e.Server, e.Incarnation}
			if before, ok := replicas[life]; ok && e.To < before.Event.To {
				b.found("high watermark of a replica goes back", e.Bucket, op, fmt.Sprintf(
					"tablet %d (incarnation %d) from %d to %d at leader epoch %d, it stood at %d before (line %d)",
					e.Server, e.Incarnation, e.From, e.To, e.LeaderEpoch, before.Event.To, before.Op.Index+1), before.Op.Index)
			}
			replicas[life] = history.Record[history.HW]{Op: op, Event: e}
			if e.Leading {
				serve(buckets, op, e)
			}
		}
	}
	for _, bucket := range sortedKeys(buckets) {
		b.servedInOrder(h, bucket, buckets[bucket])
	}
	return nil
}

func serve(buckets map[string]map[int]*served, op history.Op, e history.HW) {
	if buckets[e.Bucket] == nil {
		buckets[e.Bucket] = map[int]*served{}
	}
	s := buckets[e.Bucket][e.LeaderEpoch]
	if s == nil {
		s = &served{e.To, e.To, op.Index, op.Index, e.Server}
		buckets[e.Bucket][e.LeaderEpoch] = s
	}
	if e.To < s.low {
		s.low, s.lowLine = e.To, op.Index
	}
	if e.To > s.high {
		s.high, s.highLine = e.To, op.Index
	}
}

// servedInOrder compares each leader epoch with the highest that a lower one served.
func (b *broken) servedInOrder(h history.History, bucket string, epochs map[int]*served) {
	var best *served
	bestEpoch := 0
	for _, epoch := range sortedKeys(epochs) {
		s := epochs[epoch]
		if best != nil && s.low < best.high {
			b.found("served high watermark goes back", bucket, h.Ops()[s.lowLine], fmt.Sprintf(
				"tablet %d served %d as leader at leader epoch %d, although tablet %d had served %d at leader epoch %d (line %d)",
				s.server, s.low, epoch, best.server, best.high, bestEpoch, best.highLine+1), best.highLine)
		}
		if best == nil || s.high > best.high {
			best, bestEpoch = s, epoch
		}
	}
}
