package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// term is one coordinator's stay in office, named by its process and the zxid of
// the transaction that opened it, never by the epoch that it claims.
type term struct {
	Coordinator string
	Zxid        int64
	Session     int64
	Epoch       int64
	From        time.Duration // when it was reported as elected
	To          time.Duration // when it was fenced or resigned, else the end
	State       string        // the last one reported
	Reason      string
	Line        int
}

func (t term) String() string {
	return fmt.Sprintf("%s's term of zxid %d (claimed epoch %d, session 0x%x)", t.Coordinator, t.Zxid, t.Epoch, uint64(t.Session))
}

// terms are a run's terms in the order in which ZooKeeper opened them.
type terms []term

// newTerms reads the term events. A term is known by its first event, whatever
// its state; later events of the same (coordinator, zxid) only end it.
func newTerms(h history.History) (terms, error) {
	events, err := history.Events[history.Term](h)
	if err != nil {
		return nil, err
	}
	type name struct {
		coordinator string
		zxid        int64
	}
	var list terms
	at := map[name]int{}
	for _, e := range events {
		if e.Event.Zxid <= 0 {
			continue // not opened by any transaction: nothing can be ordered by it
		}
		n := name{e.Event.Coordinator, e.Event.Zxid}
		i, known := at[n]
		if !known {
			i = len(list)
			at[n] = i
			list = append(list, term{
				Coordinator: n.coordinator, Zxid: n.zxid, Session: e.Event.Session, Epoch: e.Event.Epoch,
				From: e.Op.Time, To: h.End(), Line: e.Op.Index,
			})
		}
		list[i].State, list[i].Reason = e.Event.State, e.Event.Reason
		if list[i].Session == 0 {
			list[i].Session = e.Event.Session
		}
		if e.Event.State == history.TermFenced || e.Event.State == history.TermResigned {
			list[i].To = e.Op.Time
		}
	}
	slices.SortStableFunc(list, func(a, b term) int { return cmp.Compare(a.Zxid, b.Zxid) })
	return list, nil
}

// before is the number of terms that began at or before a zxid.
func (t terms) before(zxid int64) int {
	n, _ := slices.BinarySearchFunc(t, zxid, func(t term, zxid int64) int { return cmp.Or(cmp.Compare(t.Zxid, zxid), -1) })
	return n
}

// of is the term that a transaction of a session belongs to: the last one that
// the session had opened by then. A session that opened none belongs to its
// process: the last term that the process had opened.
func (t terms) of(node string, session, zxid int64) (int, bool) {
	byNode := -1
	for i := t.before(zxid) - 1; i >= 0; i-- {
		if t[i].Session == session && session != 0 {
			return i, true
		}
		if t[i].Coordinator == node && byNode < 0 {
			byNode = i
		}
	}
	return byNode, byNode >= 0
}

// named is the term with this coordinator and zxid, or one that has no more than
// its name if no event told of it.
func (t terms) named(coordinator string, zxid int64) term {
	for _, x := range t {
		if x.Zxid == zxid && x.Coordinator == coordinator {
			return x
		}
	}
	return term{Coordinator: coordinator, Zxid: zxid, Line: -1}
}

// later is the newest term that had begun below a zxid, if it is a later one
// than t[i].
func (t terms) later(i int, zxid int64) (term, bool) {
	for n := t.before(zxid) - 1; n > i; n-- {
		if t[n].Zxid < zxid {
			return t[n], true
		}
	}
	return term{}, false
}

// supersededAt is the first term after one that began at a zxid, by the clock.
func (t terms) supersededAt(zxid int64, at time.Duration) (term, bool) {
	for _, x := range t {
		if x.Zxid > zxid && x.From <= at {
			return x, true
		}
	}
	return term{}, false
}
