package harness

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
)

// Entry is one fault of a schedule: when, what, whom, how, how long. Schedules
// are written before the run, can be edited by hand, and are replayed. In JSON
// its times are words like "1.5s".
type Entry struct {
	ID      int
	Fault   string
	Trigger Trigger
	Target  Target
	Params  json.RawMessage // the fault's own, an object
	// Lease bounds the fault's duration in any case.
	Lease time.Duration
	// concerned are the nodes that the trigger's event is about; see WhoConcerned.
	concerned []cluster.NodeID
}

// Trigger says when an entry starts. At is a time since the start of the load;
// Ops a number of completed client operations; Event an observer event. All
// that are set must hold; events and gates count only after the others hold,
// the gate last.
type Trigger struct {
	At    time.Duration
	Ops   int
	Event string            // its kind
	Where map[string]string // fields of the event, as text; "*" matches any
	Skip  int               // how many such events pass first
	// Gate is a message, or a request to ZooKeeper, on its way.
	Gate *Gate
	// Wait is how long after all of that the entry starts.
	Wait time.Duration
	// AfterFault starts the entry when the entry with this ID has ended.
	AfterFault *int
}

// Gate matches what passes a gate of the world: a message between nodes, or a
// request of a node to ZooKeeper. Empty fields match all.
type Gate struct {
	// API is the name of the message, as in NotifyLeaderAndIsr, or zookeeper/ and
	// an operation, as in zookeeper/multi; zookeeper/* matches any.
	API  string         `json:"api"`
	From cluster.NodeID `json:"from,omitempty"`
	To   cluster.NodeID `json:"to,omitempty"`   // not for ZooKeeper
	Path string         `json:"path,omitempty"` // a part of a path, for ZooKeeper
	// Reply waits for the answer on its way back instead of the request.
	Reply bool `json:"reply,omitempty"`
}

// Target selects nodes by role at the moment of injection.
type Target struct {
	// Who is one of the Who constants.
	Who    string           `json:"who"`
	Count  int              `json:"count,omitempty"` // how many of them: 0 = one, -1 = all
	Nodes  []cluster.NodeID `json:"nodes,omitempty"` // for who = node
	Table  string           `json:"table,omitempty"` // for bucket-…, empty: the workload's
	Bucket int              `json:"bucket,omitempty"`
}

// The roles that a Target can name.
const (
	WhoCoordinatorLeader = "coordinator-leader" // the coordinator in office
	WhoStandby           = "standby"            // coordinators that are not
	WhoCoordinator       = "coordinator"        // any coordinator
	WhoTablet            = "tablet"             // any tablet server
	WhoBucketLeader      = "bucket-leader"
	WhoBucketFollower    = "bucket-follower"
	WhoMinority          = "minority" // of the tablets
	WhoMajority          = "majority" // of the tablets
	WhoAny               = "any"      // any node
	WhoNode              = "node"     // those in Nodes
	// WhoConcerned are the nodes that the trigger's event is about: the one that
	// reported it, and the tablets that it names.
	WhoConcerned = "concerned"
)

func whoKnown(who string) bool {
	switch who {
	case WhoCoordinatorLeader, WhoStandby, WhoCoordinator, WhoTablet, WhoBucketLeader, WhoBucketFollower,
		WhoMinority, WhoMajority, WhoAny, WhoNode, WhoConcerned:
		return true
	}
	return false
}

// Layout of a drawn schedule: a start without faults, so that the run has a
// base line; an end without new ones, so that the last can be healed under load.
const (
	leadIn   = 2 * time.Second
	slotGoal = 7 * time.Second // one fault and the recovery from it
)

// DrawSchedule plans a run's faults. The load's time is cut into slots, each
// fault gets one in every round, in an order drawn anew; what happens in it is
// the fault's own draw, from its own stream. In the first round faults leave each
// other alone, so that each has its effect; later ones may overlap.
func DrawSchedule(o Options, faults []Fault) []Entry {
	if len(faults) == 0 {
		return nil
	}
	slots := layout(o, len(faults))
	var entries []Entry
	for i, f := range faults {
		for _, e := range f.Draw(o, Stream(o.Seed, "fault/"+f.Name), slots[i]) {
			e.Fault = f.Name
			e.ID += 1000 * i // AfterFault speaks of the fault's own numbers
			if e.Trigger.AfterFault != nil {
				after := *e.Trigger.AfterFault + 1000*i
				e.Trigger.AfterFault = &after
			}
			entries = append(entries, e)
		}
	}
	return renumber(entries)
}

