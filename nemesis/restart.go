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

// The ways in which a process goes down.
const (
	modeGraceful  = "graceful"
	modeKill      = "kill"
	modePowerLoss = "power-loss"
)

// restartParams are those of a restart.
type restartParams struct {
	Mode string `json:"mode"`
	Down wait   `json:"down"` // how long a node stays down
	// Rolling takes the nodes one after the other and waits for each to be ready,
	// or serving, as Options.RollOn says.
	Rolling bool `json:"rolling,omitempty"`
}

// restart is the pod that restarts.
func restart() harness.Fault {
	return harness.Fault{
		Name: "restart",
		Doc: "Processes go down and come back: gracefully, by kill -9, or by power loss, which loses what was not synced; " +
			"one, several, or all in turn (rolling); tablets, the leading coordinator, standbys, or all.",
		Supports: func(c cluster.Cluster) error {
			if _, ok := c.(cluster.Killer); !ok {
				return need("kill and start nodes")
			}
			return nil
		},
		Draw: drawRestart,
		New:  func(env harness.Env) harness.Nemesis { return &restarter{env: env} },
		Effects: func(o harness.Options) []checker.Effect {
			return []checker.Effect{
				{Event: history.KindNode, Where: map[string]string{"state": history.NodeDown}, Min: 1, OnTarget: true},
				{Event: history.KindNode, Where: map[string]string{"state": history.NodeUp}, Min: 1, OnTarget: true, After: time.Second},
				{Overlap: overlap(o)},
			}
		},
	}
}

func drawRestart(o harness.Options, r *rand.Rand, slots []harness.Slot) []harness.Entry {
	var out []harness.Entry
	add := func(at time.Duration, t harness.Target, p restartParams, lease time.Duration) {
		out = append(out, harness.Entry{
			ID: len(out), Trigger: harness.Trigger{At: at}, Target: t, Params: encode(p), Lease: lease,
		})
	}
	modes := []string{modeKill, modePowerLoss, modeGraceful}
	for _, s := range slots {
		length := s.To - s.From
		at := between(r, s.From, s.From+length/10)
		down := between(r, 200*time.Millisecond, max(300*time.Millisecond, length/4))
		p := restartParams{Mode: modes[r.IntN(len(modes))], Down: wait(down)}
		lease := length + sessionEnd(o) + o.LogRecovery
		switch what := r.IntN(8); {
		case what < 3: // one tablet, and perhaps the coordinator meanwhile
			add(at, aBucketsLeader(o, r), p, lease)
			if r.IntN(2) == 0 {
				add(between(r, at, at+down), harness.Target{Who: harness.WhoCoordinatorLeader}, restartParams{Mode: modeKill, Down: p.Down}, lease)
			}
		case what < 5: // a rolling restart is done in good order
			p.Mode, p.Rolling, p.Down = modeGraceful, true, wait(between(r, 100*time.Millisecond, 300*time.Millisecond))
			add(at, harness.Target{Who: harness.WhoTablet, Count: -1}, p, lease)
		case what < 6:
			add(at, harness.Target{Who: harness.WhoMinority}, p, lease)
		case what < 7:
			add(at, harness.Target{Who: harness.WhoCoordinatorLeader}, p, lease)
			add(at+down, aBucketsLeader(o, r), restartParams{Mode: modeKill, Down: p.Down}, lease)
		case s.Round == 0: // the first time, something that leaves the cluster in service
			add(at, harness.Target{Who: harness.WhoStandby}, p, lease)
			add(at, harness.Target{Who: harness.WhoTablet}, p, lease)
		default:
			add(at, harness.Target{Who: harness.WhoAny, Count: -1}, p, lease)
		}
	}
	return out
}

type restarter struct{ env harness.Env }

// restarted is what the history holds of a restart.
type restarted struct {
	Nodes []cluster.NodeID `json:"nodes"`
	Mode  string           `json:"mode"`
	// Late are nodes that were not ready again within the lease.
	Late []cluster.NodeID `json:"late,omitempty"`
}

