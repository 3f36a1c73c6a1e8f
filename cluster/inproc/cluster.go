// Package inproc puts the in-process cluster together: coordinators, tablets
// and clients in one process, each against a Host of its own, and everything
// that faults may do to them. Which decisions they take is a Policy, into which
// bugs are planted.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/client"
	"github.com/fencepost-dev/fencepost/cluster/inproc/coordinator"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/inproc/tablet"
)

// observerID is the endpoint of the cluster's own questions, so that a fault on
// the links of clients does not blind it.
const observerID cluster.NodeID = "observer"

// Config is the shape of a cluster. The zero value of a field takes its default.
type Config struct {
	Coordinators int // 3
	Tablets      int // 3
	Policy       protocol.Policy
	// SessionTimeout is that of every node's ZooKeeper session, 4 s.
	SessionTimeout time.Duration
	// Recovery is the extra time of a KV tablet's restore inside activation, per
	// bucket; RecoveryPerRecord adds to it by the length of the changelog.
	// LogRecovery is that of a tablet's log recovery before it registers.
	Recovery, RecoveryPerRecord, LogRecovery time.Duration
	ClientTimes                              client.Times
	TabletTiming                             tablet.Timing
	CoordinatorTiming                        coordinator.Timing
}

func (c Config) withDefaults() Config {
	if c.Coordinators == 0 {
		c.Coordinators = 3
	}
	if c.Tablets == 0 {
		c.Tablets = 3
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 4 * time.Second
	}
	return c
}

// Validate says what is wrong with the shape, or nil.
func (c Config) Validate() error {
	switch {
	case c.Coordinators < 0 || c.Tablets < 0:
		return errors.New("a cluster needs at least one coordinator and one tablet")
	case c.SessionTimeout < 0 || c.Recovery < 0 || c.RecoveryPerRecord < 0 || c.LogRecovery < 0:
		return errors.New("durations of a cluster must not be negative")
	case c.Policy == (protocol.Policy{}):
		return errors.New("the policy is empty: start from protocol.Sound or Plan")
	}
	return nil
}

// Cluster is the in-process cluster. Its methods are called by tasks of the
// control node.
type Cluster struct {
	world   host.World
	control host.Control
	cfg     Config
	infos   []cluster.NodeInfo
	nodes   map[cluster.NodeID]host.Node
	knobs   map[cluster.NodeID]*tablet.Knobs
	slow    map[cluster.NodeID]*slowness
	obs     *observer
}

// The cluster and what faults may ask of it.
var (
	_ cluster.Cluster        = (*Cluster)(nil)
	_ cluster.Killer         = (*Cluster)(nil)
	_ cluster.Stopper        = (*Cluster)(nil)
	_ cluster.Pauser         = (*Cluster)(nil)
	_ cluster.SessionExpirer = (*Cluster)(nil)
	_ cluster.Leaders        = (*Cluster)(nil)
	_ cluster.RecoverySlower = (*Cluster)(nil)
	_ cluster.Readier        = (*Cluster)(nil)
	_ cluster.Converger      = (*Cluster)(nil)
)

// New declares the nodes of a cluster in a world; none runs before Start. It
// must be called by a task of the control node.
func New(world host.World, cfg Config) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("build cluster: %w", err)
	}
	cfg = cfg.withDefaults()
	c := &Cluster{
		world: world, control: world.Control(), cfg: cfg,
		nodes: map[cluster.NodeID]host.Node{}, knobs: map[cluster.NodeID]*tablet.Knobs{}, slow: map[cluster.NodeID]*slowness{},
	}
	for i := range cfg.Coordinators {
		id := cluster.NodeID(fmt.Sprintf("coordinator-%d", i))
		c.declare(cluster.NodeInfo{ID: id, Role: cluster.RoleCoordinator, Server: -1}, coordinator.New(coordinator.Config{
			Policy: cfg.Policy.Coordinator, SessionTimeout: cfg.SessionTimeout, Timing: cfg.CoordinatorTiming,
		}))
	}
	for i := range cfg.Tablets {
		id := tablet.NodeOf(i)
		knobs := &tablet.Knobs{}
		c.knobs[id] = knobs
		c.slow[id] = &slowness{}
		c.applyRecovery(id)
		c.declare(cluster.NodeInfo{ID: id, Role: cluster.RoleTablet, Server: i}, tablet.New(tablet.Config{
			Server: i, Policy: cfg.Policy.Tablet, SessionTimeout: cfg.SessionTimeout, Knobs: knobs, Timing: cfg.TabletTiming,
		}))
	}
	c.obs = newObserver(c)
	return c, nil
}

func (c *Cluster) declare(info cluster.NodeInfo, main host.Main) {
	c.infos = append(c.infos, info)
	c.nodes[info.ID] = c.world.NewNode(info.ID, main)
}

// Nodes lists the coordinators and then the tablets.
func (c *Cluster) Nodes() []cluster.NodeInfo { return append([]cluster.NodeInfo(nil), c.infos...) }

// tablets lists the tablets.
func (c *Cluster) tablets() []cluster.NodeInfo { return c.infos[c.cfg.Coordinators:] }

// coordinators lists the coordinators.
func (c *Cluster) coordinators() []cluster.NodeInfo { return c.infos[:c.cfg.Coordinators] }

// Start starts every node and returns when one coordinator is in office and
// every tablet knows it and all tablets: a table can be created and written.
func (c *Cluster) Start(ctx context.Context) error {
	for _, info := range c.infos {
		if err := c.nodes[info.ID].Start(ctx); err != nil {
			return fmt.Errorf("start %s: %w", info.ID, err)
		}
	}
	return c.obs.await(ctx, "cluster to start", c.obs.started)
}

// Stop ends every node: in good order if it takes no longer than a moment, by
// force otherwise.
func (c *Cluster) Stop(ctx context.Context) error {
	const grace = 3 * time.Second
	c.obs.close(ctx)
	var errs []error
	for _, info := range slices.Backward(c.infos) { // tablets before the coordinators that they report to
		n := c.nodes[info.ID]
		if !n.Up() {
			continue
		}
		_ = n.Resume(ctx) // a paused node cannot stop; one that is not paused does not mind
		attempt, cancel := c.control.WithTimeout(ctx, grace)
		_ = n.Stop(attempt) // what does not stop is killed
		cancel()
		if n.Up() {
			errs = append(errs, n.Kill(ctx))
		}
	}
	return errors.Join(errs...)
}

// Dial opens a connection of the client of that name. Node is the tablet to ask
// first, or empty.
func (c *Cluster) Dial(_ context.Context, name, node cluster.NodeID) (cluster.Conn, error) {
	process := -1
	if _, number, ok := strings.Cut(string(name), "client-"); ok {
		if n, err := strconv.Atoi(number); err == nil {
			process = n
		}
	}
	return client.New(c.control.Endpoint(name), client.Config{
		Policy: c.cfg.Policy.Client, Tablets: c.tablets(), Prefer: node, Process: process, Times: c.cfg.ClientTimes,
	}), nil
}

func (c *Cluster) node(id cluster.NodeID) (host.Node, error) {
	n, ok := c.nodes[id]
	if !ok {
		return nil, cluster.Definite(fmt.Errorf("no node %q in the cluster", id))
	}
	return n, nil
}
