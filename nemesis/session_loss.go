package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// The ways in which a session is lost.
const (
	howTakeover  = "takeover"   // the server closes it, at the word of a second connection
	howBlackHole = "black-hole" // no byte passes until it has expired by itself
)

// lossParams are those of a session loss.
type lossParams struct {
	How string `json:"how"`
	// Hold is how long a black hole lasts; zero is long enough for the session.
	Hold wait `json:"hold,omitempty"`
}

// sessionLoss is the ZooKeeper session that expires under a living process.
func sessionLoss() harness.Fault {
	return harness.Fault{
		Name: "zk-session-loss",
		Doc: "A node's ZooKeeper session expires for real while the process lives on: at once, because a second connection " +
			"takes it over and closes it, or by itself, behind a black hole between the node and ZooKeeper.",
		Supports: func(c cluster.Cluster) error {
			if _, ok := c.(cluster.SessionExpirer); !ok {
				return need("expire ZooKeeper sessions")
			}
			return nil
		},
		Draw: drawSessionLoss,
		New:  func(env harness.Env) harness.Nemesis { return &expirer{env} },
		Effects: func(o harness.Options) []checker.Effect {
			return []checker.Effect{
				{
					Event: history.KindSession, Where: map[string]string{"state": history.SessionExpired},
					Min: 1, OnTarget: true, After: 3 * time.Second,
				},
				{Overlap: overlap(o)},
			}
		},
	}
}

func drawSessionLoss(o harness.Options, r *rand.Rand, slots []harness.Slot) []harness.Entry {
	var out []harness.Entry
	for _, s := range slots {
		length := s.To - s.From
		at := between(r, s.From, s.From+length/10)
		hole := harness.Entry{
			ID: len(out), Trigger: harness.Trigger{At: at}, Target: harness.Target{Who: harness.WhoTablet},
			Params: encode(lossParams{How: howBlackHole}), Lease: 2 * sessionEnd(o),
		}
		who := []string{harness.WhoCoordinatorLeader, harness.WhoTablet, harness.WhoStandby}
		takeover := harness.Entry{
			ID:      len(out) + 1,
			Trigger: harness.Trigger{At: between(r, at, at+length/3)},
			Target:  harness.Target{Who: who[r.IntN(len(who))]},
			Params:  encode(lossParams{How: howTakeover}), Lease: 2 * sessionEnd(o),
		}
		if s.Round > 0 && r.IntN(3) == 0 {
			takeover.Target = harness.Target{Who: harness.WhoAny, Count: 2}
		}
		out = append(out, hole, takeover)
	}
	return out
}

type expirer struct{ env harness.Env }

type lost struct {
	Nodes []cluster.NodeID `json:"nodes"`
	How   string           `json:"how"`
}

// Invoke ends the targets' sessions and returns when each has noticed.
func (n *expirer) Invoke(ctx context.Context, e harness.Entry, w *harness.Window) (any, error) {
	p := lossParams{How: howTakeover}
	if err := decode(e, &p); err != nil {
		return nil, err
	}
	nodes, err := n.env.Resolve(ctx, e)
	if err != nil {
		return nil, err
	}
	seen := n.env.Watch(history.KindSession, map[string]string{"state": history.SessionExpired})
	defer seen.Close()
	w.Start(nodes...)
	switch p.How {
	case howTakeover:
		err = n.takeover(ctx, nodes)
	case howBlackHole:
		hold := time.Duration(p.Hold)
		if hold == 0 {
			hold = sessionEnd(n.env.Options)
		}
		err = n.blackHole(ctx, e, nodes, hold)
	default:
		err = cluster.Definite(fmt.Errorf("unknown how %q: want %s or %s", p.How, howTakeover, howBlackHole))
	}
	if err == nil {
		// The node learns of it when it reaches the server again; if it does not in
		// time, coverage will say so.
		_ = within(ctx, n.env, sessionEnd(n.env.Options), func(ctx context.Context) error { return seen.All(ctx, nodes) })
		err = settle(ctx, n.env)
	}
	w.End(fmt.Sprintf("%s of the session of %s", p.How, list(nodes)))
	return lost{Nodes: nodes, How: p.How}, err
}

func (n *expirer) takeover(ctx context.Context, nodes []cluster.NodeID) error {
	for _, id := range nodes {
		if err := n.env.Cluster.(cluster.SessionExpirer).ExpireSession(ctx, id); err != nil {
			if n.gone(id) || errors.Is(err, cluster.ErrNoSession) {
				continue // another fault took the process, or its session; coverage will say if it was always so
			}
			return fmt.Errorf("expire the session of %s: %w", id, err)
		}
	}
	return nil
}

// gone reports whether another fault has the node down.
func (n *expirer) gone(id cluster.NodeID) bool {
	killer, ok := n.env.Cluster.(cluster.Killer)
	return ok && !killer.Up(id)
}

func (n *expirer) blackHole(ctx context.Context, e harness.Entry, nodes []cluster.NodeID, hold time.Duration) error {
	release, err := holdZooKeeper(ctx, n.env, nodes, e.Lease)
	if err == nil {
		err = n.env.Host.Sleep(ctx, hold)
	}
	return errors.Join(err, release(ctx))
}

// holdZooKeeper cuts nodes from ZooKeeper until release is called; the gates
// keep the lease.
func holdZooKeeper(
	ctx context.Context, env harness.Env, nodes []cluster.NodeID, lease time.Duration,
) (release func(context.Context) error, err error) {
	var releases []cluster.Release
	release = env.Leases.Take("black hole", lease, func(ctx context.Context) error {
		var all error
		for _, r := range releases {
			all = errors.Join(all, r(ctx))
		}
		return all
	})
	for _, id := range nodes {
		r, err := env.Cluster.(cluster.SessionExpirer).HoldZooKeeper(ctx, id, lease) // Supports has seen it
		if err != nil {
			return release, fmt.Errorf("cut %s from ZooKeeper: %w", id, err)
		}
		releases = append(releases, r)
	}
	return release, nil
}

// Heal has nothing to do: the leases heal.
func (n *expirer) Heal(context.Context) error { return nil }
