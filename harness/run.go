package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// Bounds of the phases around the load. The time between the load's end and the
// final reads is bounded by Options.Converge.
const (
	startTime = 2 * time.Minute // the cluster and the workload come up
	healAll   = time.Minute
	finalTime = 30 * time.Second // at least; Options.Converge if that is longer
	stopTime  = 30 * time.Second
)

// Run carries out a test. It is called by a task of the control node, with a
// context of that host, and returns the history so far even when it fails. An
// end of ctx (Ctrl-C) ends the load early; faults are healed and the final reads
// made all the same. Files are written if the test has a directory: the plan and
// the schedule before anything starts, the history as it happens.
//
// The error says that the run could not be carried out: a cluster that did not
// start, a history that could not be written. Problems that leave a history
// worth judging are harness events in it.
func Run(ctx context.Context, t Test) (history.History, error) {
	if err := prepare(&t); err != nil {
		return history.History{}, err
	}
	r := newRun(t)
	err := protect(ctx, t.Control, func() error { return r.phases(ctx) })
	r.findings()
	if closing := t.Recorder.Close(); err == nil {
		err = closing
	}
	h, bad := history.New(t.Recorder.Ops())
	if bad != nil {
		err = errors.Join(err, fmt.Errorf("check own history: %w", bad))
	}
	return h, err
}

// prepare checks the test and writes its plan.
func prepare(t *Test) error {
	if t.Log == nil {
		t.Log = zap.NewNop()
	}
	if err := t.Options.Validate(); err != nil {
		return err
	}
	if err := ValidateSchedule(t.Schedule, t.Faults); err != nil {
		return fmt.Errorf("check schedule: %w", err)
	}
	for _, f := range t.Faults {
		if f.Supports == nil {
			continue
		}
		if err := f.Supports(t.Cluster); err != nil {
			return fmt.Errorf("check fault %s: %w", f.Name, err)
		}
	}
	if t.Recorder == nil {
		rec, err := NewRecorder(t.Dir)
		if err != nil {
			return err
		}
		t.Recorder = rec
	}
	return t.writePlan()
}

func (t *Test) writePlan() error {
	t.Plan.Workload, t.Plan.Options = t.Workload.Name, t.Options
	t.Plan.Planned = Planned(t.Options, t.Faults, t.Schedule)
	t.Plan.Faults = []string{}
	for _, f := range t.Faults {
		t.Plan.Faults = append(t.Plan.Faults, f.Name)
	}
	if t.Dir == "" {
		return nil
	}
	if err := WritePlan(t.Dir, t.Plan); err != nil {
		return err
	}
	return WriteSchedule(t.Dir, t.Schedule)
}

// run is a test under way.
type run struct {
	t     Test
	env   Env
	rec   *Recorder
	loop  *loop
	exec  *executor
	watch *watch
}

func newRun(t Test) *run {
	rec := t.Recorder
	rec.Begin(t.Control.Now)
	r := &run{t: t, rec: rec}
	r.env = Env{
		Host: t.Control, World: t.HostWorld, Cluster: t.Cluster, Options: t.Options, Log: t.Log, Events: rec, Table: t.Workload.Table,
		Leases: NewLeases(t.Control, func(err error) { rec.problem(history.ProblemHeal, history.Nemesis, err) }),
	}
	return r
}

// phases are the run. Whatever fails, the cluster is stopped at the end and
// every task joined.
func (r *run) phases(ctx context.Context) error {
	h := r.t.Control
	background, stop := h.WithCancel(h.Context())
	r.watch = newWatch(r)
	r.watch.begin(background)
	err := r.setup(ctx)
	if err == nil {
		err = r.underLoad(ctx)
	}
	end, cancel := h.WithTimeout(h.Context(), stopTime)
	defer cancel()
	r.phase(history.PhaseEnd)
	if bad := protect(end, h, func() error { return r.t.Cluster.Stop(end) }); bad != nil {
		r.rec.problem(history.ProblemStop, -1, fmt.Errorf("stop cluster: %w", bad))
	}
	stop()
	if bad := r.watch.tasks.wait(end); bad != nil {
		r.rec.problem(history.ProblemStuck, -1, fmt.Errorf("join observers: %w", bad))
	}
	return err
}

// findings records what the world itself found, such as a task that blocks
// outside its kernel. Panics of nodes are in the history already, as the events
// of those nodes: they are the system's fault and not the harness's.
func (r *run) findings() {
	finder, ok := r.t.HostWorld.(host.Finder)
	if !ok {
		return
	}
	findings := finder.Findings()
	if len(findings) == 0 {
		return
	}
	panics := map[string]bool{}
	for _, op := range r.rec.Ops() {
		if op.Process == history.Observer && op.F == history.KindNode {
			if event, err := history.Decode[history.Node](op); err == nil && event.State == history.NodePanicked {
				panics[event.Error] = true
			}
		}
	}
	for _, f := range findings {
		if !panics[f.Detail] {
			r.rec.Event(history.Harness{Problem: history.ProblemTask, Detail: fmt.Sprintf("%s at %v: %s", f.Node, f.At, f.Detail), Process: -1})
		}
	}
}

