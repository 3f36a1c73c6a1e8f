package host

import (
	"context"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
)

// Network is the harness's hand on the links between nodes. Every rule is a
// lease: it ends by its own deadline, kept by the gate, even if whoever set it
// is gone. Rules add up; the strictest wins.
type Network interface {
	// Apply sets a rule for the messages that match it.
	Apply(r Rule, lease time.Duration) Undo
	// Tap calls f for every message at the gate, before the rules. F must not
	// park; in real time it is called on the goroutines of the sending nodes. It
	// serves triggers. The Undo ends it.
	Tap(f func(p Passing)) Undo
	// Heal ends every rule.
	Heal()
}

// Rule is what happens to matching messages on their way. The zero Match
// matches everything.
type Rule struct {
	Match     Match
	Drop      float64       // share that is lost; the caller hears nothing
	Refuse    bool          // the caller gets ErrUnreachable at once
	Hold      bool          // wait until the rule ends, then go on in order
	Delay     time.Duration // added latency
	Jitter    time.Duration // and up to this much more, uniform
	Duplicate float64       // share that is delivered twice
	Reorder   float64       // share that may overtake its predecessors
}

// Match selects messages. Empty fields match all. From and To are lists of
// nodes; APIs are names of messages.
type Match struct {
	From, To []cluster.NodeID
	APIs     []string
	// Replies selects answers instead of requests; Both selects both. A rule for
	// replies matches From = callee, To = caller.
	Replies, Both bool
}

// Passing is a message at a gate.
type Passing struct {
	From, To cluster.NodeID
	API      string
	Reply    bool
	Message  Message // read only
	At       time.Duration
}

// SessionControl is the harness's hand on the ZooKeeper sessions of one node.
type SessionControl interface {
	// Expire ends the present session at the server now: by a held take-over,
	// or by a closeSession injected into the node's own stream.
	Expire(ctx context.Context, how ExpireMode) error
	// Hold lets no byte pass either way until the lease ends or Undo is called;
	// healing cuts the connection. Held for longer than the session time-out
	// this is expiry by starvation.
	Hold(lease time.Duration) Undo
	// Delay adds latency to everything both ways.
	Delay(d time.Duration, lease time.Duration) Undo
	// CutBefore breaks the connection before the next request of kind op ("" =
	// any write) is sent; CutAfter after it was committed and before its reply
	// is delivered. One shot, or until the lease ends.
	CutBefore(op string, lease time.Duration) Undo
	CutAfter(op string, lease time.Duration) Undo
	// DelayWatches holds watch events back by d.
	DelayWatches(d time.Duration, lease time.Duration) Undo
	// Tap calls f for every request at the gate before it is sent, and for every
	// reply before it is delivered. F must not park.
	Tap(f func(p ZKPassing)) Undo
	// Current is the present session's id, 0 if there is none.
	Current() int64
}

// ExpireMode chooses how a session is expired.
type ExpireMode uint8

// The ways to expire a session at once.
const (
	ByTakeover ExpireMode = iota
	ByInjection
)

// ZKPassing is a ZooKeeper request or reply at a node's gate.
type ZKPassing struct {
	Node  cluster.NodeID
	Op    string   // create, set, delete, multi, get, …
	Paths []string // those written or read
	Reply bool
	Zxid  int64 // of a reply
	Err   int32 // of a reply, ZooKeeper's code
}
