package harness_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/harness/gen"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/nemesis"
	"github.com/fencepost-dev/fencepost/sim"
	"github.com/fencepost-dev/fencepost/workloads"
)

func options(seed uint64) harness.Options {
	o := harness.DefaultOptions()
	o.Seed, o.TimeLimit, o.Rate, o.Concurrency = seed, 20*time.Second, 200, 6
	o.Coordinators, o.Tablets, o.Buckets, o.Keys, o.OpTimeout = 1, 3, 2, 5, time.Second
	return o
}

// bed is one run in a simulated world over the fake cluster.
type bed struct {
	test harness.Test
	fake *fake
	hist history.History
	err  error
}

// run builds a test, lets change alter it, and runs it.
func run(t *testing.T, o harness.Options, change func(b *bed)) *bed {
	t.Helper()
	b := &bed{}
	dir := t.TempDir()
	rec, err := harness.NewRecorder(dir)
	require.NoError(t, err)
	world := sim.NewWorld(sim.Config{Seed: o.Seed, NoZooKeeper: true, Observe: rec.Observe})
	defer world.Close()
	b.fake = newFake(world, o.Tablets)
	workload, err := workloads.Named("register")
	require.NoError(t, err)
	b.test = harness.Test{
		Options: o, Workload: workload, Control: world.Control(), HostWorld: world, Cluster: b.fake, Recorder: rec, Dir: dir,
	}
	if change != nil {
		change(b)
	}
	b.err = world.Run(context.Background(), func(ctx context.Context, _ host.Control) error {
		h, err := harness.Run(ctx, b.test)
		b.hist = h
		return err
	})
	return b
}

// withFault plans one fault.
func (b *bed) withFault(t *testing.T, name string) {
	t.Helper()
	faults, err := nemesis.Parse(name)
	require.NoError(t, err)
	b.test.Faults = faults
	b.test.Schedule = harness.DrawSchedule(b.test.Options, faults)
}

func (b *bed) count(f func(op history.Op) bool) int {
	n := 0
	for _, op := range b.hist.Ops() {
		if f(op) {
			n++
		}
	}
	return n
}

func (b *bed) problems(t *testing.T) []history.Harness {
	t.Helper()
	records, err := history.Events[history.Harness](b.hist)
	require.NoError(t, err)
	var out []history.Harness
	for _, r := range records {
		out = append(out, r.Event)
	}
	return out
}

func TestARunRecordsReadsAndWrites(t *testing.T) {
	b := run(t, options(1), nil)
	require.NoError(t, b.err)
	require.Empty(t, b.problems(t))
	require.Greater(t, b.count(func(op history.Op) bool { return op.F == "read" && op.Type == history.Ok }), 1500)
	require.Greater(t, b.count(func(op history.Op) bool { return op.F == "write" && op.Type == history.Ok }), 1500)
	require.Greater(t, b.count(func(op history.Op) bool { return op.F == "fetch" && op.Type == history.Ok }), 300)
	require.True(t, b.fake.stopped)
	verdict, err := checker.NewLinearizable(checker.DefaultLinearizable()).Check(t.Context(), b.hist)
	require.NoError(t, err)
	require.Equal(t, checker.Valid, verdict.Validity, verdict.Summary)
	var phases []string
	records, err := history.Events[history.Phase](b.hist)
	require.NoError(t, err)
	for _, r := range records {
		phases = append(phases, r.Event.Name)
	}
	require.Equal(t, []string{"setup", "load", "heal", "converge", "final", "end"}, phases)
}

func TestTheFileHoldsTheHistory(t *testing.T) {
	b := run(t, options(2), nil)
	require.NoError(t, b.err)
	raw, err := os.ReadFile(filepath.Join(b.test.Dir, harness.HistoryFile))
	require.NoError(t, err)
	h, report, err := history.Read(bytes.NewReader(raw))
	require.NoError(t, err)
	require.False(t, report.Torn)
	require.Equal(t, b.hist.Len(), h.Len())
	plan, err := harness.LoadPlan(b.test.Dir)
	require.NoError(t, err)
	require.Equal(t, b.test.Options, plan.Options)
	schedule, err := harness.LoadSchedule(b.test.Dir, nil)
	require.NoError(t, err)
	require.Empty(t, schedule)
}

func TestEqualSeedsGiveEqualBytes(t *testing.T) {
	read := func(seed uint64) []byte {
		b := run(t, options(seed), func(b *bed) { b.withFault(t, "restart") })
		require.NoError(t, b.err)
		raw, err := os.ReadFile(filepath.Join(b.test.Dir, harness.HistoryFile))
		require.NoError(t, err)
		return raw
	}
	first := read(3)
	require.Equal(t, first, read(3))
	require.NotEqual(t, first, read(4))
}

