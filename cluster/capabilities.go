package cluster

import (
	"context"
	"time"
)

// Killer ends and starts processes. Kill is SIGKILL: synced bytes survive.
// PowerLoss kills and loses every byte that was not synced. StartNode returns when
// the process runs, not when it is ready.
type Killer interface {
	Kill(ctx context.Context, node NodeID) error
	PowerLoss(ctx context.Context, node NodeID) error
	StartNode(ctx context.Context, node NodeID) error
	Up(node NodeID) bool
}

// Stopper ends a process in good order, as on SIGTERM.
type Stopper interface {
	Shutdown(ctx context.Context, node NodeID) error
}

// Pauser stops a process from running without ending it, as SIGSTOP does. Its
// ZooKeeper session is not kept alive meanwhile.
type Pauser interface {
	Pause(ctx context.Context, node NodeID, lease time.Duration) error
	Resume(ctx context.Context, node NodeID) error
}

// SessionExpirer ends a node's ZooKeeper session for real.
type SessionExpirer interface {
	// ExpireSession has the server close the session now, by taking it over.
	ExpireSession(ctx context.Context, node NodeID) error
	// HoldZooKeeper lets no byte pass between the node and ZooKeeper until
	// Release or the lease's end: a black hole. Healing cuts the connection.
	HoldZooKeeper(ctx context.Context, node NodeID, lease time.Duration) (Release, error)
}

// Release ends a lease early. It may be called more than once.
type Release func(ctx context.Context) error

// Leaders tells who leads, by ZooKeeper's own word; for choosing targets.
type Leaders interface {
	// Coordinator is the coordinator in office, or "".
	Coordinator(ctx context.Context) (NodeID, error)
	// Bucket is the leader of a bucket and its in-sync followers, or "".
	Bucket(ctx context.Context, table string, bucket int) (leader NodeID, followers []NodeID, err error)
}

// CoordinatorDialer opens connections whose DDL goes to one given coordinator,
// whoever leads: what a client does that never heard of a change of leadership.
type CoordinatorDialer interface {
	DialCoordinator(ctx context.Context, client, coordinator NodeID) (Conn, error)
}

// RecoverySlower changes how long recoveries take. PerBucket is the extra time
// of a KV tablet's restore inside activation (the storm's window), Log that of
// a server's log recovery before it registers.
type RecoverySlower interface {
	SlowRecovery(ctx context.Context, node NodeID, perBucket, log, lease time.Duration) (Release, error)
}

// Readier tells when a node that was started is ready (registered), and when
// it serves all that it leads.
type Readier interface {
	AwaitReady(ctx context.Context, node NodeID) error
	AwaitServing(ctx context.Context, node NodeID) error
}

// Converger is asked after the last heal until every predicate holds.
type Converger interface {
	// Unconverged lists the named predicates that do not hold now, each with a
	// reason; empty means converged.
	Unconverged(ctx context.Context) ([]Predicate, error)
}

// Predicate is a named condition of a healthy cluster and why it does not hold.
type Predicate struct {
	Name   string `json:"name"`   // every-bucket-serves, metadata-agrees, nothing-pending, isr-full, one-coordinator
	Reason string `json:"reason"` // with the bucket or node concerned
}
