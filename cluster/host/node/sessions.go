package node

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// Sessions opens the ZooKeeper sessions of a world's nodes. The real-time world
// has one over go-zookeeper and a gated dialer, the simulation one over the
// znode state machine.
//
// How a session parks a task: kernel.Await(ctx, what, start), or a kernel.Slot
// or kernel.Cond of p.Group(). A wait under a context ends with ctx.Err() when
// the context does; whatever completes later is ignored.
//
// How an event from elsewhere enters the node: p.Kernel().Post(kernel.Func(f))
// from any goroutine, or kernel timers (p.Kernel().After) in simulation. F runs
// inside the kernel, must not park, and may Broadcast, Wake and so on. After
// the incarnation died f may still run; Broadcasts then do nothing.
//
// How it is closed: whatever must end with the incarnation (a connection, a
// goroutine) is given to p.Group().OnDead *before the first park* of Dial, for
// a kill unwinds the task in the middle of it. OnDead's function runs inside
// the kernel and must not block: it shuts the gate and leaves the rest to a
// goroutine that Sessions.Close waits for.
//
// Who reports: the session layer alone emits history.Session and history.Txn,
// by p.Emit (or Env.Observe where no process is at hand).
type Sessions interface {
	// Dial opens a session for a process; it is called by a task of p.
	Dial(ctx context.Context, p *Process, o host.SessionOptions) (host.Session, error)
	// Control is the harness's hand on the sessions of a node. It is called
	// often, also for nodes that never dial; the same node has the same one. Its
	// methods are called by tasks of the control node (Expire parks by
	// kernel.Await on its context) and, for Hold and its Undo, inside the kernel
	// of the node that is being paused. On a wall clock these are different
	// goroutines.
	Control(id cluster.NodeID) host.SessionControl
	// Close ends everything and waits for every goroutine. Every node is down.
	Close() error
}

// Env is what a Sessions is made with.
type Env struct {
	Seed uint64
	Log  *zap.Logger
	// Now is the world's clock, from any goroutine of the world.
	Now func() time.Duration
	// Observe reports an event of a node with the time at which it happened; on
	// a wall clock from any goroutine.
	Observe func(node cluster.NodeID, e history.Event)
}

// NoSessions is a world without ZooKeeper: Dial fails, faults do nothing.
type NoSessions struct{}

// Dial answers that nothing can be reached.
func (NoSessions) Dial(context.Context, *Process, host.SessionOptions) (host.Session, error) {
	return nil, host.ErrNotSent
}

// Control is a hand on nothing.
func (NoSessions) Control(cluster.NodeID) host.SessionControl { return noControl{} }

// Close does nothing.
func (NoSessions) Close() error { return nil }

type noControl struct{}

func (noControl) Expire(context.Context, host.ExpireMode) error       { return cluster.ErrUnsupported }
func (noControl) Hold(time.Duration) host.Undo                        { return func() {} }
func (noControl) Delay(time.Duration, time.Duration) host.Undo        { return func() {} }
func (noControl) CutBefore(string, time.Duration) host.Undo           { return func() {} }
func (noControl) CutAfter(string, time.Duration) host.Undo            { return func() {} }
func (noControl) DelayWatches(time.Duration, time.Duration) host.Undo { return func() {} }
func (noControl) Tap(func(host.ZKPassing)) host.Undo                  { return func() {} }
func (noControl) Current() int64                                      { return 0 }
