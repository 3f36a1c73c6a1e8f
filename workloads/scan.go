package workloads

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/harness/gen"
	"github.com/fencepost-dev/fencepost/history"
)

// Scan is the value of a fetch: from the invocation Bucket and From, from its
// completion the rest. From is the offset asked for, Next the one to ask for
// next, HW the high watermark that the server showed.
type Scan struct {
	Table  string `json:"table"`
	Bucket int    `json:"bucket"`
	From   int64  `json:"from"`
	Next   int64  `json:"next,omitempty"`
	HW     int64  `json:"hw,omitempty"`
	Count  int    `json:"count,omitempty"` // records that came
}

// maxFetch is how many records a scanner takes at a time.
const maxFetch = 1000

// scans is the generator of the tail scanners: one worker a bucket fetches from
// where it stands. Positions are kept here and not in clients, because they
// outlive them.
type scans struct {
	table string
	at    []int64         // positions by bucket
	next  []time.Duration // when to ask again
}

func newScans(buckets int) *scans {
	return &scans{table: registerTable, at: make([]int64, buckets), next: make([]time.Duration, buckets)}
}

// bucket is the one that a process scans: the reserved workers are the last.
func (s *scans) bucket(c harness.Context, p history.Process) int {
	return c.Worker(p) - (c.Workers - len(s.at))
}

// Next gives a fetch to the first scanner that is due.
func (s *scans) Next(c harness.Context) harness.Step {
	var soonest time.Duration
	for _, p := range c.Free {
		b := s.bucket(c, p)
		if s.next[b] <= c.Time {
			s.next[b] = c.Time + scanEvery/2 + time.Duration(c.Rand.Int64N(int64(scanEvery)))
			value, _ := json.Marshal(Scan{Table: s.table, Bucket: b, From: s.at[b]}) // plain fields
			return harness.Step{Op: history.Op{Process: p, F: fFetch, Value: value}}
		}
		if soonest == 0 || s.next[b] < soonest {
			soonest = s.next[b]
		}
	}
	return gen.Wait(soonest)
}

// Update moves the position forward.
func (s *scans) Update(c harness.Context, op history.Op) {
	if op.Type != history.Ok {
		return
	}
	var scan Scan
	if json.Unmarshal(op.Value, &scan) != nil {
		return
	}
	s.at[scan.Bucket] = max(s.at[scan.Bucket], scan.Next)
}

// fetch does one fetch.
func fetch(ctx context.Context, log cluster.Log, table string, op history.Op) (harness.Completion, error) {
	var scan Scan
	if err := json.Unmarshal(op.Value, &scan); err != nil {
		return harness.Completion{}, cluster.Definite(err)
	}
	records, next, hw, attempts, err := log.Fetch(ctx, table, scan.Bucket, scan.From, maxFetch)
	scan.Next, scan.HW, scan.Count = next, hw, len(records)
	return harness.Completion{Value: scan, Attempts: attempts}, err
}
