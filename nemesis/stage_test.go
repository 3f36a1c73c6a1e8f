package nemesis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/harness/gen"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/sim"
)

// stage is a cluster of props: it has every capability, does what a cluster
// would be seen to do, and notes what was asked of it.
type stage struct {
	world  host.World
	rec    *harness.Recorder
	nodes  []cluster.NodeInfo
	procs  map[cluster.NodeID]host.Node
	leader cluster.NodeID
	held   map[cluster.NodeID]bool
	slow   map[cluster.NodeID]time.Duration
	calls  []string
	ddl    []cluster.NodeID
}

const sessionTimeout = 3 * time.Second

func newStage(world host.World, rec *harness.Recorder) *stage {
	s := &stage{
		world: world, rec: rec, procs: map[cluster.NodeID]host.Node{}, leader: "coordinator-0",
		held: map[cluster.NodeID]bool{}, slow: map[cluster.NodeID]time.Duration{},
	}
	add := func(role cluster.Role, i int) {
		id := cluster.NodeID(fmt.Sprintf("%s-%d", role, i))
		s.nodes = append(s.nodes, cluster.NodeInfo{ID: id, Role: role, Server: i})
		s.procs[id] = world.NewNode(id, func(ctx context.Context, h host.Host) {
			if h.AwaitStop(ctx) == nil {
				h.Exit(nil)
			}
		})
	}
	for i := range 3 {
		add(cluster.RoleCoordinator, i)
	}
	for i := range 4 {
		add(cluster.RoleTablet, i)
	}
	return s
}

func (s *stage) note(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *stage) Nodes() []cluster.NodeInfo { return s.nodes }

