// Package coordinator is the in-process coordinator: it stands for election, and
// while in office it alone decides who leads which bucket, writes that to
// ZooKeeper guarded by its epoch, and tells the tablets until they have heard. It
// is modelled on Apache Fluss; every decision that keeps it safe or live is a
// field of protocol.CoordinatorPolicy.
//
// It is node code: straight-line code against one host.Host, whose tasks
// interleave only inside Host calls. Everything between two of them is atomic,
// and that is relied upon.
//
//	coordinator.go  a process: its sessions, one after the other
//	election.go     standing for election, opening a term
//	term.go         a term: the event loop, its end
//	write.go        guarded writes and unknown outcomes
//	zk.go           reads that wait for the connection
//	load.go         what ZooKeeper holds when a term begins
//	bucket.go       pure: a bucket and the activation of its leader
//	elect.go        pure: who leads, who is in sync
//	lai.go          leader_isr in ZooKeeper, and what follows from a change
//	tablets.go      registrations, deaths, bounces
//	channel.go      one tablet's channel; notify.go, metadata.go, stop.go what it carries
//	isr.go          AdjustIsr, ControlledShutdown, MoveLeader
//	ddl.go          tables and partitions; creator.go those made by the clock
//	writers.go      counters
//	serve.go        requests
package coordinator

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// Config is what a coordinator is made with.
type Config struct {
	Policy protocol.CoordinatorPolicy
	// SessionTimeout is that of the ZooKeeper session.
	SessionTimeout time.Duration
	// Timing has the other durations; zero fields take DefaultTiming's.
	Timing Timing
}

// Timing has the durations that a coordinator works by.
type Timing struct {
	// Resend is the first pause before a request without an answer is sent again;
	// it doubles up to ResendMax, with jitter, and there is no last try.
	Resend, ResendMax time.Duration
	// NotifyWait is how long a tablet may hold the answer to a notification back
	// while it activates; NotifyTimeout is how long an answer is listened for,
	// whether or not the notification was sent again meanwhile.
	NotifyWait, NotifyTimeout time.Duration
	// CallTimeout bounds the other requests to tablets.
	CallTimeout time.Duration
	// Heartbeat is how long a tablet hears nothing before it is told again who
	// coordinates and who is alive.
	Heartbeat time.Duration
	// PartitionTick is how often partitions that are made by themselves move on.
	PartitionTick time.Duration
	// Retry is the pause between tries of what ZooKeeper did not take.
	Retry time.Duration
}

// DefaultTiming suits clusters whose links take under some milliseconds.
func DefaultTiming() Timing {
	return Timing{
		Resend: 100 * time.Millisecond, ResendMax: time.Second,
		NotifyWait: 500 * time.Millisecond, NotifyTimeout: 20 * time.Second,
		CallTimeout: time.Second, Heartbeat: time.Second,
		PartitionTick: 5 * time.Second, Retry: 100 * time.Millisecond,
	}
}

func (t Timing) withDefaults() Timing {
	d := DefaultTiming()
	fill := func(v *time.Duration, otherwise time.Duration) {
		if *v == 0 {
			*v = otherwise
		}
	}
	fill(&t.Resend, d.Resend)
	fill(&t.ResendMax, d.ResendMax)
	fill(&t.NotifyWait, d.NotifyWait)
	fill(&t.NotifyTimeout, d.NotifyTimeout)
	fill(&t.CallTimeout, d.CallTimeout)
	fill(&t.Heartbeat, d.Heartbeat)
	fill(&t.PartitionTick, d.PartitionTick)
	fill(&t.Retry, d.Retry)
	return t
}

// New is the program of a coordinator. It serves at once, if only to say that it
// is not in office, and goes on until it is stopped or killed.
func New(cfg Config) host.Main {
	return func(ctx context.Context, h host.Host) {
		c := &coordinator{
			cfg: cfg, policy: cfg.Policy, timing: cfg.Timing.withDefaults(),
			h: h, log: h.Log().Named("coordinator"), changed: h.NewCond(),
		}
		h.Serve(c.handle)
		h.Go(ctx, "sessions", c.live)
		c.stopInGoodOrder(ctx)
	}
}

// coordinator is one incarnation of one coordinator's process.
type coordinator struct {
	cfg    Config
	policy protocol.CoordinatorPolicy
	timing Timing
	h      host.Host
	log    *zap.Logger

	session  host.Session // the present one; nil before the first
	changed  host.Cond    // another session, another state of it, another term
	term     *term        // in office, and all state loaded; nil on standby
	stopping bool
}

// live opens a session, and another when that one has ended: each is a new life
// that knows nothing of the one before (section 3 of the protocol).
func (c *coordinator) live(ctx context.Context) {
	for ctx.Err() == nil && !c.stopping {
		s, err := c.h.Dial(ctx, host.SessionOptions{Timeout: c.cfg.SessionTimeout})
		if err != nil {
			c.log.Info("open session", zap.Error(err))
			c.pause(ctx)
			continue
		}
		c.session = s
		c.changed.Broadcast()
		c.life(ctx, s)
	}
}

// life stands for election for as long as the session lives.
func (c *coordinator) life(ctx context.Context, s host.Session) {
	life, end := c.h.WithCancel(ctx)
	defer end()
	c.h.Go(life, "session state", func(ctx context.Context) {
		defer end()
		for state := s.State(); state != host.Expired && state != host.Closed; {
			var err error
			if state, err = s.Changed(ctx, state); err != nil {
				return
			}
			c.changed.Broadcast()
		}
	})
	for life.Err() == nil && !c.stopping {
		if err := c.candidate(life, zk{h: c.h, s: s, retry: c.timing.Retry}); err != nil {
			c.log.Info("candidacy ended", zap.Error(err))
			c.pause(life)
		}
	}
	if err := s.Close(ctx); err != nil {
		c.log.Debug("close session", zap.Error(err))
	}
}

func (c *coordinator) pause(ctx context.Context) { _ = c.h.Sleep(ctx, c.timing.Retry) } // callers look at ctx

// stopInGoodOrder waits for a graceful stop: the term ends first, then the
// session and with it the ephemeral nodes.
func (c *coordinator) stopInGoodOrder(ctx context.Context) {
	if c.h.AwaitStop(ctx) != nil {
		return
	}
	c.stopping = true
	if c.term != nil {
		c.term.resign("stopped")
	}
	if c.session != nil {
		if err := c.session.Close(ctx); err != nil {
			c.log.Info("close session", zap.Error(err))
		}
	}
	c.h.Exit(nil)
}

// backOff is the pause before try number n+1 (n from 1), with jitter.
func (c *coordinator) backOff(n int) time.Duration {
	d := c.timing.Resend
	for i := 1; i < n && d < c.timing.ResendMax; i++ {
		d *= 2
	}
	d = min(d, c.timing.ResendMax)
	return d/2 + time.Duration(c.h.Rand().Int64N(int64(d/2)+1))
}