// layout gives every fault its slots, in order of time.
func layout(o Options, faults int) [][]Slot {
	r := Stream(o.Seed, "layout")
	from := min(leadIn, o.TimeLimit/10)
	to := o.TimeLimit - from
	rounds := max(1, int((to-from)/(slotGoal*time.Duration(faults))))
	length := (to - from) / time.Duration(rounds*faults)
	out := make([][]Slot, faults)
	for round := range rounds {
		for place, fault := range r.Perm(faults) {
			s := Slot{From: from + length*time.Duration(round*faults+place), Round: round}
			s.To = s.From + length
			if round > 0 && r.IntN(3) == 0 {
				s.From -= length / 2 // into the fault before: they meet
			}
			out[fault] = append(out[fault], s)
		}
	}
	return out
}

// renumber gives the entries ids in order of time.
func renumber(entries []Entry) []Entry {
	sortEntries(entries)
	ids := make(map[int]int, len(entries))
	for i, e := range entries {
		ids[e.ID] = i
	}
	for i := range entries {
		entries[i].ID = i
		if after := entries[i].Trigger.AfterFault; after != nil {
			id := ids[*after]
			entries[i].Trigger.AfterFault = &id
		}
	}
	return entries
}

// Planned is what coverage asks of a schedule: every fault that has entries,
// with its effects, in at least one window.
func Planned(o Options, faults []Fault, schedule []Entry) []checker.PlannedFault {
	out := []checker.PlannedFault{}
	for _, f := range faults {
		planned := false
		for _, e := range schedule {
			planned = planned || e.Fault == f.Name
		}
		if planned {
			out = append(out, checker.PlannedFault{Name: f.Name, Effects: f.Effects(o), Min: 1})
		}
	}
	return out
}

// ValidateSchedule refuses a schedule that cannot run, naming the entry.
func ValidateSchedule(entries []Entry, faults []Fault) error {
	known := map[string]bool{}
	for _, f := range faults {
		known[f.Name] = true
	}
	ids := map[int]bool{}
	for _, e := range entries {
		if ids[e.ID] {
			return fmt.Errorf("entry %d: the id stands twice", e.ID)
		}
		ids[e.ID] = true
	}
	for _, e := range entries {
		if !known[e.Fault] {
			return fmt.Errorf("entry %d: unknown fault %q", e.ID, e.Fault)
		}
		if err := e.validate(ids); err != nil {
			return fmt.Errorf("entry %d (%s): %w", e.ID, e.Fault, err)
		}
	}
	return noCycle(entries)
}

func (e Entry) validate(ids map[int]bool) error {
	t := e.Trigger
	switch {
	case e.Lease <= 0:
		return fmt.Errorf("lease %v: want a positive duration", e.Lease)
	case t.At < 0 || t.Ops < 0 || t.Wait < 0 || t.Skip < 0:
		return fmt.Errorf("trigger: at, ops, skip and wait cannot be negative")
	case t.Event == "" && len(t.Where) > 0:
		return fmt.Errorf("trigger: where without an event")
	case t.Event == "" && t.Skip > 0:
		return fmt.Errorf("trigger: skip without an event")
	case t.Event == "" && e.Target.Who == WhoConcerned:
		return fmt.Errorf("target: who = concerned needs a trigger with an event")
	case t.Gate != nil && (t.Gate.API == "" || t.Gate.Path != "" && !t.Gate.zookeeper()):
		return fmt.Errorf("trigger: a gate needs an api, and path goes with zookeeper/… only")
	case t.AfterFault != nil && !ids[*t.AfterFault]:
		return fmt.Errorf("trigger: after_fault %d is no entry", *t.AfterFault)
	case !whoKnown(e.Target.Who):
		return fmt.Errorf("target: unknown who %q", e.Target.Who)
	case e.Target.Who == WhoNode && len(e.Target.Nodes) == 0:
		return fmt.Errorf("target: who = node needs nodes")
	case e.Target.Count < -1:
		return fmt.Errorf("target: count %d: want -1 for all, 0 or 1 for one, or more", e.Target.Count)
	case len(e.Params) > 0 && !json.Valid(e.Params):
		return fmt.Errorf("params are no JSON")
	}
	return nil
}

// noCycle refuses entries that wait for each other.
func noCycle(entries []Entry) error {
	after := map[int]int{}
	for _, e := range entries {
		if e.Trigger.AfterFault != nil {
			after[e.ID] = *e.Trigger.AfterFault
		}
	}
	for _, e := range entries {
		id, steps := e.ID, 0
		for next, waits := after[id]; waits; next, waits = after[id] {
			if id = next; steps > len(entries) || id == e.ID {
				return fmt.Errorf("entry %d: after_fault leads back to itself", e.ID)
			}
			steps++
		}
	}
	return nil
}
