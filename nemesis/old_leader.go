package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// The variants of the old leader.
const (
	// The old leader is cut from ZooKeeper until another leads, and comes back.
	variantReconnect = "reconnect"
	// Meanwhile, and while it comes back, both are asked to change tables.
	variantDual = "dual"
	// The cut falls into a tick of its creator of partitions: it wakes inside it.
	variantCreator = "creator"
)

// oldLeaderParams are those of the old leader.
type oldLeaderParams struct {
	Variant string `json:"variant"`
	// Linger is how long the cut goes on after another leads.
	Linger wait `json:"linger"`
}

// oldLeader is the coordinator that was replaced and does not know it.
func oldLeader() harness.Fault {
	return harness.Fault{
		Name: "old-leader",
		Doc: "The leading coordinator is cut from ZooKeeper until another leads; it still reaches the tablets, which may still " +
			"obey it; then it reconnects. Variants: both are asked to write at once; the old one wakes inside a tick of its " +
			"creator of partitions.",
		Supports: func(c cluster.Cluster) error {
			if _, ok := c.(cluster.SessionExpirer); !ok {
				return need("cut nodes from ZooKeeper")
			}
			if _, ok := c.(cluster.Leaders); !ok {
				return need("say who leads")
			}
			coordinators := 0
			for _, n := range c.Nodes() {
				if n.Role == cluster.RoleCoordinator {
					coordinators++
				}
			}
			if coordinators < 2 {
				return need("replace its coordinator: there is only one")
			}
			return nil
		},
		Draw: drawOldLeader,
		New:  func(env harness.Env) harness.Nemesis { return &usurper{env} },
		Effects: func(o harness.Options) []checker.Effect {
			return []checker.Effect{
				{Event: history.KindTerm, Where: map[string]string{"state": history.TermServing}, Min: 1, After: time.Second},
				{
					Event: history.KindSession, Where: map[string]string{"state": history.SessionExpired},
					Min: 1, OnTarget: true, After: 3 * time.Second,
				},
				{Overlap: overlap(o)},
			}
		},
	}
}

func drawOldLeader(o harness.Options, r *rand.Rand, slots []harness.Slot) []harness.Entry {
	var out []harness.Entry
	variants := []string{variantReconnect, variantDual, variantCreator}
	r.Shuffle(len(variants), func(i, j int) { variants[i], variants[j] = variants[j], variants[i] })
	for i, s := range slots {
		length := s.To - s.From
		out = append(out, harness.Entry{
			ID:      len(out),
			Trigger: harness.Trigger{At: between(r, s.From, s.From+length/10)},
			Target:  harness.Target{Who: harness.WhoCoordinatorLeader},
			Params:  encode(oldLeaderParams{Variant: variants[i%len(variants)], Linger: wait(between(r, 0, 2*time.Second))}),
			Lease:   3*sessionEnd(o) + 2*time.Second,
		})
	}
	return out
}

type usurper struct{ env harness.Env }

type usurped struct {
	Old     cluster.NodeID `json:"old"`
	New     cluster.NodeID `json:"new"`
	Variant string         `json:"variant"`
	DDL     []asked        `json:"ddl,omitempty"` // what both were asked for, and their answers
}

type asked struct {
	Node   cluster.NodeID `json:"node"`
	Table  string         `json:"table"`
	Answer string         `json:"answer"`
}

// Invoke cuts the leader from ZooKeeper, waits for another, and heals.
func (n *usurper) Invoke(ctx context.Context, e harness.Entry, w *harness.Window) (any, error) {
	p := oldLeaderParams{Variant: variantReconnect, Linger: wait(time.Second)}
	if err := decode(e, &p); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{variantReconnect, variantDual, variantCreator}, p.Variant) {
		return nil, cluster.Definite(fmt.Errorf("unknown variant %q", p.Variant))
	}
	nodes, err := n.env.Resolve(ctx, e)
	if err != nil {
		return nil, err
	}
	old := nodes[0]
	if p.Variant == variantCreator {
		n.awaitCreator(ctx, old)
	}
	did := usurped{Old: old, Variant: p.Variant}
	seen := n.env.Watch(history.KindSession, map[string]string{"state": history.SessionExpired})
	defer seen.Close()
	w.Start(old)
	err = n.replace(ctx, e, p, &did)
	if err == nil {
		_ = within(ctx, n.env, sessionEnd(n.env.Options), func(ctx context.Context) error { return seen.All(ctx, nodes) })
		err = settle(ctx, n.env)
	}
	w.End(fmt.Sprintf("%s was cut from ZooKeeper (%s) and replaced by %s", old, p.Variant, did.New))
	return did, err
}

// replace is the cut itself, from the black hole to its end.
func (n *usurper) replace(ctx context.Context, e harness.Entry, p oldLeaderParams, did *usurped) error {
	release, err := holdZooKeeper(ctx, n.env, []cluster.NodeID{did.Old}, e.Lease)
	if err != nil {
		return errors.Join(err, release(ctx))
	}
	ddl := n.startDDL(p)
	ddl.ask(did.Old) // decided while it leads, and written once it can
	did.New, err = n.successor(ctx, did.Old, e.Lease)
	if err == nil {
		ddl.ask(did.Old, did.New)
		err = n.env.Host.Sleep(ctx, time.Duration(p.Linger))
	}
	if errors.Is(err, harness.ErrNoTarget) {
		err = nil // nobody took over within the lease: coverage will say so
	}
	err = errors.Join(err, release(ctx))
	did.DDL = ddl.wait(ctx)
	return err
}

// successor waits until ZooKeeper names another leader than old.
func (n *usurper) successor(ctx context.Context, old cluster.NodeID, lease time.Duration) (cluster.NodeID, error) {
	var next cluster.NodeID
	err := within(ctx, n.env, lease, func(ctx context.Context) error {
		for {
			leader, err := n.env.Cluster.(cluster.Leaders).Coordinator(ctx) // Supports has seen it
			if err == nil && leader != "" && leader != old {
				next = leader
				return nil
			}
			if n.env.Host.Sleep(ctx, 50*time.Millisecond) != nil {
				return harness.ErrNoTarget
			}
		}
	})
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return next, err
}

// creatorTime is how long the creator's tick is waited for; a system without
// one, or whose ticks are rarer, gets the plain cut.
const creatorTime = 5 * time.Second

// awaitCreator returns when the coordinator is about to create a partition, or
// when waiting longer is not worth it.
func (n *usurper) awaitCreator(ctx context.Context, id cluster.NodeID) {
	if n.env.World == nil {
		return
	}
	_ = within(ctx, n.env, creatorTime, func(ctx context.Context) error {
		return n.env.AwaitGate(ctx, harness.Gate{API: "zookeeper/multi", From: id, Path: "/partitions/"})
	})
}

// Heal has nothing to do: the leases heal.
func (n *usurper) Heal(context.Context) error { return nil }