func TestRestartsAreInjectedAndHealed(t *testing.T) {
	for seed := range uint64(10) {
		b := run(t, options(seed), func(b *bed) { b.withFault(t, "restart") })
		require.NoError(t, b.err)
		require.Empty(t, b.problems(t))
		down := b.count(func(op history.Op) bool {
			return op.F == history.KindNode && bytes.Contains(op.Value, []byte(`"down"`))
		})
		require.Positive(t, down, "seed %d", seed)
		converged, err := history.Events[history.Converged](b.hist)
		require.NoError(t, err)
		require.Len(t, converged, 1)
		require.Empty(t, converged[0].Event.Unmet)
		verdict, err := checker.NewLinearizable(checker.DefaultLinearizable()).Check(t.Context(), b.hist)
		require.NoError(t, err)
		require.Equal(t, checker.Valid, verdict.Validity, verdict.Summary)
	}
}

// A process that ended in Info never comes back, and no history is refused.
func TestInfoRetiresTheProcess(t *testing.T) {
	n := 0
	b := run(t, options(5), func(b *bed) {
		b.fake.broken = func(_ cluster.NodeID, r *request) error {
			if n++; n%7 == 0 {
				return errors.New("nobody knows")
			}
			return nil
		}
	})
	require.NoError(t, b.err)
	infos := map[history.Process]bool{}
	for _, op := range b.hist.Ops() {
		if !op.Client() {
			continue
		}
		require.False(t, infos[op.Process], "process %d is back", op.Process)
		if op.Type == history.Info {
			require.Equal(t, "write", op.F, "a failed read is Fail")
			infos[op.Process] = true
		}
	}
	require.Greater(t, len(infos), 100)
	require.Empty(t, b.problems(t))
}

func TestDefiniteErrorsAreFail(t *testing.T) {
	b := run(t, options(6), func(b *bed) {
		b.fake.broken = func(cluster.NodeID, *request) error { return cluster.Definite(errors.New("refused")) }
	})
	require.NoError(t, b.err)
	require.Zero(t, b.count(func(op history.Op) bool {
		return op.Client() && op.F != "fetch" && (op.Type == history.Ok || op.Type == history.Info)
	}))
	require.Positive(t, b.count(func(op history.Op) bool { return op.Type == history.Fail && op.Error == "refused" }))
}

func TestAPanicOfAClientIsInfoAndAFinding(t *testing.T) {
	n := 0
	b := run(t, options(7), func(b *bed) {
		b.fake.broken = func(cluster.NodeID, *request) error {
			if n++; n == 50 {
				panic("a client's own mistake")
			}
			return nil
		}
	})
	require.NoError(t, b.err)
	require.Equal(t, 1, b.count(func(op history.Op) bool { return op.Client() && op.Type == history.Info }))
	problems := b.problems(t)
	require.Len(t, problems, 1)
	require.Equal(t, history.ProblemPanic, problems[0].Problem)
	require.Contains(t, problems[0].Detail, "a client's own mistake")
	require.Contains(t, problems[0].Detail, "fake_test.go", "the stack is the client's")
}

// badGen gives an operation to a process that is busy.
type badGen struct{ harness.Generator }

func (g badGen) Next(c harness.Context) harness.Step {
	s := g.Generator.Next(c)
	if len(c.Free) < len(c.All) {
		for _, p := range c.All {
			s.Op.Process = p
			free := false
			for _, q := range c.Free {
				free = free || p == q
			}
			if !free {
				break
			}
		}
	}
	return s
}

func TestAGeneratorsMistakeEndsTheRunWithItsHistory(t *testing.T) {
	b := run(t, options(8), func(b *bed) {
		b.test.Workload.Generator = func(harness.Options) harness.Generator {
			return badGen{gen.Ops(func(harness.Context) history.Op {
				return history.Op{F: "read", Value: history.KeyValue{Key: "a"}.JSON()}
			})}
		}
	})
	require.ErrorContains(t, b.err, "not free")
	require.Positive(t, b.hist.Len())
	require.True(t, b.fake.stopped)
}

func TestAnEndedContextHealsAndReads(t *testing.T) {
	dir := t.TempDir()
	rec, err := harness.NewRecorder(dir)
	require.NoError(t, err)
	o := options(9)
	world := sim.NewWorld(sim.Config{Seed: 9, NoZooKeeper: true, Observe: rec.Observe})
	defer world.Close()
	f := newFake(world, 3)
	workload, err := workloads.Named("register")
	require.NoError(t, err)
	faults, err := nemesis.Parse("restart")
	require.NoError(t, err)
	var h history.History
	err = world.Run(context.Background(), func(ctx context.Context, c host.Control) error {
		// The user gives up while a node is down.
		short, cancel := c.WithCancel(ctx)
		off := rec.On(history.KindFault, func(history.Op) { cancel() })
		defer off()
		h, err = harness.Run(short, harness.Test{
			Options: o, Workload: workload, Faults: faults, Schedule: harness.DrawSchedule(o, faults),
			Control: c, HostWorld: world, Cluster: f, Recorder: rec, Dir: dir,
		})
		return err
	})
	require.NoError(t, err)
	require.Less(t, h.End(), 15*time.Second)
	phases, err := history.Events[history.Phase](h)
	require.NoError(t, err)
	require.Equal(t, history.PhaseFinal, phases[len(phases)-2].Event.Name)
	ok := 0
	for _, op := range h.Ops() {
		if op.Index > phases[len(phases)-2].Op.Index && op.F == "read" && op.Type == history.Ok {
			ok++
		}
	}
	require.Positive(t, ok)
}

