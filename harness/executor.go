package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// executor runs a schedule: one task an entry waits for its trigger and carries
// it out. It owns the nemeses and ends what they leave.
type executor struct {
	env     Env
	rec     *Recorder
	entries []Entry
	nemeses map[string]Nemesis
	names   []string // of the nemeses, in the order of the test's faults
	start   time.Duration
	tasks   *tasks
	cond    host.Cond // an entry ended, or an operation count was passed
	ended   map[int]bool
	ops     int
	opMarks []int // counts that triggers wait for, ascending
	inForce []string
}

func newExecutor(env Env, faults []Fault, schedule []Entry) *executor {
	x := &executor{
		env: env, rec: env.Events, entries: schedule, nemeses: map[string]Nemesis{},
		tasks: newTasks(env.Host), cond: env.Host.NewCond(), ended: map[int]bool{},
	}
	for _, f := range faults {
		x.nemeses[f.Name] = f.New(env)
		x.names = append(x.names, f.Name)
	}
	for _, e := range schedule {
		if e.Trigger.Ops > 0 {
			x.opMarks = append(x.opMarks, e.Trigger.Ops)
		}
	}
	slices.Sort(x.opMarks)
	return x
}

// run starts the tasks. Entries that have not started when ctx ends never do;
// those under way are told to heal.
func (x *executor) run(ctx context.Context) {
	x.start = x.env.Host.Now()
	for _, e := range x.entries {
		x.tasks.start(ctx, fmt.Sprintf("nemesis %d %s", e.ID, e.Fault), func(ctx context.Context) error {
			x.entry(ctx, e)
			return nil
		}, func(err error) { x.rec.problem(history.ProblemNemesis, history.Nemesis, err) })
	}
}

// completed counts client operations for triggers.
func (x *executor) completed() {
	x.ops++
	if len(x.opMarks) > 0 && x.ops >= x.opMarks[0] {
		for len(x.opMarks) > 0 && x.ops >= x.opMarks[0] {
			x.opMarks = x.opMarks[1:]
		}
		x.cond.Broadcast()
	}
}

// injection is what the history holds of an entry.
type injection struct {
	ID     int             `json:"id"`
	Target any             `json:"target"`
	Params json.RawMessage `json:"params,omitempty"`
	Did    any             `json:"did,omitempty"`
}

// startGrace is how much longer than its lease an entry may take: to find its
// target, and to heal.
const startGrace = 30 * time.Second

func (x *executor) entry(ctx context.Context, e Entry) {
	defer func() {
		x.ended[e.ID] = true
		x.cond.Broadcast()
	}()
	if err := x.trigger(ctx, &e); err != nil {
		return // the load ended first: the entry was never begun
	}
	w := &Window{rec: x.rec, entry: e}
	w.changed = func() { x.note(e.Fault, w.Open()) }
	x.rec.Append(nemesisOp(history.Invoke, e.Fault, injection{ID: e.ID, Target: e.Target, Params: e.Params}, nil))
	bounded, cancel := x.env.Host.WithTimeout(ctx, e.Lease+startGrace)
	defer cancel()
	var did any
	err := protect(bounded, x.env.Host, func() error {
		var err error
		did, err = x.nemeses[e.Fault].Invoke(bounded, e, w)
		return err
	})
	if w.Open() {
		w.End(fmt.Sprintf("ended early: %v", err))
	}
	x.rec.Append(nemesisOp(history.Info, e.Fault, injection{ID: e.ID, Target: w.targets, Params: e.Params, Did: did}, err))
	x.judge(ctx, e, err)
}

// judge tells a nemesis that could not do its work from one that was told to
// stop, and from one that found nobody to hit, or cannot know whom.
func (x *executor) judge(ctx context.Context, e Entry, err error) {
	nobody := errors.Is(err, ErrNoTarget) || errors.Is(err, cluster.ErrUnsupported)
	if err == nil || nobody || ctx.Err() != nil && !isPanic(err) {
		return
	}
	x.rec.problem(history.ProblemNemesis, history.Nemesis, fmt.Errorf("entry %d (%s): %w", e.ID, e.Fault, err))
}

func isPanic(err error) bool {
	_, ok := errors.AsType[*PanicError](err)
	return ok
}

func nemesisOp(typ history.Type, f string, value any, err error) history.Op {
	raw, bad := json.Marshal(value)
	if bad != nil {
		raw, err = nil, errors.Join(err, bad)
	}
	op := history.Op{Process: history.Nemesis, Type: typ, F: f, Value: raw}
	if err != nil {
		op.Error = err.Error()
	}
	return op
}

// trigger parks until the entry is due, and notes whom its event concerns.
func (x *executor) trigger(ctx context.Context, e *Entry) error {
	t := e.Trigger
	if wait := x.start + t.At - x.env.Host.Now(); wait > 0 {
		if err := x.env.Host.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	for x.ops < t.Ops || t.AfterFault != nil && !x.ended[*t.AfterFault] {
		if err := x.cond.Wait(ctx); err != nil {
			return err
		}
	}
	if t.Event != "" {
		event, err := x.env.AwaitEvent(ctx, t.Event, skipping(t.Skip, matchWhere(t.Where)))
		if err != nil {
			return err
		}
		e.concerned = x.env.concerned(event)
	}
	if t.Gate != nil {
		if err := x.env.AwaitGate(ctx, *t.Gate); err != nil {
			return err
		}
	}
	if t.Wait > 0 {
		return x.env.Host.Sleep(ctx, t.Wait)
	}
	return ctx.Err()
}

func (x *executor) note(fault string, open bool) {
	if open {
		x.inForce = append(x.inForce, fault)
		return
	}
	if i := slices.Index(x.inForce, fault); i >= 0 {
		x.inForce = slices.Delete(x.inForce, i, i+1)
	}
}

// heal joins the entries, which were told to stop, and ends everything that is
// or might be in force. Problems are recorded, and the healing goes on.
func (x *executor) heal(ctx context.Context) {
	if err := x.tasks.wait(ctx); err != nil {
		x.rec.problem(history.ProblemStuck, history.Nemesis, fmt.Errorf("wait for the nemeses to heal: %w", err))
	}
	for _, name := range x.names {
		err := protect(ctx, x.env.Host, func() error { return x.nemeses[name].Heal(ctx) })
		if err != nil {
			x.rec.problem(history.ProblemHeal, history.Nemesis, fmt.Errorf("heal %s: %w", name, err))
		}
	}
	_ = x.env.Leases.HealAll(ctx) // each failure was recorded by its lease
	if x.env.World != nil {
		x.env.World.Network().Heal()
	}
	x.restart(ctx)
}

// restart starts what is still down, whoever left it so: the final reads ask
// for a whole cluster.
func (x *executor) restart(ctx context.Context) {
	killer, ok := x.env.Cluster.(cluster.Killer)
	if !ok {
		return
	}
	for _, n := range x.env.Cluster.Nodes() {
		if n.Role == cluster.RoleZooKeeper || killer.Up(n.ID) {
			continue
		}
		if err := killer.StartNode(ctx, n.ID); err != nil {
			x.rec.problem(history.ProblemHeal, history.Nemesis, fmt.Errorf("start %s: %w", n.ID, err))
		}
	}
}
