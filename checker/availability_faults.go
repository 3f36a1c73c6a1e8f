package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// recoveries measures the way back from each fault.
type recoveries struct {
	t       *timeline
	s       *successes
	buckets []string // sorted
	gone    []history.Record[history.Session]
	terms   []history.Record[history.Term]
	oks     []time.Duration
}

func newRecoveries(h history.History, t *timeline, s *successes) (*recoveries, error) {
	r := &recoveries{t: t, s: s, buckets: sortedKeys(t.lais)}
	sessions, err := history.Events[history.Session](h)
	if err != nil {
		return nil, err
	}
	for _, e := range sessions {
		if e.Event.State == history.SessionExpired || e.Event.State == history.SessionClosed {
			r.gone = append(r.gone, e)
		}
	}
	for _, x := range s.all {
		r.oks = append(r.oks, x.at)
	}
	r.terms, err = history.Events[history.Term](h)
	return r, err
}

func (r *recoveries) of(f faultWindow) FaultRecovery {
	fr := FaultRecovery{
		Name: f.Name, ID: f.ID, Target: f.Target, From: int64(f.From), To: int64(f.To), Buckets: []BucketRecovery{},
		Acknowledged: within(r.oks, f.From, f.To), Failed: within(r.s.failed, f.From, f.To), Unknown: within(r.s.unknown, f.From, f.To),
		LongestGap: r.s.gap(f.From, f.To),
	}
	for _, bucket := range r.buckets {
		lai, ok := r.t.lai(bucket, f.From)
		if ok && lai.Leader >= 0 && slices.Contains(f.Target, fmt.Sprintf("tablet-%d", lai.Leader)) {
			fr.Buckets = append(fr.Buckets, r.bucket(f, bucket, lai))
		}
	}
	if slices.ContainsFunc(f.Target, func(node string) bool { return strings.HasPrefix(node, "coordinator-") }) {
		fr.Coordinator = r.coordinator(f)
	}
	return fr
}

// sessionEnd is when the first session of a target ended in the fault's reach.
func (r *recoveries) sessionEnd(f faultWindow) int64 {
	for _, e := range r.gone {
		if e.Op.Time >= f.From && e.Op.Time <= f.To+recoveryReach && slices.Contains(f.Target, e.Event.Node) {
			return int64(e.Op.Time - f.From)
		}
	}
	return -1
}

func (r *recoveries) bucket(f faultWindow, bucket string, old history.LAI) BucketRecovery {
	b := BucketRecovery{
		Bucket: bucket, OldLeader: old.Leader, NewLeader: -1, LeaderEpoch: old.LeaderEpoch,
		Detected: r.sessionEnd(f), Elected: -1, Admitted: -1, Success: -1,
	}
	for _, e := range r.t.lais[bucket] {
		if e.Op.Time <= f.From || e.Op.Time > f.To+recoveryReach {
			continue
		}
		since := int64(e.Op.Time - f.From)
		if b.Detected < 0 || since < b.Detected {
			b.Detected = since
		}
		if e.Event.LeaderEpoch > old.LeaderEpoch && e.Event.Leader >= 0 {
			b.Elected, b.NewLeader, b.LeaderEpoch = since, e.Event.Leader, e.Event.LeaderEpoch
			break
		}
	}
	if b.Elected < 0 { // it kept its leader: the first success after the start is what there is
		b.NewLeader = old.Leader
		b.Success = r.success(f, bucket, old.Leader, f.From)
		return b
	}
	for _, a := range r.t.admissions[bucket] {
		if a.From >= f.From && a.Epoch >= b.LeaderEpoch {
			b.Admitted = int64(a.From - f.From)
			b.Success = r.success(f, bucket, a.Server, a.From)
			break
		}
	}
	return b
}

// success is the first acknowledged operation that the server answered, on the
// bucket if operations tell theirs.
func (r *recoveries) success(f faultWindow, bucket string, server int, from time.Duration) int64 {
	node := fmt.Sprintf("tablet-%d", server)
	list, ok := r.s.by[place2{node, bucket}]
	if !ok {
		list = r.s.by[place2{node: node}]
	}
	i, _ := slices.BinarySearchFunc(list, from, compareTimes)
	if i == len(list) {
		return -1
	}
	return int64(list[i] - f.From)
}

func (r *recoveries) coordinator(f faultWindow) *CoordinatorMove {
	m := &CoordinatorMove{Detected: r.sessionEnd(f), Elected: -1, Serving: -1}
	for _, e := range r.terms {
		if e.Op.Time < f.From || e.Op.Time > f.To+recoveryReach {
			continue
		}
		since := int64(e.Op.Time - f.From)
		switch {
		case e.Event.State == history.TermElected && m.Elected < 0:
			m.Elected, m.Next = since, e.Event.Coordinator
		case e.Event.State == history.TermServing && m.Serving < 0 && m.Elected >= 0:
			m.Serving = since
		}
	}
	return m
}
