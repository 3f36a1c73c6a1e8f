package inproc

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

// Kill ends a node's process at once; what its disk has synced survives.
func (c *Cluster) Kill(ctx context.Context, id cluster.NodeID) error {
	return c.on(ctx, "kill", id, host.Node.Kill)
}

// PowerLoss kills a node and loses what its disk has not synced.
func (c *Cluster) PowerLoss(ctx context.Context, id cluster.NodeID) error {
	return c.on(ctx, "cut the power of", id, host.Node.PowerLoss)
}

// StartNode starts a node that is down.
func (c *Cluster) StartNode(ctx context.Context, id cluster.NodeID) error {
	return c.on(ctx, "start", id, host.Node.Start)
}

// Up reports whether a node's process runs; a paused one does.
func (c *Cluster) Up(id cluster.NodeID) bool {
	n, ok := c.nodes[id]
	return ok && n.Up()
}

// Shutdown asks a node to end in good order and waits for it.
func (c *Cluster) Shutdown(ctx context.Context, id cluster.NodeID) error {
	return c.on(ctx, "stop", id, host.Node.Stop)
}

// Pause stops a node from running, and its ZooKeeper session from being kept
// alive, until Resume or the lease's end.
func (c *Cluster) Pause(ctx context.Context, id cluster.NodeID, lease time.Duration) error {
	return c.on(ctx, "pause", id, func(n host.Node, ctx context.Context) error { return n.Pause(ctx, lease) })
}

// Resume lets a paused node run on.
func (c *Cluster) Resume(ctx context.Context, id cluster.NodeID) error {
	return c.on(ctx, "resume", id, host.Node.Resume)
}

func (c *Cluster) on(ctx context.Context, what string, id cluster.NodeID, do func(host.Node, context.Context) error) error {
	n, err := c.node(id)
	if err != nil {
		return err
	}
	if err := do(n, ctx); err != nil {
		return fmt.Errorf("%s %s: %w", what, id, err)
	}
	return nil
}

// ExpireSession ends a node's ZooKeeper session at the server, by taking it over.
func (c *Cluster) ExpireSession(ctx context.Context, id cluster.NodeID) error {
	if _, err := c.node(id); err != nil {
		return err
	}
	if err := c.world.ZooKeeper(id).Expire(ctx, host.ByTakeover); err != nil {
		return fmt.Errorf("expire the session of %s: %w", id, err)
	}
	return nil
}

// HoldZooKeeper is a black hole between a node and ZooKeeper.
func (c *Cluster) HoldZooKeeper(_ context.Context, id cluster.NodeID, lease time.Duration) (cluster.Release, error) {
	if _, err := c.node(id); err != nil {
		return nil, err
	}
	undo := c.world.ZooKeeper(id).Hold(lease)
	return func(context.Context) error {
		undo()
		return nil
	}, nil
}

// slowness is what slow recoveries are in force on a tablet. They do not add up:
// the longest holds.
type slowness struct{ leases []*slowLease }

type slowLease struct{ perBucket, log time.Duration }

// SlowRecovery lengthens the recoveries of a tablet until the lease ends.
func (c *Cluster) SlowRecovery(
	ctx context.Context, id cluster.NodeID, perBucket, log, lease time.Duration,
) (cluster.Release, error) {
	s := c.slow[id]
	if s == nil {
		return nil, cluster.Definite(fmt.Errorf("slow the recovery of %q: not a tablet of the cluster", id))
	}
	l := &slowLease{perBucket: perBucket, log: log}
	s.leases = append(s.leases, l)
	c.applyRecovery(id)
	end := func() {
		for i, have := range s.leases {
			if have == l {
				s.leases = append(s.leases[:i:i], s.leases[i+1:]...)
				c.applyRecovery(id)
				return
			}
		}
	}
	// The lease ends by its own clock, whoever asked for it: it outlives ctx.
	timer, cancel := c.control.WithCancel(c.control.Context())
	c.control.Go(timer, "slow recovery of "+string(id), func(ctx context.Context) {
		_ = c.control.Sleep(ctx, lease) // ended early or in time, it is over
		end()
	})
	return func(context.Context) error {
		end()
		cancel()
		return nil
	}, ctx.Err()
}

// applyRecovery turns a tablet's knobs.
func (c *Cluster) applyRecovery(id cluster.NodeID) {
	perBucket, log := c.cfg.Recovery, c.cfg.LogRecovery
	for _, l := range c.slow[id].leases {
		perBucket, log = max(perBucket, l.perBucket), max(log, l.log)
	}
	knobs := c.knobs[id]
	knobs.PerBucket.Set(perBucket)
	knobs.Log.Set(log)
	knobs.PerRecord.Set(c.cfg.RecoveryPerRecord)
}
