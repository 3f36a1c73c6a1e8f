package checker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/history"
)

// admitWindows gives for every (bucket, leader epoch, leader) that was
// advertised the stretch until it was admitted. One that never was ends where a
// higher leader epoch of the bucket was admitted, or with the history.
func admitWindows(h history.History, refusals []refusal) ([]AdmitWindow, error) {
	ads, err := history.Events[history.Advertised](h)
	if err != nil {
		return nil, err
	}
	roles, err := history.Events[history.Role](h)
	if err != nil {
		return nil, err
	}
	windows := map[place]*AdmitWindow{}
	var order []place
	for _, ad := range ads {
		e := ad.Event
		p := place{e.Bucket, e.Leader, e.LeaderEpoch}
		if e.Leader < 0 || windows[p] != nil {
			continue
		}
		windows[p] = &AdmitWindow{
			Bucket: e.Bucket, LeaderEpoch: e.LeaderEpoch, Leader: e.Leader, By: e.By,
			Advertised: int64(ad.Op.Time), Admitted: int64(h.End()), Open: true,
		}
		order = append(order, p)
	}
	for _, role := range roles {
		e := role.Event
		if e.State != history.RoleAdmitted {
			continue
		}
		if w := windows[place{e.Bucket, e.Server, e.LeaderEpoch}]; w != nil && (w.Open || int64(role.Op.Time) < w.Admitted) {
			w.Admitted, w.Open = int64(role.Op.Time), false
		}
	}
	superseded(windows, order, roles)
	for _, r := range refusals {
		if w := windows[r.place]; w != nil && r.cause == premature {
			w.Premature++
		}
	}
	out := make([]AdmitWindow, 0, len(order))
	for _, p := range order {
		w := *windows[p]
		w.Width = max(w.Admitted-w.Advertised, 0)
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b AdmitWindow) int {
		return cmp.Or(cmp.Compare(b.Width, a.Width), strings.Compare(a.Bucket, b.Bucket), cmp.Compare(a.LeaderEpoch, b.LeaderEpoch))
	})
	return out, nil
}

// superseded closes windows that never saw their admission at the first
// admission of a higher leader epoch after they opened.
func superseded(windows map[place]*AdmitWindow, order []place, roles []history.Record[history.Role]) {
	byBucket := map[string][]history.Record[history.Role]{}
	for _, role := range roles {
		if role.Event.State == history.RoleAdmitted {
			byBucket[role.Event.Bucket] = append(byBucket[role.Event.Bucket], role)
		}
	}
	for _, p := range order {
		w := windows[p]
		if !w.Open {
			continue
		}
		for _, role := range byBucket[p.bucket] {
			if role.Event.LeaderEpoch > p.epoch && int64(role.Op.Time) >= w.Advertised {
				w.Admitted = int64(role.Op.Time)
				break
			}
		}
	}
}

// readyWindows follows each life of a server from its registration until it has
// admitted every bucket that ZooKeeper then names it leader of.
func readyWindows(h history.History) ([]ReadyWindow, error) {
	f := readyFollower{leader: map[string]history.LAI{}, lives: map[int]*life{}, out: []ReadyWindow{}}
	for _, op := range h.Ops() {
		if op.Process != history.Observer {
			continue
		}
		if err := f.see(op); err != nil {
			return nil, err
		}
	}
	for _, server := range sortedKeys(f.lives) {
		f.close(server, int64(h.End()))
	}
	slices.SortStableFunc(f.out, func(a, b ReadyWindow) int {
		return cmp.Or(cmp.Compare(a.Ready, b.Ready), cmp.Compare(a.Server, b.Server))
	})
	return f.out, nil
}

// life is a server between its registration and its last pending bucket.
type life struct {
	window   ReadyWindow
	pending  map[string]bool
	admitted map[string]int // bucket -> leader epoch admitted in this life
	last     int64
}

type readyFollower struct {
	leader map[string]history.LAI
	lives  map[int]*life
	out    []ReadyWindow
}

func (f *readyFollower) see(op history.Op) error {
	switch op.F {
	case history.KindReady:
		e, err := history.Decode[history.Ready](op)
		if err != nil {
			return err
		}
		f.close(e.Server, int64(op.Time))
		l := &life{pending: map[string]bool{}, admitted: map[string]int{}}
		l.window = ReadyWindow{Server: e.Server, Incarnation: e.Incarnation, Ready: int64(op.Time)}
		f.lives[e.Server] = l
		for bucket, lai := range f.leader { // a set is filled: order does not matter
			if lai.Leader == e.Server {
				l.pending[bucket] = true
			}
		}
	case history.KindLAI:
		e, err := history.Decode[history.LAI](op)
		if err != nil {
			return err
		}
		f.leader[e.Bucket] = e
		for _, server := range sortedKeys(f.lives) {
			l := f.lives[server]
			admitted, ok := l.admitted[e.Bucket]
			if e.Leader == server && (!ok || admitted < e.LeaderEpoch) {
				l.pending[e.Bucket] = true
			} else {
				delete(l.pending, e.Bucket)
			}
			f.settle(server)
		}
	case history.KindRole:
		e, err := history.Decode[history.Role](op)
		if err != nil || e.State != history.RoleAdmitted {
			return err
		}
		if l := f.lives[e.Server]; l != nil {
			l.admitted[e.Bucket] = e.LeaderEpoch
			l.last = int64(op.Time)
			l.window.Buckets++
			delete(l.pending, e.Bucket)
			f.settle(e.Server)
		}
	case history.KindFault:
		// What an idle server is elected to after another fault has other reasons.
		for _, server := range sortedKeys(f.lives) {
			if l := f.lives[server]; l.window.Buckets == 0 && len(l.pending) == 0 {
				f.close(server, l.window.Ready)
			}
		}
	case history.KindNode:
		e, err := history.Decode[history.Node](op)
		if err != nil {
			return err
		}
		if server, ok := serverOf(e.Node); ok && (e.State == history.NodeDown || e.State == history.NodePanicked) {
			f.close(server, int64(op.Time))
		}
	}
	return nil
}

// settle ends a life's window once it has admitted something and nothing is
// pending any more: what it is elected to later has other reasons.
func (f *readyFollower) settle(server int) {
	if l := f.lives[server]; l.window.Buckets > 0 && len(l.pending) == 0 {
		f.close(server, l.last)
	}
}

func (f *readyFollower) close(server int, at int64) {
	l := f.lives[server]
	if l == nil {
		return
	}
	delete(f.lives, server)
	w := l.window
	w.LastAdmitted = l.last
	if len(l.pending) > 0 {
		w.Open, w.LastAdmitted = true, at
	}
	if w.Buckets == 0 && !w.Open {
		w.LastAdmitted = w.Ready
	}
	w.Took = w.LastAdmitted - w.Ready
	f.out = append(f.out, w)
}

// fillWindows puts each bucket's longest window into its row. Buckets without a
// refusal have no row, and need none.
func fillWindows(d *StormData) {
	for i := range d.Buckets {
		row := &d.Buckets[i]
		for _, w := range d.Windows { // longest first
			if w.Bucket == row.Bucket {
				row.Window, row.WindowEpoch = w.Width, w.LeaderEpoch
				break
			}
		}
	}
}
