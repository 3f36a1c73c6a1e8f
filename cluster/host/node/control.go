package node

import (
	"context"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
)

// control is the Host of the control node.
type control struct {
	*Process
	endpoints map[cluster.NodeID]*Process
}

var _ host.Control = (*control)(nil)

// newControl makes the control node, up from the start and for good.
func newControl(c *Core) *control {
	p := c.newPort(ControlID, c.cfg.Kernel(ControlID))
	p.proc = p.newProcess()
	return &control{Process: p.proc, endpoints: make(map[cluster.NodeID]*Process)}
}

// Endpoint is a Host with a name of its own; the same name has the same one.
func (c *control) Endpoint(id cluster.NodeID) host.Host {
	c.Alive()
	if e := c.endpoints[id]; e != nil {
		return e
	}
	p := c.port.core.newPort(id, c.port.k)
	p.incarnations++
	p.proc = p.processOf(c.Group)
	c.endpoints[id] = p.proc
	return p.proc
}

// Block runs f outside the kernel.
func (c *control) Block(ctx context.Context, name string, f func(context.Context) error) error {
	c.Alive()
	return c.port.core.cfg.Block(ctx, name, f)
}

// Await parks until complete is called.
func (c *control) Await(ctx context.Context, name string, start func(complete func(any))) (any, error) {
	c.Alive()
	return kernel.Await(ctx, name, start)
}
