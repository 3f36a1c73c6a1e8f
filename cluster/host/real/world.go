// Package real is the real-time world: every node has a kernel and a goroutine
// of its own on the wall clock, messages cross an in-memory switch as copies,
// and ZooKeeper sessions are those of a real client library behind a gate.
package real

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/cluster/host/node"
	"github.com/fencepost-dev/fencepost/history"
)

// Config describes a real-time world. The zero value is usable, without
// ZooKeeper.
type Config struct {
	Seed uint64
	Log  *zap.Logger // nil is silent
	// Observe is told of every event where it happens, on many goroutines.
	Observe func(node cluster.NodeID, at time.Duration, e history.Event)
	// Latency and Jitter are those of a hop between nodes, Latency + [0, Jitter).
	// Both zero mean 100 µs + 100 µs. The host's timers may make more of it.
	Latency, Jitter time.Duration
	// NoLatency lets messages pass at once; for benchmarks: a client without
	// back-off would be refused by the million.
	NoLatency bool
	// Disk is what disk calls take.
	Disk node.DiskCosts
	// Sessions makes the ZooKeeper sessions; nil is a world without ZooKeeper.
	Sessions SessionProvider
	// Stall is how long one step may take before it is reported as blocked; 0 =
	// 10 s, negative = never.
	Stall time.Duration
	// Grace is how long main may go on after Run's context has ended, and how long
	// Close waits for a task that blocks outside its kernel; 0 = 1 min.
	Grace time.Duration
}

// World is a real-time world.
type World struct {
	*node.Core
	cfg     Config
	epoch   time.Time
	control *kernel.Kernel

	blocked sync.WaitGroup // goroutines of Block
	loops   sync.WaitGroup // goroutines of nodes
	mu      sync.Mutex
	kernels []*kernel.Kernel // the nodes', without control
	closed  bool

	done   bool // only on the control node's goroutine
	result error
}

var _ host.World = (*World)(nil)

// NewWorld makes a world with a control node and nothing else.
func NewWorld(cfg Config) *World {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Latency == 0 && cfg.Jitter == 0 {
		cfg.Latency, cfg.Jitter = 100*time.Microsecond, 100*time.Microsecond
	}
	if cfg.NoLatency {
		cfg.Latency, cfg.Jitter = 0, 0
	}
	if cfg.Stall == 0 {
		cfg.Stall = 10 * time.Second
	}
	if cfg.Grace == 0 {
		cfg.Grace = time.Minute
	}
	w := &World{cfg: cfg, epoch: time.Now()}
	w.Core = node.NewCore(node.Config{
		Seed:    cfg.Seed,
		Log:     cfg.Log,
		Now:     w.Now,
		Kernel:  w.kernel,
		Observe: cfg.Observe,
		Latency: cfg.Latency,
		Jitter:  cfg.Jitter,
		Disk:    cfg.Disk,
		Block:   w.block,
	}, w.sessions)
	return w
}

func (w *World) sessions(env node.Env) node.Sessions {
	if w.cfg.Sessions == nil {
		return node.NoSessions{}
	}
	return w.cfg.Sessions(env)
}

// Now is the time since the world was made.
func (w *World) Now() time.Duration { return time.Since(w.epoch) }

// kernel makes a node's kernel. That of the control node runs in Run, every
// other on a goroutine of its own from now on.
func (w *World) kernel(id cluster.NodeID) *kernel.Kernel {
	k := kernel.New(kernel.Config{
		Clock:   w.Now,
		Epoch:   w.epoch,
		OnPanic: func(g *kernel.Group, p kernel.Panic) { w.Panicked(g, p) },
	})
	if id == node.ControlID {
		w.control = k
		return k
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		panic("host: new node in a closed world: " + string(id))
	}
	w.kernels = append(w.kernels, k)
	w.loops.Go(func() {
		ended := false
		defer func() {
			if !ended { // Goexit: a test's requirement failed inside a node
				w.Find(host.Finding{Node: id, At: w.Now(), Detail: "a task of the node ended its goroutine"})
			}
		}()
		_ = k.Run() // on the wall clock it ends by Stop alone
		ended = true
	})
	return k
}