// deserter kills a node and panics: nobody is left to start it but the lease.
type deserter struct{ env harness.Env }

func (d deserter) Invoke(ctx context.Context, e harness.Entry, w *harness.Window) (any, error) {
	f := d.env.Cluster.(*fake)
	w.Start("tablet-1")
	d.env.Leases.Take("tablet-1", e.Lease, func(ctx context.Context) error { return f.StartNode(ctx, "tablet-1") })
	if err := f.Kill(ctx, "tablet-1"); err != nil {
		return nil, err
	}
	panic("gone")
}

func (deserter) Heal(context.Context) error { return nil }

func TestALeaseHealsWhenItsNemesisIsGone(t *testing.T) {
	b := run(t, options(10), func(b *bed) {
		b.test.Faults = []harness.Fault{{
			Name: "desert", New: func(env harness.Env) harness.Nemesis { return deserter{env} },
			Effects: func(harness.Options) []checker.Effect { return nil },
		}}
		b.test.Schedule = []harness.Entry{{
			Fault: "desert", Trigger: harness.Trigger{At: 5 * time.Second}, Target: harness.Target{Who: harness.WhoTablet},
			Lease: 3 * time.Second,
		}}
	})
	require.NoError(t, b.err)
	nodes, err := history.Events[history.Node](b.hist)
	require.NoError(t, err)
	var down, up time.Duration
	for _, r := range nodes {
		if r.Event.Node == "tablet-1" && r.Op.Time > time.Second && r.Op.Time < 20*time.Second {
			if r.Event.State == history.NodeDown {
				down = r.Op.Time
			} else {
				up = r.Op.Time
			}
		}
	}
	require.InDelta(t, 3*time.Second, up-down, float64(10*time.Millisecond))
	require.Len(t, b.problems(t), 1)
	require.Equal(t, history.ProblemPanic, b.problems(t)[0].Problem)
}

// Operations widen only: an invocation is in the history before the client sees
// it, a completion after the client has answered.
func TestIntervalsOnlyWiden(t *testing.T) {
	type seen struct{ from, to time.Duration }
	inside := map[string]seen{}
	b := run(t, options(11), func(b *bed) {
		open := b.test.Workload.Open
		b.test.Workload.Open = func(ctx context.Context, env harness.Env, p history.Process) (harness.Client, error) {
			inner, err := open(ctx, env, p)
			return spy{inner, func(op history.Op, from, to time.Duration) { inside[string(op.Value)] = seen{from, to} }, env.Host}, err
		}
	})
	require.NoError(t, b.err)
	checked := 0
	for invoke, done := range b.hist.Pairs() {
		if invoke.F != "write" {
			continue
		}
		s := inside[string(invoke.Value)]
		require.LessOrEqual(t, invoke.Time, s.from)
		require.GreaterOrEqual(t, done.Time, s.to)
		checked++
	}
	require.Greater(t, checked, 1000)
}

type spy struct {
	harness.Client
	tell func(op history.Op, from, to time.Duration)
	h    host.Host
}

func (s spy) Invoke(ctx context.Context, op history.Op) (harness.Completion, error) {
	from := s.h.Now()
	c, err := s.Client.Invoke(ctx, op)
	s.tell(op, from, s.h.Now())
	return c, err
}

func TestAClientThatNeverReturnsIsStuck(t *testing.T) {
	b := run(t, options(12), func(b *bed) {
		n := 0
		b.fake.broken = func(cluster.NodeID, *request) error {
			if n++; n == 100 {
				h := b.test.Control
				_ = h.Sleep(h.Context(), time.Hour) // deaf to its own context
			}
			return nil
		}
	})
	require.NoError(t, b.err)
	problems := b.problems(t)
	require.NotEmpty(t, problems)
	for _, p := range problems {
		require.True(t, problemIn(p.Problem, history.ProblemStuck), p)
	}
	open := 0
	for _, done := range b.hist.Pairs() {
		if done.Index < 0 {
			open++
		}
	}
	require.Equal(t, 1, open)
}

func TestAClusterThatDoesNotConvergeIsRecorded(t *testing.T) {
	o := options(13)
	o.Converge = 3 * time.Second
	b := run(t, o, func(b *bed) {
		b.fake.unmet = func() []cluster.Predicate { return []cluster.Predicate{{Name: "isr-full", Reason: "bucket 3"}} }
	})
	require.NoError(t, b.err)
	converged, err := history.Events[history.Converged](b.hist)
	require.NoError(t, err)
	require.Equal(t, []history.Unmet{{Name: "isr-full", Reason: "bucket 3"}}, converged[0].Event.Unmet)
	require.GreaterOrEqual(t, time.Duration(converged[0].Event.Took), 3*time.Second-100*time.Millisecond)
}
