package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/cluster/host/node"
)

// ZooKeeperConfig describes the simulated ZooKeeper. The zero value is one
// server close by.
type ZooKeeperConfig struct {
	// Latency and Jitter are those of one way between a node and the server,
	// Latency + [0, Jitter). Both zero mean 100 µs + 400 µs.
	Latency, Jitter time.Duration
	// Commit is what a write takes at the server before anyone sees it; zero
	// means 500 µs, negative nothing.
	Commit time.Duration
	// Tick is the granularity of session expiry; zero means 500 ms. Sessions last
	// between 2 and 20 ticks.
	Tick time.Duration
}

// zkSim is the simulated ZooKeeper with all its clients: the node.Sessions of a
// simulated world. Everything below runs inside the world's one kernel.
//
// What is simulated is a server with a real state machine (minizk/tree), a TCP
// stream for each connection, the gate of each node at its client's end, and
// the client library as tamed for real nodes: docs/protocol.md 4 and what is known of
// go-zookeeper in its reconnects, pings, time-outs and watches.
type zkSim struct {
	env    node.Env
	cfg    ZooKeeperConfig
	k      *kernel.Kernel
	wire   *rand.Rand // latencies
	server *zkServer
	gates  map[cluster.NodeID]*zkGate
}

// newSessions makes the ZooKeeper sessions of a world.
func newSessions(env node.Env, cfg ZooKeeperConfig, k *kernel.Kernel) *zkSim {
	if cfg.Latency == 0 && cfg.Jitter == 0 {
		cfg.Latency, cfg.Jitter = 100*time.Microsecond, 400*time.Microsecond
	}
	cfg.Latency = max(cfg.Latency, time.Microsecond)
	if cfg.Commit == 0 {
		cfg.Commit = 500 * time.Microsecond
	}
	cfg.Commit = max(cfg.Commit, 0)
	if cfg.Tick <= 0 {
		cfg.Tick = 500 * time.Millisecond
	}
	z := &zkSim{
		env: env, cfg: cfg, k: k, wire: kernel.Stream(env.Seed, "zookeeper/latency"),
		gates: map[cluster.NodeID]*zkGate{},
	}
	z.server = newZKServer(z)
	return z
}

// hop draws the latency of one way.
func (z *zkSim) hop() time.Duration {
	if z.cfg.Jitter <= 0 {
		return z.cfg.Latency
	}
	return z.cfg.Latency + time.Duration(z.wire.Int64N(int64(z.cfg.Jitter)))
}

func (z *zkSim) gate(id cluster.NodeID) *zkGate {
	g := z.gates[id]
	if g == nil {
		g = &zkGate{zk: z, node: id}
		z.gates[id] = g
	}
	return g
}

// Dial opens a session and parks until the server has granted it. It tries
// until ctx ends.
func (z *zkSim) Dial(ctx context.Context, p *node.Process, o host.SessionOptions) (host.Session, error) {
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	c := &zkClient{
		zk: z, gate: z.gate(p.ID()), group: p.Group, changed: p.MakeCond(), asked: timeout,
	}
	c.gate.clients = append(c.gate.clients, c)
	p.OnDead(c.kill) // before the first park
	c.connect()
	for c.state == host.Disconnected {
		if err := c.changed.Wait(ctx); err != nil {
			c.finish(host.Closed)
			return nil, err
		}
	}
	if c.state != host.Connected {
		return nil, zkNotSent(c.state)
	}
	return c, nil
}

// Control is the harness's hand on the sessions of a node.
func (z *zkSim) Control(id cluster.NodeID) host.SessionControl { return z.gate(id) }

// Close has nothing to wait for.
func (z *zkSim) Close() error { return nil }

// StopZooKeeper takes the simulated ZooKeeper server down, with all its
// connections, until the lease ends or Undo is called; a lease of zero lasts
// until its Undo. What it had committed stays. Sessions do not age meanwhile:
// a server that comes back grants every session its whole time-out again.
func (w *World) StopZooKeeper(lease time.Duration) host.Undo {
	if w.zk == nil {
		return func() {}
	}
	return w.zk.server.stop(lease)
}
