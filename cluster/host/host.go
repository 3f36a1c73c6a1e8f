// Package host is all that a node may know of the outside.
//
// A node is straight-line code against one Host. It is single-threaded: its
// tasks interleave only inside Host calls, so node code needs no lock, no
// channel, no go statement, no clock, no recover, no context constructor and
// no unsorted range over a map. The same node code runs in real time (package
// real: one kernel and one goroutine per node) and in simulation (package sim:
// one kernel for all nodes on a virtual clock).
//
// Calls marked (p) park: other tasks of the node may run before they return.
// Only contexts that the Host made are accepted; any other panics, because a
// context of the standard library cancels from another goroutine on the wall
// clock. When the incarnation is killed no Host call returns: the task unwinds
// and its deferred functions have no effect.
package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/history"
)

// Host is one incarnation of one process.
type Host interface {
	ID() cluster.NodeID
	// Incarnation counts the starts of this node, from 1.
	Incarnation() int
	// Context is the root context of this incarnation.
	Context() context.Context
	// Now is this node's own clock; only differences mean something.
	Now() time.Duration
	// Rand is a stream of this incarnation's own, drawn from the seed.
	Rand() *rand.Rand
	// Go starts a task of this node. The name appears in deadlock reports.
	Go(ctx context.Context, name string, f func(context.Context))
	// Sleep parks for d (p). It returns ctx.Err() if the context ended first.
	Sleep(ctx context.Context, d time.Duration) error
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	WithCancel(ctx context.Context) (context.Context, context.CancelFunc)
	NewCond() Cond
	// Exit ends this process; it does not return.
	Exit(err error)
	// Stopping is closed over by the graceful stop: it reports whether one was
	// asked for, and AwaitStop parks (p) until it is. A node that wants to end
	// in good order waits for it, cleans up, and calls Exit.
	Stopping() bool
	AwaitStop(ctx context.Context) error
	// Serve answers calls from now on; until then callers get ErrUnreachable.
	Serve(h Handler)
	// Call sends a copy of m and waits for the answer, a copy too (p). Calls on
	// one link start in sending order.
	Call(ctx context.Context, to cluster.NodeID, m Message) (Message, error)
	// Dial opens a new ZooKeeper session (p).
	Dial(ctx context.Context, o SessionOptions) (Session, error)
	Disk() Disk
	// Observe reports an event to the history; it never parks.
	Observe(e history.Event)
	Log() *zap.Logger
}

// Cond is a condition of one node. Wait parks (p) until the next Broadcast or
// the end of the context; re-check the condition after it.
type Cond interface {
	Wait(ctx context.Context) error
	Broadcast()
}

// Handler answers one call. Each call is a task of its own, started in sending
// order per link; its context is the callee's root, never the caller's.
type Handler func(ctx context.Context, from cluster.NodeID, m Message) (Message, error)

// Message is what calls carry. Clone shares no slice, map or pointer with the
// original. API names the message for gates, triggers and events.
type Message interface {
	Clone() Message
	API() string
}

// The errors of Call, beside ctx.Err() (unknown).
var (
	// ErrUnreachable says that the message was not delivered and never will be.
	ErrUnreachable = cluster.Definite(errors.New("node unreachable"))
	// ErrLost says that the peer died, or the link broke, while the call was
	// under way: the outcome is unknown.
	ErrLost = errors.New("connection lost, outcome unknown")
)

// Control is the Host of the control node: the run loop, the clients, the
// nemesis and the observers are its tasks. It alone may leave the kernel.
type Control interface {
	Host
	// Endpoint is a Host with a name of its own in gates and events, whose tasks
	// belong to the control node. Clients use one each.
	Endpoint(id cluster.NodeID) Host
	// Block runs f outside the kernel and parks the calling task until it ends
	// (p); ctx's end is passed on to f, which must return soon after. In
	// simulation f runs at once, inside the kernel.
	Block(ctx context.Context, name string, f func(ctx context.Context) error) error
	// Await parks the calling task (p) until complete is called, once, and
	// returns its argument: kernel.Await. Complete may be called by whoever
	// reports events, on any goroutine in real time. The error is ctx.Err().
	Await(ctx context.Context, name string, start func(complete func(any))) (any, error)
}

// Node is a process for the harness, not for node code. All calls are made by
// tasks of the control node, with its contexts, and park.
type Node interface {
	ID() cluster.NodeID
	// Start begins a new incarnation; the node must be down.
	Start(ctx context.Context) error
	// Stop asks for a graceful end and waits for it, until ctx ends.
	Stop(ctx context.Context) error
	// Kill ends the incarnation by unwinding: SIGKILL.
	Kill(ctx context.Context) error
	// PowerLoss is Kill, and what the disk had not synced is gone.
	PowerLoss(ctx context.Context) error
	// Pause stops the node's loop and holds its gates, ZooKeeper's too.
	Pause(ctx context.Context, lease time.Duration) error
	Resume(ctx context.Context) error
	Up() bool
}

// Main is a node's program. It runs as the first task of an incarnation; the
// process goes on after Main returns, until Exit or a kill.
type Main func(ctx context.Context, h Host)

// World makes nodes and owns what is between them. Package real and package
// sim implement it.
type World interface {
	Control() Control
	// NewNode declares a node; it is down until Start.
	NewNode(id cluster.NodeID, main Main) Node
	Network() Network
	// Disk gives the harness's hand on a node's disk.
	Disk(id cluster.NodeID) DiskControl
	// ZooKeeper gives the harness's hand on the sessions of a node.
	ZooKeeper(id cluster.NodeID) SessionControl
}

// Finding is something that must not happen in any run, whatever the faults: a
// panic of a node (it crashes, and the run has failed), a task that blocks
// outside its kernel. Detail holds the stack.
type Finding struct {
	Node   cluster.NodeID // empty if it is the world's own
	At     time.Duration
	Detail string
}

// Finder is a World that records findings; those of packages real and sim do.
// It may be asked from any goroutine, also after the run.
type Finder interface{ Findings() []Finding }

// Skewer is a Node whose clock can be made wrong; those of packages real and
// sim can.
type Skewer interface {
	// Skew makes the node's clock wrong until the lease ends or Undo is called:
	// Host.Now jumps by jump and then gains rate seconds a second (0.1 runs a
	// tenth fast, -0.1 slow); timers set meanwhile run at that rate too. At the
	// end the clock is right again, at once. Incarnations that start meanwhile
	// have it too. A new skew replaces the one in force.
	Skew(ctx context.Context, jump time.Duration, rate float64, lease time.Duration) (Undo, error)
}
