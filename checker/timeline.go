package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// timeline answers for any moment who led a bucket, by ZooKeeper and by the
// servers themselves, and which faults were in force. Stories are told with it.
type timeline struct {
	lais       map[string][]history.Record[history.LAI]
	admissions map[string][]admission
	faults     []faultWindow
	end        time.Duration
}

// admission is a stretch in which a server would have served as leader.
type admission struct {
	Bucket      string
	Server      int
	Epoch       int
	Incarnation int64
	From, To    time.Duration
	Line        int  // index of the event
	Ended       bool // an event ended it; To is the end of the history otherwise
	Lost        bool // it ended with its process
}

// faultWindow is a fault from start to end.
type faultWindow struct {
	history.Fault
	From, To time.Duration
	Line     int
	EndLine  int // -1 if it never ended
}

func newTimeline(h history.History) (*timeline, error) {
	t := &timeline{lais: map[string][]history.Record[history.LAI]{}, end: h.End()}
	lais, err := history.Events[history.LAI](h)
	if err != nil {
		return nil, err
	}
	for _, e := range lais {
		t.lais[e.Event.Bucket] = append(t.lais[e.Event.Bucket], e)
	}
	if t.admissions, err = admissions(h); err != nil {
		return nil, err
	}
	t.faults, err = faultWindows(h)
	return t, err
}

// serverOf is the integer id in a tablet's node name "tablet-3".
func serverOf(node string) (int, bool) {
	number, ok := strings.CutPrefix(node, "tablet-")
	id, err := strconv.Atoi(number)
	return id, ok && err == nil
}

// admissions follows the role events of every (bucket, server): an admission
// lasts until the server's next role, or until its process is gone.
func admissions(h history.History) (map[string][]admission, error) {
	out := map[string][]admission{}
	type seat struct {
		bucket string
		server int
	}
	open := map[seat]int{} // index into out[bucket]
	end := func(s seat, at time.Duration, lost bool) {
		if i, ok := open[s]; ok {
			a := &out[s.bucket][i]
			a.To, a.Ended, a.Lost = at, true, lost
			delete(open, s)
		}
	}
	gone := func(server int, at time.Duration) {
		for s := range open { // order does not matter: each ends for itself
			if s.server == server {
				end(s, at, true)
			}
		}
	}
	for _, op := range h.Ops() {
		if op.Process != history.Observer {
			continue
		}
		switch op.F {
		case history.KindRole:
			e, err := history.Decode[history.Role](op)
			if err != nil {
				return nil, err
			}
			s := seat{e.Bucket, e.Server}
			end(s, op.Time, false)
			if e.State == history.RoleAdmitted {
				open[s] = len(out[e.Bucket])
				out[e.Bucket] = append(out[e.Bucket], admission{
					Bucket: e.Bucket, Server: e.Server, Epoch: e.LeaderEpoch, Incarnation: e.Incarnation,
					From: op.Time, To: h.End(), Line: op.Index,
				})
			}
		case history.KindNode:
			e, err := history.Decode[history.Node](op)
			if err != nil {
				return nil, err
			}
			server, ok := serverOf(e.Node)
			if ok && (e.State == history.NodeDown || e.State == history.NodePanicked || e.State == history.NodeUp) {
				gone(server, op.Time)
			}
		}
	}
	return out, nil
}

// faultWindows pairs the starts and ends of faults by (name, id). One that never
// ends lasts to the end of the history.
func faultWindows(h history.History) ([]faultWindow, error) {
	events, err := history.Events[history.Fault](h)
	if err != nil {
		return nil, err
	}
	var out []faultWindow
	for _, e := range events {
		if e.Event.State == history.StateStart {
			out = append(out, faultWindow{Fault: e.Event, From: e.Op.Time, To: h.End(), Line: e.Op.Index, EndLine: -1})
			continue
		}
		for i := range out {
			w := &out[i]
			if w.EndLine < 0 && w.Name == e.Event.Name && w.ID == e.Event.ID {
				w.To, w.EndLine = e.Op.Time, e.Op.Index
				if e.Event.Effect != "" {
					w.Effect = e.Event.Effect
				}
				for _, node := range e.Event.Target {
					if !slices.Contains(w.Target, node) {
						w.Target = append(w.Target, node)
					}
				}
				break
			}
		}
	}
	return out, nil
}

// lai is the newest LeaderAndIsr of a bucket that ZooKeeper was known to hold.
func (t *timeline) lai(bucket string, at time.Duration) (history.LAI, bool) {
	list := t.lais[bucket]
	i, _ := slices.BinarySearchFunc(list, at, func(e history.Record[history.LAI], at time.Duration) int {
		if e.Op.Time <= at {
			return -1
		}
		return 1
	})
	if i == 0 {
		return history.LAI{}, false
	}
	return list[i-1].Event, true
}

// leaders says in words who led the bucket at a moment.
func (t *timeline) leaders(bucket string, at time.Duration) string {
	if bucket == "" {
		return ""
	}
	text := "ZooKeeper named nobody"
	if lai, ok := t.lai(bucket, at); ok && lai.Leader >= 0 {
		text = fmt.Sprintf("ZooKeeper named tablet %d at leader epoch %d, ISR %v", lai.Leader, lai.LeaderEpoch, lai.ISR)
	}
	var serving []string
	for _, a := range t.admissions[bucket] {
		if a.From <= at && (at < a.To || !a.Ended) {
			serving = append(serving, fmt.Sprintf("tablet %d at leader epoch %d", a.Server, a.Epoch))
		}
	}
	if len(serving) == 0 {
		serving = []string{"nobody"}
	}
	return fmt.Sprintf("at %s leader of %s: %s; serving: %s", seconds(at), bucket, text, strings.Join(serving, ", "))
}

// inForce says in words which faults overlapped a stretch.
func (t *timeline) inForce(from, to time.Duration) string {
	var names []string
	for _, f := range t.faults {
		if f.From <= to && f.To >= from {
			names = append(names, fmt.Sprintf("%s #%d on %s", f.Name, f.ID, strings.Join(f.Target, ", ")))
		}
	}
	if len(names) == 0 {
		return "no fault in force"
	}
	return "faults in force: " + strings.Join(names, "; ")
}

// seconds writes a moment of the run as people read it in the report.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// sortedKeys gives a map's keys in order, for output that is the same each time.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