// block runs f on a goroutine of its own and parks the caller until it ends.
func (w *World) block(ctx context.Context, name string, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	group := kernel.Of(ctx).Group()
	outside, cancel := context.WithCancel(context.Background())
	defer cancel()
	inner, release := group.WithCancel(ctx)
	kernel.Of(inner).OnEnd(cancel)
	defer release()
	v, err := kernel.Await(group.Context(), name, func(complete func(any)) {
		w.blocked.Go(func() { complete(f(outside)) })
	})
	if err != nil {
		return err
	}
	if err, _ = v.(error); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Run runs main as the first task of the control node, on the calling
// goroutine, and returns when main has returned and every node, task and
// goroutine is gone. When ctx ends, main's context ends too; a main that does
// not return within the grace period is killed. The error is main's, or ctx's.
func (w *World) Run(ctx context.Context, main func(ctx context.Context, c host.Control) error) error {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return errors.New("run world: closed")
	}
	defer w.Close() // also after a failed requirement, which ends this goroutine
	stopWatch := w.watch()
	defer stopWatch()
	control := w.Control()
	inner, cancel := control.WithCancel(control.Context())
	stopListening := context.AfterFunc(ctx, func() {
		w.control.Post(kernel.Func(func() {
			cancel()
			w.control.After(w.cfg.Grace, kernel.Func(func() { w.finish(ctx.Err()) }))
		}))
	})
	defer stopListening()
	w.done, w.result = false, nil
	w.OnControlGone(w.finish)
	control.Go(inner, "main", func(ctx context.Context) { w.finish(main(ctx, control)) })
	err := w.control.Run()
	w.Close()
	if err != nil {
		return err
	}
	return w.result
}

// finish ends the run with main's result.
func (w *World) finish(err error) {
	if w.done {
		return
	}
	w.done, w.result = true, err
	w.control.Stop()
}

// Close kills every node, unwinds every task and waits for every goroutine. It
// may be called more than once, and after a failed requirement inside Run.
func (w *World) Close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	kernels := w.kernels
	w.mu.Unlock()
	for _, k := range kernels {
		k.Stop()
	}
	stuck := !w.await(&w.loops, "a node does not end: one of its tasks blocks outside the kernel")
	w.control.Close()
	if stuck {
		return // their kernels are in use, and so may their sessions be
	}
	for _, k := range kernels {
		k.Close()
	}
	w.await(&w.blocked, "a function of Block does not end")
	if err := w.CloseSessions(); err != nil {
		w.Find(host.Finding{At: w.Now(), Detail: fmt.Sprintf("close zookeeper: %v", err)})
	}
}

// await waits for goroutines, but not for ever: a run that cannot end is a
// finding, and its report is worth more than its last goroutine.
func (w *World) await(wg *sync.WaitGroup, otherwise string) bool {
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	limit := time.NewTimer(w.cfg.Grace)
	defer limit.Stop()
	select {
	case <-ended:
		return true
	case <-limit.C:
		w.Find(host.Finding{At: w.Now(), Detail: fmt.Sprintf("%s\n%s", otherwise, stacks())})
		return false
	}
}

// Tasks names every task of the control node and what it waits for. It is
// called by a task of the control node.
func (w *World) Tasks() string { return w.control.Report() }

// watch looks for a step that does not end: a task that blocks natively stops
// its node, and nobody else would say so.
func (w *World) watch() (stop func()) {
	if w.cfg.Stall < 0 {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(w.cfg.Stall)
		defer tick.Stop()
		last := make(map[*kernel.Kernel]uint64)
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			for _, k := range w.Kernels() {
				now, seen := last[k]
				last[k] = k.Steps()
				if seen && now == last[k] && !k.Idle() {
					w.Find(host.Finding{At: w.Now(), Detail: fmt.Sprintf(
						"a task blocks outside the kernel for more than %v\n%s", w.cfg.Stall, stacks())})
					return
				}
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}

// stacks are those of all goroutines, the blocked task's among them.
func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