func (s *stage) Start(ctx context.Context) error {
	for _, n := range s.nodes {
		if err := s.procs[n.ID].Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) Stop(ctx context.Context) error {
	for _, n := range s.nodes {
		if err := s.procs[n.ID].Kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) Dial(context.Context, cluster.NodeID, cluster.NodeID) (cluster.Conn, error) {
	return prop{}, nil
}

func (s *stage) DialCoordinator(_ context.Context, _, id cluster.NodeID) (cluster.Conn, error) {
	s.ddl = append(s.ddl, id)
	return prop{}, nil
}

func (s *stage) Kill(ctx context.Context, id cluster.NodeID) error {
	s.note("kill %s", id)
	return s.procs[id].Kill(ctx)
}

func (s *stage) PowerLoss(ctx context.Context, id cluster.NodeID) error {
	s.note("power-loss %s", id)
	return s.procs[id].PowerLoss(ctx)
}

func (s *stage) StartNode(ctx context.Context, id cluster.NodeID) error {
	s.note("start %s", id)
	return s.procs[id].Start(ctx)
}

func (s *stage) Up(id cluster.NodeID) bool { return s.procs[id].Up() }

func (s *stage) Shutdown(ctx context.Context, id cluster.NodeID) error {
	s.note("shutdown %s", id)
	return s.procs[id].Stop(ctx)
}

func (s *stage) AwaitReady(ctx context.Context, id cluster.NodeID) error {
	s.note("ready %s", id)
	return s.world.Control().Sleep(ctx, 300*time.Millisecond)
}

func (s *stage) AwaitServing(ctx context.Context, id cluster.NodeID) error {
	s.note("serving %s", id)
	return s.world.Control().Sleep(ctx, 600*time.Millisecond)
}

func (s *stage) Coordinator(context.Context) (cluster.NodeID, error) { return s.leader, nil }

func (s *stage) Bucket(context.Context, string, int) (cluster.NodeID, []cluster.NodeID, error) {
	return "tablet-1", []cluster.NodeID{"tablet-2"}, nil
}

func (s *stage) expired(id cluster.NodeID) {
	s.rec.Observe(id, s.world.Control().Now(), history.Session{Node: string(id), State: history.SessionExpired})
}

func (s *stage) ExpireSession(_ context.Context, id cluster.NodeID) error {
	s.note("expire %s", id)
	c := s.world.Control()
	c.Go(c.Context(), "told", func(ctx context.Context) {
		if c.Sleep(ctx, time.Second) == nil {
			s.expired(id)
		}
	})
	return nil
}

// HoldZooKeeper is a session that ends behind a black hole: another coordinator
// leads then, and the node hears of it when it is let through.
func (s *stage) HoldZooKeeper(_ context.Context, id cluster.NodeID, lease time.Duration) (cluster.Release, error) {
	s.note("hold %s", id)
	c := s.world.Control()
	s.held[id] = true
	began := c.Now()
	c.Go(c.Context(), "session ends", func(ctx context.Context) {
		if c.Sleep(ctx, sessionTimeout) == nil && s.held[id] && s.leader == id {
			s.leader = "coordinator-2"
			s.rec.Observe(s.leader, c.Now(), history.Term{Coordinator: string(s.leader), Epoch: 2, State: history.TermServing})
		}
	})
	release := func(context.Context) error {
		if s.held[id] {
			s.held[id] = false
			s.note("release %s", id)
			if c.Now()-began > sessionTimeout {
				s.expired(id)
			}
		}
		return nil
	}
	c.Go(c.Context(), "lease of the gate", func(ctx context.Context) {
		if c.Sleep(ctx, lease) == nil {
			_ = release(ctx)
		}
	})
	return release, nil
}

func (s *stage) SlowRecovery(
	_ context.Context, id cluster.NodeID, perBucket, _, _ time.Duration,
) (cluster.Release, error) {
	s.slow[id] = perBucket
	return func(context.Context) error { delete(s.slow, id); return nil }, nil
}

// prop is a connection that can create tables.
type prop struct{}

func (prop) Close(context.Context) error { return nil }
func (prop) CreateTable(context.Context, cluster.TableSpec) (cluster.Attempts, error) {
	return cluster.Attempts{}, nil
}

func (prop) DropTable(context.Context, string) (cluster.Attempts, error) {
	return cluster.Attempts{}, nil
}

func (prop) CreatePartition(context.Context, string, string) (cluster.Attempts, error) {
	return cluster.Attempts{}, nil
}

func (prop) DropPartition(context.Context, string, string) (cluster.Attempts, error) {
	return cluster.Attempts{}, nil
}

// idle is a client whose operations take ten milliseconds.
type idle struct{ h host.Host }

func (i idle) Invoke(ctx context.Context, _ history.Op) (harness.Completion, error) {
	return harness.Completion{}, i.h.Sleep(ctx, 10*time.Millisecond)
}
func (idle) Close(context.Context) error { return nil }

type played struct {
	*stage
	h    history.History
	plan []checker.PlannedFault
}

// play runs one entry of a fault under load.
func play(t *testing.T, f harness.Fault, limit time.Duration, entries ...harness.Entry) played {
	t.Helper()
	o := harness.DefaultOptions()
	o.TimeLimit, o.Concurrency, o.Rate, o.SessionTimeout, o.Tablets = limit, 4, 100, sessionTimeout, 4
	rec, err := harness.NewRecorder("")
	require.NoError(t, err)
	world := sim.NewWorld(sim.Config{Observe: rec.Observe, NoZooKeeper: true})
	defer world.Close()
	s := newStage(world, rec)
	require.NoError(t, f.Supports(s))
	for i := range entries {
		entries[i].ID, entries[i].Fault = i, f.Name
	}
	p := played{stage: s, plan: harness.Planned(o, []harness.Fault{f}, entries)}
	require.NoError(t, world.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		p.h, err = harness.Run(ctx, harness.Test{
			Options: o, Faults: []harness.Fault{f}, Schedule: entries, Control: c, Cluster: s, HostWorld: world, Recorder: rec,
			Workload: harness.Workload{
				Name: "idle",
				Open: func(context.Context, harness.Env, history.Process) (harness.Client, error) { return idle{c}, nil },
				Generator: func(o harness.Options) harness.Generator {
					return gen.Rate(o.Rate, gen.Ops(func(harness.Context) history.Op { return history.Op{F: "read"} }))
				},
			},
		})
		return err
	}))
	problems, err := history.Events[history.Harness](p.h)
	require.NoError(t, err)
	require.Empty(t, problems)
	return p
}

// coverage asks the checker whether the planned effects were seen.
func (p played) coverage(t *testing.T) checker.Verdict {
	t.Helper()
	v, err := checker.NewCoverage(checker.CoverageOptions{Planned: p.plan, MinAcknowledged: 1}).Check(t.Context(), p.h)
	require.NoError(t, err)
	return v
}

// window is when the entry's fault was in force.
func (p played) window(t *testing.T, id int) (from, to time.Duration, targets []string) {
	t.Helper()
	records, err := history.Events[history.Fault](p.h)
	require.NoError(t, err)
	for _, r := range records {
		if r.Event.ID != id {
			continue
		}
		if r.Event.State == history.StateStart {
			from, targets = r.Op.Time, r.Event.Target
		} else {
			to = r.Op.Time
		}
	}
	require.NotZero(t, to, "the window never ended")
	return from, to, targets
}
