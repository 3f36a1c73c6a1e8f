package node

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
)

// Process is one incarnation of a node: the Host that its tasks see.
type Process struct {
	*kernel.Group // Go, Sleep, WithTimeout, WithCancel, Context, Exit

	port     *port
	inc      int
	rand     *rand.Rand
	log      *zap.Logger
	handler  host.Handler
	orders   map[cluster.NodeID]*kernel.Order // starts of calls, by caller
	inflight callList
	stopping bool
	stopped  *kernel.Cond
}

var _ host.Host = (*Process)(nil)

// ID names the node.
func (p *Process) ID() cluster.NodeID { return p.port.id }

// Incarnation counts the starts of the node, from 1.
func (p *Process) Incarnation() int { return p.inc }

// Now is the node's clock: that of the world, unless it is skewed.
func (p *Process) Now() time.Duration {
	now := p.port.core.cfg.Now()
	if s := p.port.skew; s != nil {
		return now + s.jump + time.Duration(s.rate*float64(now-s.since))
	}
	return now
}

// Rand is the incarnation's own stream.
func (p *Process) Rand() *rand.Rand { return p.rand }

// Log is the node's logger.
func (p *Process) Log() *zap.Logger { return p.log }

// NewCond returns a condition of this process.
func (p *Process) NewCond() host.Cond { return p.MakeCond() }

// Stopping reports whether a graceful stop was asked for.
func (p *Process) Stopping() bool { return p.stopping }

// AwaitStop parks until a graceful stop is asked for.
func (p *Process) AwaitStop(ctx context.Context) error {
	for !p.stopping {
		if err := p.stopped.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Serve answers calls from now on.
func (p *Process) Serve(h host.Handler) {
	if p.Dead() {
		return
	}
	p.handler = h
}

// Dial opens a ZooKeeper session.
func (p *Process) Dial(ctx context.Context, o host.SessionOptions) (host.Session, error) {
	p.Alive()
	return p.port.core.sessions.Dial(ctx, p, o)
}

// Disk is the node's disk.
func (p *Process) Disk() host.Disk { return procDisk{p} }

// Observe reports an event, unless the process is dead.
func (p *Process) Observe(e history.Event) {
	if p.Dead() {
		return
	}
	p.Emit(e)
}

// Emit reports an event of the node whether or not the process lives; on a
// wall clock from any goroutine.
func (p *Process) Emit(e history.Event) { p.port.core.observe(p.port.id, e) }
