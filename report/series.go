package report

import (
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// latencyPoint is one completed client operation.
type latencyPoint struct {
	at, latency time.Duration // of the completion; how long it took
	outcome     history.Type
	f           string
	index       int
}

// bucketStats is one time slice of the load.
type bucketStats struct {
	from, to           time.Duration
	ok, fail, info     int
	p50, p95, p99, max time.Duration // of the ok operations; 0 without any
}

// band is the time during which a fault was in force.
type band struct {
	name     string
	id       int
	target   []string
	from, to time.Duration
	effect   string
}

// series is what the plots are drawn from.
type series struct {
	end    time.Duration
	points []latencyPoint // in order of completion
	slices []bucketStats
	bands  []band
	errors []errorCount
}

// errorCount is how often an error text ended operations.
type errorCount struct {
	Outcome, F, Error string
	Count             int
	First             time.Duration
	Index             int
}

// slicesPerRun is how many time slices a run is cut into: fine enough to see a
// fault's edge, coarse enough that a quantile has operations to stand on.
const slicesPerRun = 120

func newSeries(h history.History) series {
	s := series{}
	errs := map[[3]string]*errorCount{}
	for _, op := range h.Ops() {
		if torndown(op) {
			break // nodes that are stopped one by one are no fault
		}
		s.end = max(s.end, op.Time)
	}
	for inv, done := range h.Pairs() {
		if !inv.Client() {
			continue
		}
		p := latencyPoint{at: done.Time, latency: done.Time - inv.Time, outcome: done.Type, f: inv.F, index: inv.Index}
		if done.Index <= inv.Index { // never completed
			p.at, p.latency, p.outcome = s.end, s.end-inv.Time, history.Info
		}
		s.points = append(s.points, p)
		if p.outcome != history.Ok {
			key := [3]string{p.outcome.String(), inv.F, done.Error}
			if errs[key] == nil {
				errs[key] = &errorCount{Outcome: key[0], F: inv.F, Error: done.Error, First: done.Time, Index: inv.Index}
			}
			errs[key].Count++
		}
	}
	slices.SortStableFunc(s.points, func(a, b latencyPoint) int { return int(a.at - b.at) })
	for _, e := range errs {
		s.errors = append(s.errors, *e)
	}
	slices.SortFunc(s.errors, func(a, b errorCount) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return a.Index - b.Index
	})
	s.slices = cut(s.points, s.end)
	s.bands = bands(h, s.end)
	return s
}

// torndown tells the line from which on the cluster is being stopped.
func torndown(op history.Op) bool {
	if op.Process != history.Observer || op.F != history.KindPhase {
		return false
	}
	phase, err := history.Decode[history.Phase](op)
	return err == nil && phase.Name == history.PhaseEnd
}

// cut gathers the points into equal time slices.
func cut(points []latencyPoint, end time.Duration) []bucketStats {
	if end == 0 {
		return nil
	}
	width := max(end/slicesPerRun, 100*time.Millisecond)
	n := int(end/width) + 1
	out := make([]bucketStats, n)
	oks := make([][]time.Duration, n)
	for i := range out {
		out[i].from, out[i].to = time.Duration(i)*width, time.Duration(i+1)*width
	}
	for _, p := range points {
		i := min(int(p.at/width), n-1)
		switch p.outcome {
		case history.Ok:
			out[i].ok++
			oks[i] = append(oks[i], p.latency)
		case history.Fail:
			out[i].fail++
		default:
			out[i].info++
		}
	}
	for i, l := range oks {
		if len(l) == 0 {
			continue
		}
		slices.Sort(l)
		out[i].p50, out[i].p95, out[i].p99, out[i].max = quantile(l, 0.5), quantile(l, 0.95), quantile(l, 0.99), l[len(l)-1]
	}
	return out
}

// quantile of a sorted, non-empty list.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// bands pairs the starts and ends of faults; a fault without an end lasts to
// the end of the run.
func bands(h history.History, end time.Duration) []band {
	var out []band
	open := map[int]int{} // schedule entry -> index into out
	for _, op := range h.Ops() {
		if op.Process != history.Observer || op.F != history.KindFault {
			continue
		}
		f, err := history.Decode[history.Fault](op)
		if err != nil {
			continue
		}
		if f.State == history.StateStart {
			open[f.ID] = len(out)
			out = append(out, band{name: f.Name, id: f.ID, target: f.Target, from: op.Time, to: end, effect: f.Effect})
			continue
		}
		if i, ok := open[f.ID]; ok {
			out[i].to = op.Time
			if f.Effect != "" {
				out[i].effect = f.Effect
			}
			delete(open, f.ID)
		}
	}
	return out
}

// thin keeps every point that is not Ok or is slow, and every n-th of the rest,
// so that at most about limit remain: a failing operation is never dropped
// before all Ok ones are.
func thin(points []latencyPoint, limit int) []latencyPoint {
	if len(points) <= limit {
		return points
	}
	var rare, common []latencyPoint
	for _, p := range points {
		if p.outcome != history.Ok {
			rare = append(rare, p)
		} else {
			common = append(common, p)
		}
	}
	room := max(limit-len(rare), limit/4)
	common = stride(common, room)
	rare = stride(rare, limit)
	out := append(rare, common...)
	slices.SortStableFunc(out, func(a, b latencyPoint) int { return int(a.at - b.at) })
	return out
}

// stride keeps n points evenly by position, and the slowest of each stretch.
func stride(points []latencyPoint, n int) []latencyPoint {
	if len(points) <= n || n <= 0 {
		return points
	}
	step := (len(points) + n - 1) / n
	out := make([]latencyPoint, 0, n)
	for i := 0; i < len(points); i += step {
		slowest := points[i]
		for _, p := range points[i:min(i+step, len(points))] {
			if p.latency > slowest.latency {
				slowest = p
			}
		}
		out = append(out, slowest)
	}
	return out
}
