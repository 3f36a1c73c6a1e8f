// Package node is what the two worlds share: the Host that a node sees, the
// life of its process, the links between nodes with their gates, and the
// disks. A world gives it kernels (one for all nodes, or one each), a clock and
// ZooKeeper sessions.
package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/gate"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
)

// ControlID names the control node.
const ControlID cluster.NodeID = "control"

// Config is what a world gives.
type Config struct {
	Seed uint64
	Log  *zap.Logger
	// Now is the world's clock.
	Now func() time.Duration
	// Kernel makes, or returns, the kernel of a node. The world runs it.
	Kernel func(id cluster.NodeID) *kernel.Kernel
	// Observe is the sink of events, called where they happen; may be nil.
	Observe func(node cluster.NodeID, at time.Duration, e history.Event)
	// Latency and Jitter are those of a hop between two nodes: Latency, plus up
	// to Jitter, uniform.
	Latency, Jitter time.Duration
	// HeavyTail makes one hop in twenty slow: at least a millisecond more, twice
	// as much half as often, up to a second.
	HeavyTail bool
	Disk      DiskCosts
	// Block runs a function of Control.Block.
	Block func(ctx context.Context, name string, f func(context.Context) error) error
}

// Core is the nodes of a world and what is between them.
type Core struct {
	cfg      Config
	gate     *gate.Gate
	sessions Sessions
	control  *control

	mu       sync.RWMutex
	ports    map[cluster.NodeID]*port
	order    []*port // of their making
	findings []host.Finding
}

// NewCore makes the control node's process and no other. Sessions is told the
// environment and gives the ZooKeeper sessions.
func NewCore(cfg Config, sessions func(Env) Sessions) *Core {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	c := &Core{cfg: cfg, ports: make(map[cluster.NodeID]*port)}
	c.gate = gate.New(cfg.Now, c.gateChanged)
	c.sessions = sessions(Env{Seed: cfg.Seed, Log: cfg.Log.Named("zookeeper"), Now: cfg.Now, Observe: c.observe})
	c.control = newControl(c)
	return c
}

// Control is the control node.
func (c *Core) Control() host.Control { return c.control }

// OnControlGone calls f if the control node dies: by a panic of one of its
// tasks, or by Exit. It is called before Run.
func (c *Core) OnControlGone(f func(error)) {
	g := c.control.Group
	g.OnGone(func() {
		err := g.ExitErr()
		if err == nil {
			err = errControlEnded
		}
		f(err)
	})
}

var errControlEnded = errors.New("the control node ended before its main task")

// Network is the harness's hand on the links.
func (c *Core) Network() host.Network { return c.gate }

// ZooKeeper is the harness's hand on a node's sessions.
func (c *Core) ZooKeeper(id cluster.NodeID) host.SessionControl { return c.sessions.Control(id) }

// CloseSessions closes the sessions, after every node has gone.
func (c *Core) CloseSessions() error { return c.sessions.Close() }

// Findings lists what went wrong in the nodes so far.
func (c *Core) Findings() []host.Finding {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return append([]host.Finding(nil), c.findings...)
}

// Find records a finding.
func (c *Core) Find(f host.Finding) {
	c.mu.Lock()
	c.findings = append(c.findings, f)
	c.mu.Unlock()
	c.cfg.Log.Error("finding", zap.String("node", string(f.Node)), zap.Duration("at", f.At), zap.String("detail", f.Detail))
}

// Kernels lists the kernels of all nodes, the control node's first.
func (c *Core) Kernels() []*kernel.Kernel {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []*kernel.Kernel
	seen := make(map[*kernel.Kernel]bool)
	for _, p := range c.order {
		if !seen[p.k] {
			seen[p.k] = true
			all = append(all, p.k)
		}
	}
	return all
}

// NewNode declares a node; it is down until Start.
func (c *Core) NewNode(id cluster.NodeID, main host.Main) host.Node {
	p := c.newPort(id, c.cfg.Kernel(id))
	return &Node{port: p, main: main}
}

// Disk is the harness's hand on a node's disk.
func (c *Core) Disk(id cluster.NodeID) host.DiskControl {
	p := c.find(id)
	if p == nil {
		panic("host: no node " + string(id))
	}
	return p.disk
}

func (c *Core) newPort(id cluster.NodeID, k *kernel.Kernel) *port {
	p := &port{core: c, id: id, k: k, links: make(map[cluster.NodeID]*link), rand: c.stream("network/" + string(id))}
	p.disk = newDisk(c.stream("disk/"+string(id)), c.cfg.Disk, c.cfg.Now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ports[id] != nil {
		panic("host: node declared twice: " + string(id))
	}
	c.ports[id] = p
	c.order = append(c.order, p)
	return p
}

func (c *Core) find(id cluster.NodeID) *port {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ports[id]
}

func (c *Core) stream(name string) *rand.Rand { return kernel.Stream(c.cfg.Seed, name) }

func (c *Core) observe(id cluster.NodeID, e history.Event) {
	if c.cfg.Observe != nil {
		c.cfg.Observe(id, c.cfg.Now(), e)
	}
}

// Panicked is the OnPanic of every kernel of the world.
func (c *Core) Panicked(g *kernel.Group, p kernel.Panic) {
	id := cluster.NodeID(g.Name())
	c.Find(host.Finding{Node: id, At: c.cfg.Now(), Detail: p.Error()})
	c.observe(id, history.Node{Node: string(id), State: history.NodePanicked, Error: p.Error()})
}

// gateChanged has every port look again at what it holds.
func (c *Core) gateChanged() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, p := range c.order {
		p.k.Post(kernel.Func(p.reconsider))
	}
}

// newProcess makes the process of a port, inside its kernel.
func (p *port) newProcess() *Process {
	p.incarnations++
	return p.processOf(p.k.NewGroup(string(p.id)))
}

// processOf makes the process of a port whose tasks are those of a group.
func (p *port) processOf(g *kernel.Group) *Process {
	proc := &Process{
		Group:  g,
		port:   p,
		inc:    p.incarnations,
		rand:   p.core.stream(fmt.Sprintf("node/%s/%d", p.id, p.incarnations)),
		log:    p.core.cfg.Log.Named(string(p.id)),
		orders: make(map[cluster.NodeID]*kernel.Order),
	}
	proc.stopped = proc.MakeCond()
	proc.OnDead(proc.died)
	return proc
}
