package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/history"
)

// Aim adds aimed faults to a drawn schedule: of each entry of single nodes,
// with some probability, a copy that follows a protocol event (a coordinator
// was elected or took office, a leader was admitted or is being activated, an
// ISR changed) within milliseconds or seconds and hits a node that the event
// concerns. The drawn entries stay: it is their aftermath that brings the
// events. Pure; every draw is from the seed's own stream.
func Aim(o Options, schedule []Entry) []Entry {
	r := Stream(o.Seed, "aim")
	out := slices.Clone(schedule)
	next := 0
	for _, e := range schedule {
		next = max(next, e.ID+1)
	}
	for _, e := range schedule {
		events := aimed(e.Target)
		if len(events) == 0 || o.TimeLimit-e.Trigger.At < 2*time.Second {
			continue
		}
		for range r.IntN(3) {
			event := events[r.IntN(len(events))]
			hit := e
			hit.ID, hit.Target = next, Target{Who: WhoConcerned}
			hit.Trigger = Trigger{
				At: e.Trigger.At, Event: event.kind, Where: maps.Clone(event.where), Skip: r.IntN(event.burst), Wait: soon(r),
			}
			out = append(out, hit)
			next++
		}
	}
	return renumber(out)
}

// moment is a kind of protocol event; burst is how many of it come at a time.
type moment struct {
	kind  string
	where map[string]string
	burst int
}

// aimed are the events whose nodes have the role that a target asks for.
func aimed(t Target) []moment {
	if t.Count != 0 {
		return nil
	}
	switch t.Who {
	case WhoCoordinatorLeader, WhoStandby, WhoCoordinator:
		return []moment{
			{history.KindTerm, map[string]string{"state": history.TermElected}, 1}, // it has taken the epoch
			{history.KindTerm, map[string]string{"state": history.TermServing}, 1},
			{history.KindTerm, map[string]string{"state": history.TermFenced}, 1},
		}
	case WhoTablet, WhoBucketLeader, WhoBucketFollower:
		return []moment{
			{history.KindRole, map[string]string{"state": history.RoleAdmitted}, 8},
			{history.KindRole, map[string]string{"state": history.RoleActivating}, 8},
			{history.KindRole, map[string]string{"state": history.RoleFollowing}, 8},
			{history.KindLAI, nil, 8},
			{history.KindEpochStart, nil, 8},
			{history.KindTruncate, nil, 2},
			{history.KindReady, nil, 1},
		}
	}
	return nil
}

// soon draws how long after its event a fault comes: mostly milliseconds, at
// times seconds.
func soon(r *rand.Rand) time.Duration {
	if r.IntN(4) == 0 {
		return time.Duration(r.IntN(3000)) * time.Millisecond
	}
	return time.Duration(r.IntN(1<<(1+r.IntN(8)))) * time.Millisecond
}

// concerned are the nodes that an event is about, in the cluster's order: a
// coordinator of its own term; of what is said of a bucket, the tablets.
func (e Env) concerned(op history.Op) []cluster.NodeID {
	var about struct {
		Coordinator string `json:"coordinator"`
		Node        string `json:"node"`
		Server      *int   `json:"server"`
		Leader      *int   `json:"leader"`
		ISR         []int  `json:"isr"`
	}
	if json.Unmarshal(op.Value, &about) != nil {
		return nil
	}
	ids := about.ISR
	for _, id := range []*int{about.Server, about.Leader} {
		if id != nil {
			ids = append(ids, *id)
		}
	}
	names := map[cluster.NodeID]bool{cluster.NodeID(about.Coordinator): true, cluster.NodeID(about.Node): true}
	for _, id := range ids {
		names[cluster.NodeID(fmt.Sprintf("tablet-%d", id))] = true
	}
	if len(ids) == 0 {
		names[cluster.NodeID(op.Node)] = true
	}
	var out []cluster.NodeID
	for _, n := range e.Cluster.Nodes() {
		if names[n.ID] {
			out = append(out, n.ID)
		}
	}
	return out
}

// skipping accepts what match does, but for the first n.
func skipping(n int, match func(history.Op) bool) func(history.Op) bool {
	if n == 0 {
		return match
	}
	return func(op history.Op) bool {
		if match != nil && !match(op) {
			return false
		}
		n--
		return n < 0
	}
}