func (r *run) phase(name string) {
	r.rec.Event(history.Phase{Name: name})
	r.watch.phase = name
	r.watch.report()
}

// setup brings the cluster up and has the workload make its tables.
func (r *run) setup(ctx context.Context) error {
	r.phase(history.PhaseSetup)
	bounded, cancel := r.t.Control.WithTimeout(ctx, startTime)
	defer cancel()
	err := protect(bounded, r.t.Control, func() error {
		if err := r.t.Cluster.Start(bounded); err != nil {
			return fmt.Errorf("start cluster: %w", err)
		}
		if r.t.Workload.Setup == nil {
			return nil
		}
		if err := r.t.Workload.Setup(bounded, r.env); err != nil {
			return fmt.Errorf("set up workload %s: %w", r.t.Workload.Name, err)
		}
		r.settle(bounded)
		return nil
	})
	if err != nil {
		r.rec.problem(history.ProblemSetup, -1, err)
	}
	return err
}

// settle waits until the new tables serve, so that the load's first second is
// like the others. A cluster that does not settle is loaded all the same: the
// checkers are there to judge it.
func (r *run) settle(ctx context.Context) {
	converger, ok := r.t.Cluster.(cluster.Converger)
	if !ok {
		return
	}
	bounded, cancel := r.t.Control.WithTimeout(ctx, r.t.Options.Converge)
	defer cancel()
	for {
		unmet, err := unconverged(bounded, r, converger)
		if err == nil && len(unmet) == 0 || r.t.Control.Sleep(bounded, convergePoll) != nil {
			return
		}
	}
}

// underLoad is everything between the first operation and the last.
func (r *run) underLoad(ctx context.Context) error {
	h, o := r.t.Control, r.t.Options
	r.loop = newLoop(r.env, r.t.Workload)
	r.exec = newExecutor(r.env, r.t.Faults, r.t.Schedule)
	r.loop.completed = r.exec.completed
	workers, release := h.WithCancel(h.Context())
	defer release()
	r.loop.begin(workers)

	r.phase(history.PhaseLoad)
	faults, stopFaults := h.WithCancel(ctx)
	r.exec.run(faults)
	load := r.t.Workload.Generator(o)
	err := r.loop.run(ctx, load, o.TimeLimit)

	r.phase(history.PhaseHeal)
	stopFaults()
	heal, cancel := h.WithTimeout(h.Context(), r.patience(ctx, healAll))
	r.exec.heal(heal)
	cancel()
	if err == nil {
		r.phase(history.PhaseConverge)
		r.converge(r.patience(ctx, o.Converge))
		err = r.final(load, r.patience(ctx, max(finalTime, o.Converge)))
	}
	end, cancelEnd := h.WithTimeout(h.Context(), o.OpTimeout+joinGrace+closeTime)
	defer cancelEnd()
	r.loop.end(end)
	return err
}

// hurry bounds each phase after the load once the user has said stop.
const hurry = 15 * time.Second

func (r *run) patience(ctx context.Context, d time.Duration) time.Duration {
	if ctx.Err() != nil {
		return min(d, hurry)
	}
	return d
}

// convergePoll is how often the cluster is asked whether it has recovered.
const convergePoll = 50 * time.Millisecond

// converge waits until every predicate of a healthy cluster holds, or the time
// allowed is over, and records which.
func (r *run) converge(limit time.Duration) {
	h := r.t.Control
	event := history.Converged{Limit: int64(limit)}
	converger, ok := r.t.Cluster.(cluster.Converger)
	if !ok {
		event.Unasked = "the cluster cannot say whether it has recovered"
		r.rec.Event(event)
		return
	}
	start := h.Now()
	ctx, cancel := h.WithTimeout(h.Context(), limit)
	defer cancel()
	for {
		unmet, err := unconverged(ctx, r, converger)
		event.Took = int64(h.Now() - start)
		if err == nil {
			event.Unmet = unmet
			if len(unmet) == 0 {
				break
			}
		} else if event.Unmet == nil {
			event.Unmet = []history.Unmet{{Name: "answers", Reason: err.Error()}}
		}
		if h.Sleep(ctx, convergePoll) != nil {
			break
		}
	}
	r.rec.Event(event)
}

func unconverged(ctx context.Context, r *run, c cluster.Converger) ([]history.Unmet, error) {
	var unmet []history.Unmet
	err := protect(ctx, r.t.Control, func() error {
		predicates, err := c.Unconverged(ctx)
		for _, p := range predicates {
			unmet = append(unmet, history.Unmet{Name: p.Name, Reason: p.Reason})
		}
		return err
	})
	return unmet, err
}

// final runs the workload's last operations, in bounded time.
func (r *run) final(load Generator, limit time.Duration) error {
	if r.t.Workload.Final == nil {
		return nil
	}
	r.phase(history.PhaseFinal)
	h := r.t.Control
	return r.loop.run(h.Context(), r.t.Workload.Final(r.t.Options, load), limit)
}
