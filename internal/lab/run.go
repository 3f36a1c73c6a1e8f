package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/real"
	"github.com/fencepost-dev/fencepost/cluster/inproc"
	"github.com/fencepost-dev/fencepost/cluster/inproc/coordinator"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/sim"
)

// UI is told how a run goes. Its methods may be called from several goroutines.
type UI interface {
	// Notice is a sentence for the user: which ZooKeeper was chosen, and why.
	Notice(text string)
	// Limit is how long the load will run.
	Limit(d time.Duration)
	Update(p harness.Progress)
}

// Quiet is a UI that says nothing.
type Quiet struct{}

// Notice does nothing.
func (Quiet) Notice(string) {}

// Limit does nothing.
func (Quiet) Limit(time.Duration) {}

// Update does nothing.
func (Quiet) Update(harness.Progress) {}

// world is what this package needs of a world, simulated or real.
type world interface {
	host.World
	Run(ctx context.Context, main func(ctx context.Context, c host.Control) error) error
	Close()
}

// Run carries out one test and judges it. An end of ctx ends the load early;
// what was done by then is healed, judged and reported. The error is a
// UsageError, or says why there is nothing to judge.
func Run(ctx context.Context, c Config, ui UI) (Outcome, error) {
	r, err := c.resolve()
	if err != nil {
		return Outcome{}, err
	}
	b := &bench{resolved: r, ui: ui}
	if err := b.open(ctx); err != nil {
		return Outcome{}, errors.Join(err, b.close())
	}
	h, runErr := b.run(ctx)
	if err := b.close(); runErr == nil {
		runErr = err // a full disk fails many things; the first is the cause
	}
	if h.Len() == 0 {
		if runErr == nil || ctx.Err() != nil {
			runErr = errInterrupted
		}
		return Outcome{}, runErr
	}
	judged := run{dir: b.dir, plan: b.plan, history: h, failure: runErr}
	if ctx.Err() != nil {
		judged.notes = append(judged.notes, "interrupted: the load ended early, and what was planned for later did not happen")
	}
	outcome, err := judge(judged)
	if simulated, ok := b.world.(*sim.World); ok {
		outcome.trace = simulated.TraceHash()
	}
	return outcome, err
}

// bench is a test with everything that it needs, from open to close.
type bench struct {
	resolved
	ui        UI
	dir       string
	plan      harness.Plan
	recorder  *harness.Recorder
	server    zookeeper.Server
	log       *zap.Logger
	closeLogs func() error
	world     world
}

// open starts what the world needs and makes the run's folder: in this order,
// so that a ZooKeeper that does not start leaves no empty run behind.
func (b *bench) open(ctx context.Context) error {
	if b.World != WorldSim {
		server, err := b.provider.Start(ctx, zookeeper.Config{Keep: b.Keep})
		if err != nil {
			return fmt.Errorf("start zookeeper: %w", err)
		}
		b.server = server
	}
	now := time.Now()
	logs := ""
	if b.Out != "" {
		dir, err := newFolder(b.Out, b.Workload, b.Options.Seed, now)
		if err != nil {
			return err
		}
		b.dir, logs = dir, filepath.Join(dir, nodesDir)
	}
	b.log, b.closeLogs = newLogs(logs)
	recorder, err := harness.NewRecorder(b.dir)
	if err != nil {
		return err
	}
	b.recorder = recorder
	b.plan = harness.Plan{
		Name: b.Workload, World: b.World, Preset: b.Preset, Bugs: b.bugs, Command: b.Command(),
		Started: now.UTC().Format(time.RFC3339), Versions: map[string]string{"go": runtime.Version()},
	}
	if b.entries != nil && b.dir != "" {
		b.plan.Command = "go run ./cmd/jepsen replay " + b.dir
	}
	b.makeWorld()
	b.ui.Limit(b.Options.TimeLimit)
	return nil
}

// makeWorld makes the world and says in the first line of output which it is.
func (b *bench) makeWorld() {
	if b.World == WorldSim {
		b.ui.Notice("simulated world, simulated ZooKeeper")
		b.world = sim.NewWorld(sim.Config{
			Seed: b.Options.Seed, Log: b.log, Observe: b.recorder.Observe, NoTrace: b.quick, HeavyTail: b.Options.HeavyTail,
		})
		return
	}
	info := b.server.Info()
	b.plan.ZooKeeper, b.plan.Versions["zookeeper"] = info.String(), info.Version
	b.ui.Notice(info.String())
	b.world = real.NewWorld(real.Config{
		Seed: b.Options.Seed, Log: b.log, Observe: b.recorder.Observe, Sessions: real.ZooKeeper(b.server.Addresses()...),
	})
}

// run is the test itself, as the control node's first task.
func (b *bench) run(ctx context.Context) (history.History, error) {
	var h history.History
	err := b.world.Run(ctx, func(ctx context.Context, control host.Control) error {
		c, err := b.cluster()
		if err != nil {
			return err
		}
		h, err = harness.Run(ctx, harness.Test{
			Plan: b.plan, Options: b.Options, Workload: b.workload, Faults: b.faults, Schedule: b.schedule,
			Control: control, HostWorld: b.world, Cluster: c, Recorder: b.recorder, Dir: b.dir,
			Log: b.log.Named("harness"), Progress: b.ui.Update,
		})
		return err
	})
	b.plan.Planned = harness.Planned(b.Options, b.faults, b.schedule)
	b.plan.Workload, b.plan.Options = b.workload.Name, b.Options
	return h, err
}

func (b *bench) cluster() (cluster.Cluster, error) {
	o := b.Options
	return inproc.New(b.world, inproc.Config{
		Coordinators: o.Coordinators, Tablets: o.Tablets, Policy: b.policy, SessionTimeout: o.SessionTimeout,
		// Often enough for a fault to wait for a tick of the partition creator.
		CoordinatorTiming: coordinator.Timing{PartitionTick: time.Second},
	})
}

// closeTime bounds the removal of what was started, also after a signal.
const closeTime = 30 * time.Second

// close removes what open made; it may be called after a failed open.
func (b *bench) close() error {
	var errs []error
	if b.world != nil {
		b.world.Close()
	}
	if b.recorder != nil {
		errs = append(errs, b.recorder.Close())
	}
	switch {
	case b.server == nil:
	case b.Keep:
		b.ui.Notice("left running: " + b.server.Info().String())
	default:
		// The run's own context may have ended with a signal; cleaning up must not.
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		errs = append(errs, b.server.Close(ctx))
		cancel()
	}
	if b.closeLogs != nil {
		errs = append(errs, b.closeLogs())
	}
	return errors.Join(errs...)
}

// harnessFailure is a harness verdict for an error of the run itself.
func harnessFailure(err error) checker.Verdict {
	return checker.Verdict{
		Checker: "run", Class: checker.Harness, Validity: checker.Invalid, Reason: checker.ReasonIncomplete,
		Summary: "the run did not end in good order: " + err.Error(),
	}
}