// Invoke takes the targets down and up again, and returns when they are ready.
func (n *restarter) Invoke(ctx context.Context, e harness.Entry, w *harness.Window) (any, error) {
	p := restartParams{Mode: modeKill, Down: wait(time.Second)}
	if err := decode(e, &p); err != nil {
		return nil, err
	}
	nodes, err := n.env.Resolve(ctx, e)
	if err != nil {
		return nil, err
	}
	did := restarted{Nodes: nodes, Mode: p.Mode}
	w.Start(nodes...)
	groups := [][]cluster.NodeID{nodes}
	if p.Rolling {
		groups = groups[:0]
		for _, id := range nodes {
			groups = append(groups, []cluster.NodeID{id})
		}
	}
	for _, group := range groups {
		var late []cluster.NodeID
		if late, err = n.bounce(ctx, e, p, group); err != nil {
			break
		}
		did.Late = append(did.Late, late...)
	}
	if err == nil {
		err = settle(ctx, n.env)
	}
	w.End(fmt.Sprintf("%s of %s", p.Mode, list(nodes)))
	return did, err
}

// bounce takes nodes down together and starts them again, each under a lease.
// It returns those that were not ready when the time was over.
func (n *restarter) bounce(
	ctx context.Context, e harness.Entry, p restartParams, nodes []cluster.NodeID,
) (late []cluster.NodeID, err error) {
	var ends []func(context.Context) error
	up := func() {
		for _, end := range slices.Backward(ends) {
			err = errors.Join(err, end(ctx))
		}
		ends = nil
	}
	for _, id := range nodes {
		ends = append(ends, n.env.Leases.Take("restart of "+string(id), e.Lease, func(ctx context.Context) error { return n.start(ctx, id) }))
		if err = n.down(ctx, p.Mode, id); err != nil {
			err = fmt.Errorf("take %s down: %w", id, err)
			up()
			return nil, err
		}
	}
	err = n.env.Host.Sleep(ctx, time.Duration(p.Down))
	up()
	if err != nil {
		return nil, err
	}
	return n.ready(ctx, e, p, nodes)
}

// gracefulTime is what a node gets to end in good order before it is killed, as
// a container is.
const gracefulTime = 10 * time.Second

func (n *restarter) down(ctx context.Context, mode string, id cluster.NodeID) error {
	killer := n.env.Cluster.(cluster.Killer) // Supports has seen it
	if !killer.Up(id) {
		return nil
	}
	switch mode {
	case modePowerLoss:
		return killer.PowerLoss(ctx, id)
	case modeKill:
		return killer.Kill(ctx, id)
	case modeGraceful:
		stopper, ok := n.env.Cluster.(cluster.Stopper)
		if !ok {
			return killer.Kill(ctx, id)
		}
		err := within(ctx, n.env, gracefulTime, func(ctx context.Context) error { return stopper.Shutdown(ctx, id) })
		if killer.Up(id) {
			return killer.Kill(ctx, id)
		}
		if ctx.Err() == nil && err != nil {
			n.env.Log.Sugar().Debugf("graceful stop of %s: %v", id, err)
		}
		return nil
	}
	return cluster.Definite(fmt.Errorf("unknown mode %q: want graceful, kill or power-loss", mode))
}

func (n *restarter) start(ctx context.Context, id cluster.NodeID) error {
	killer := n.env.Cluster.(cluster.Killer)
	if killer.Up(id) {
		return nil
	}
	return killer.StartNode(ctx, id)
}

// ready waits until the nodes are back, for no longer than the lease.
func (n *restarter) ready(
	ctx context.Context, e harness.Entry, p restartParams, nodes []cluster.NodeID,
) (late []cluster.NodeID, err error) {
	readier, ok := n.env.Cluster.(cluster.Readier)
	if !ok {
		return nil, nil
	}
	await := readier.AwaitReady
	if p.Rolling && n.env.Options.RollOn == harness.RollOnServing {
		await = readier.AwaitServing
	}
	for _, id := range nodes {
		if within(ctx, n.env, e.Lease, func(ctx context.Context) error { return await(ctx, id) }) != nil {
			late = append(late, id)
		}
		if ctx.Err() != nil {
			return late, ctx.Err()
		}
	}
	return late, nil
}

// Heal has nothing to do: the leases start what is down.
func (n *restarter) Heal(context.Context) error { return nil }
