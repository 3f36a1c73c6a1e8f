package node

import (
	"context"
	"math/rand/v2"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
)

// control is the Host of the control node.
type control struct {
	*Process
	endpoints map[cluster.NodeID]*endpoint
}

var _ host.Control = (*control)(nil)

// newControl makes the control node, up from the start and for good.
func newControl(c *Core) *control {
	p := c.newPort(ControlID, c.cfg.Kernel(ControlID))
	p.proc = p.newProcess()
	return &control{Process: p.proc, endpoints: make(map[cluster.NodeID]*endpoint)}
}

// Endpoint is a Host with a name of its own; the same name has the same one.
func (c *control) Endpoint(id cluster.NodeID) host.Host {
	if e := c.endpoints[id]; e != nil {
		return e
	}
	e := &endpoint{
		Process: c.Process,
		port:    c.port.core.newPort(id, c.port.k),
		rand:    c.port.core.stream("node/" + string(id) + "/1"),
		log:     c.port.log(id),
	}
	c.endpoints[id] = e
	return e
}

// Block runs f outside the kernel.
func (c *control) Block(ctx context.Context, name string, f func(context.Context) error) error {
	c.Alive()
	return c.port.core.cfg.Block(ctx, name, f)
}

func (p *port) log(id cluster.NodeID) *zap.Logger { return p.core.cfg.Log.Named(string(id)) }

// endpoint is a name in the network whose tasks are the control node's.
type endpoint struct {
	*Process
	port *port
	rand *rand.Rand
	log  *zap.Logger
}

// ID names the endpoint.
func (e *endpoint) ID() cluster.NodeID { return e.port.id }

// Rand is the endpoint's own stream.
func (e *endpoint) Rand() *rand.Rand { return e.rand }

// Log is the endpoint's logger.
func (e *endpoint) Log() *zap.Logger { return e.log }

// Observe reports an event of the endpoint.
func (e *endpoint) Observe(ev history.Event) {
	if !e.Dead() {
		e.port.core.observe(e.port.id, ev)
	}
}

// Call sends a message in the endpoint's name.
func (e *endpoint) Call(ctx context.Context, to cluster.NodeID, m host.Message) (host.Message, error) {
	return e.port.call(ctx, to, m)
}

// Serve panics: an endpoint only calls.
func (e *endpoint) Serve(host.Handler) { panic("host: an endpoint cannot serve: " + string(e.port.id)) }

// Await parks until complete is called.
func (c *control) Await(ctx context.Context, name string, start func(complete func(any))) (any, error) {
	c.Alive()
	return kernel.Await(ctx, name, start)
}
