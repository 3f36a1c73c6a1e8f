// Package client is the in-process cluster's client: straight-line code
// against one Host, an endpoint of the control node. It caches metadata, finds
// the bucket of a key and its leader, tries again by the rules of its policy,
// and says honestly how an operation ended: definite only if every attempt was
// definitely refused (section 5 of the protocol).
package client

import (
	"context"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// Config is what a client is built with.
type Config struct {
	Policy protocol.ClientPolicy
	// Tablets are the servers that the client may ask before it knows any other.
	Tablets []cluster.NodeInfo
	// Prefer is the first of them to ask, or empty for one at random.
	Prefer cluster.NodeID
	// Process is the client's number in the history, -1 if it has none. It goes
	// into requests, so that servers can name it in events.
	Process int
	Times   Times
}

// Times are a client's durations. The zero value of a field takes its default.
type Times struct {
	// Attempt bounds one request; what is not answered by then has hung.
	Attempt time.Duration
	// DDL bounds one request to the coordinator.
	DDL time.Duration
	// Metadata bounds one request for metadata.
	Metadata time.Duration
	// BackOffMin and BackOffMax bound the growing pause between attempts.
	BackOffMin, BackOffMax time.Duration
	// MetadataAge is how old metadata may be before an operation refreshes it
	// behind its back.
	MetadataAge time.Duration
	// Suspect is how long a leader that refused at a leader epoch is not asked
	// again at that epoch; it doubles with each refusal.
	Suspect time.Duration
	// NoLeaderWait is the pause of a client without back-off when no leader is
	// known, and Reconnect its pause when a server cannot be reached: today's
	// Fluss client waits there, and nowhere else.
	NoLeaderWait, Reconnect time.Duration
	// FetchWait is how long a fetch waits for records at the server.
	FetchWait time.Duration
}

func (t Times) withDefaults() Times {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&t.Attempt, time.Second)
	set(&t.DDL, 5*time.Second)
	set(&t.Metadata, 500*time.Millisecond)
	set(&t.BackOffMin, 20*time.Millisecond)
	set(&t.BackOffMax, time.Second)
	set(&t.MetadataAge, 300*time.Millisecond)
	set(&t.Suspect, time.Second)
	set(&t.NoLeaderWait, 300*time.Millisecond)
	set(&t.Reconnect, 300*time.Millisecond)
	set(&t.FetchWait, 500*time.Millisecond)
	return t
}

// Client is one connection. Its methods may be called by several tasks of the
// control node; writes to one bucket follow each other.
type Client struct {
	h       host.Host
	name    string
	process int
	policy  protocol.ClientPolicy
	times   Times
	ctx     context.Context //nolint:containedctx // ends with Close, for tasks that outlive an operation
	cancel  context.CancelFunc
	cache   *cache
	prefer  cluster.NodeID
	// refreshing holds the tables whose metadata is being asked for; changed is
	// told when one is done.
	refreshing map[string]bool
	changed    host.Cond
	writer     int64 // for buckets that have none of their own yet; noWriter: to be asked for
}

// Client can do all that a connection may offer.
var (
	_ cluster.Conn  = (*Client)(nil)
	_ cluster.KV    = (*Client)(nil)
	_ cluster.Log   = (*Client)(nil)
	_ cluster.Admin = (*Client)(nil)
)

// New returns a client that speaks through h; nothing is sent yet.
func New(h host.Host, cfg Config) *Client {
	ctx, cancel := h.WithCancel(h.Context())
	return &Client{
		h: h, name: string(h.ID()), process: cfg.Process, policy: cfg.Policy, times: cfg.Times.withDefaults(),
		ctx: ctx, cancel: cancel, cache: newCache(cfg.Policy.CompareMetadata, cfg.Tablets), prefer: cfg.Prefer,
		refreshing: map[string]bool{}, changed: h.NewCond(), writer: noWriter,
	}
}

// Close ends the client's own tasks; operations under way are the callers' to end.
func (c *Client) Close(context.Context) error {
	c.cancel()
	return nil
}
