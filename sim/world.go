// Package sim is the simulated world: one kernel for all nodes on a virtual
// clock, a seeded scheduler, and a ZooKeeper of its own. One seed is one run,
// to the last event: TraceHash tells whether two runs were the same.
package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/cluster/host/node"
	"github.com/fencepost-dev/fencepost/history"
)

// Config describes a simulated world. The zero value is a usable one, of seed 0.
type Config struct {
	Seed uint64
	Log  *zap.Logger // nil is silent
	// Observe is told of every event, inside the kernel, in order.
	Observe func(node cluster.NodeID, at time.Duration, e history.Event)
	// Latency and Jitter are those of a hop between nodes, Latency + [0, Jitter).
	// Both zero mean 100 µs + 400 µs. There is no hop without latency: a client
	// without back-off would keep the virtual clock from ever moving.
	Latency, Jitter time.Duration
	// HeavyTail makes one hop in twenty slow, the longer the rarer, up to a second.
	HeavyTail bool
	// Disk is what disk calls take; a zero Sync means 100 µs.
	Disk node.DiskCosts
	// Pick chooses which of n ready tasks runs next; nil draws evenly from the
	// seed.
	Pick func(n int) int
	// StepLimit bounds the tasks that run at one instant, 0 = a million.
	StepLimit int
	// Stall is how long, on the wall clock, one step may take before it is
	// reported as blocked; 0 = 10 s, negative = never.
	Stall time.Duration
	// NoTrace saves the time that TraceHash costs; it then stays the same.
	NoTrace bool
	// NoZooKeeper leaves the ZooKeeper out: Dial fails.
	NoZooKeeper bool
	// ZooKeeper describes the simulated ZooKeeper.
	ZooKeeper ZooKeeperConfig
}

// World is a simulated world. It belongs to the goroutine that calls Run.
type World struct {
	*node.Core
	cfg    Config
	k      *kernel.Kernel
	zk     *zkSim // nil without ZooKeeper
	done   bool
	result error
	closed bool
}

var _ host.World = (*World)(nil)

// NewWorld makes a world with a control node and nothing else.
func NewWorld(cfg Config) *World {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Latency == 0 && cfg.Jitter == 0 {
		cfg.Latency, cfg.Jitter = 100*time.Microsecond, 400*time.Microsecond
	}
	cfg.Latency = max(cfg.Latency, time.Microsecond)
	if cfg.Disk.Sync == 0 {
		cfg.Disk.Sync = 100 * time.Microsecond
	}
	if cfg.Stall == 0 {
		cfg.Stall = 10 * time.Second
	}
	if cfg.Pick == nil {
		cfg.Pick = drawFrom(kernel.Stream(cfg.Seed, "scheduler"))
	}
	w := &World{cfg: cfg}
	w.k = kernel.New(kernel.Config{
		Pick:      cfg.Pick,
		StepLimit: cfg.StepLimit,
		Trace:     !cfg.NoTrace,
		OnPanic:   func(g *kernel.Group, p kernel.Panic) { w.Panicked(g, p) },
	})
	w.Core = node.NewCore(node.Config{
		Seed:    cfg.Seed,
		Log:     cfg.Log,
		Now:     w.k.Now,
		Kernel:  func(cluster.NodeID) *kernel.Kernel { return w.k },
		Observe: w.observe,
		Latency: cfg.Latency,
		Jitter:  cfg.Jitter,

		HeavyTail: cfg.HeavyTail,
		Disk:      cfg.Disk,
		Block:     blockInside,
	}, w.sessions)
	return w
}

func drawFrom(r *rand.Rand) func(int) int { return r.IntN }

func (w *World) sessions(env node.Env) node.Sessions {
	if w.cfg.NoZooKeeper {
		return node.NoSessions{}
	}
	w.zk = newSessions(env, w.cfg.ZooKeeper, w.k)
	return w.zk
}

// observe puts the event into the trace and hands it on.
func (w *World) observe(id cluster.NodeID, at time.Duration, e history.Event) {
	if !w.cfg.NoTrace {
		text, err := json.Marshal(e)
		if err != nil {
			panic(fmt.Sprintf("sim: event %s of %s cannot be written as JSON: %v", e.Kind(), id, err))
		}
		w.k.Note([]byte(id))
		w.k.Note([]byte(e.Kind()))
		w.k.Note(text)
	}
	if w.cfg.Observe != nil {
		w.cfg.Observe(id, at, e)
	}
}

// blockInside runs f at once: in simulation nothing waits for the outside. The
// kernel stands still meanwhile.
func blockInside(ctx context.Context, name string, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	outside, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := f(outside); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Run runs main as the first task of the control node, on the calling
// goroutine, and returns when main has returned and every node and task is
// gone. When ctx ends, main's context ends too; a main that does not return
// then is killed after a virtual minute. The error is main's, or that of the
// world: kernel.ErrDeadlock, kernel.ErrLivelock, ctx's.
func (w *World) Run(ctx context.Context, main func(ctx context.Context, c host.Control) error) error {
	if w.closed {
		return errors.New("run world: closed")
	}
	defer w.Close() // also after a failed requirement, which ends this goroutine
	stopWatch := w.watch()
	defer stopWatch()
	control := w.Control()
	inner, cancel := control.WithCancel(control.Context())
	stopListening := context.AfterFunc(ctx, func() {
		w.k.Post(kernel.Func(func() {
			cancel()
			w.k.After(time.Minute, kernel.Func(func() { w.finish(ctx.Err()) }))
		}))
	})
	defer stopListening()
	w.done, w.result = false, nil
	w.OnControlGone(w.finish)
	control.Go(inner, "main", func(ctx context.Context) { w.finish(main(ctx, control)) })
	if err := w.k.Run(); err != nil {
		w.Close()
		return err
	}
	w.Close()
	return w.result
}

// finish ends the run with main's result.
func (w *World) finish(err error) {
	if w.done {
		return
	}
	w.done, w.result = true, err
	w.k.Stop()
}

// Close kills every node and unwinds every task. The world is of no use then.
// It may be called more than once, and after a panic or a failed requirement
// inside Run.
func (w *World) Close() {
	if w.closed {
		return
	}
	w.closed = true
	w.k.Close()
	if err := w.CloseSessions(); err != nil {
		w.Find(host.Finding{At: w.k.Now(), Detail: fmt.Sprintf("close zookeeper: %v", err)})
	}
}

// Now is the virtual time.
func (w *World) Now() time.Duration { return w.k.Now() }

// TraceHash sums up every choice of the scheduler, timer and observation so
// far.
func (w *World) TraceHash() uint64 { return w.k.TraceHash() }

// Steps counts the events so far: tasks run and timers fired.
func (w *World) Steps() uint64 { return w.k.Steps() }

// Tasks names every task and what it waits for.
func (w *World) Tasks() string { return w.k.Report() }
