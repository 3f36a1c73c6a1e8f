package inproc

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/sim"
)

// experiment is one run of a simulated cluster under load and faults.
type experiment struct {
	seed            uint64
	policy          protocol.Policy
	coordinators    int
	tablets         int
	buckets         int
	replication     int
	minISR          int
	clients         int
	pause           time.Duration // between two operations of a client, on average
	length          time.Duration
	latency, jitter time.Duration
	recovery        time.Duration
	session         time.Duration
	timeout         time.Duration // of an operation
	gap             time.Duration // the longest time without a success; 0 for any
	faults          func(ctx context.Context, l *lab)
	world           func(*sim.Config)
}

func (e experiment) withDefaults() experiment {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&e.coordinators, 3)
	set(&e.tablets, 3)
	set(&e.buckets, 2)
	set(&e.replication, 3)
	set(&e.minISR, 2)
	set(&e.clients, 6)
	if e.pause == 0 {
		e.pause = 50 * time.Millisecond
	}
	if e.length == 0 {
		e.length = 30 * time.Second
	}
	if e.timeout == 0 {
		e.timeout = 4 * time.Second
	}
	if e.session == 0 {
		e.session = 3 * time.Second
	}
	if e.policy == (protocol.Policy{}) {
		e.policy = protocol.Sound()
	}
	return e
}

// lab runs an experiment and records it.
type lab struct {
	experiment
	w      *sim.World
	c      host.Control
	cl     *Cluster
	r      *rand.Rand // the workload's draws
	f      *rand.Rand // the faults' draws
	ops    []history.Op
	next   int // the last value written
	tables int // created beside the one that is written
	// client processes are numbered on, one number a connection
	process int
	running int
	ended   host.Cond
	over    bool
	// what did not converge after the faults, or nil
	unconverged []cluster.Predicate
	trace       uint64
	start       time.Duration
	acked       int
	tally       cluster.Attempts
	verdicts    []checker.Verdict
}

// perform runs an experiment; an error is one of the run, not of the system.
func perform(tb testing.TB, e experiment) (*lab, error) {
	tb.Helper()
	e = e.withDefaults()
	l := &lab{experiment: e, r: kernel.Stream(e.seed, "lab/load"), f: kernel.Stream(e.seed, "lab/faults")}
	cfg := sim.Config{Seed: e.seed, Latency: e.latency, Jitter: e.jitter, Observe: l.observe}
	if e.world != nil {
		e.world(&cfg)
	}
	l.w = sim.NewWorld(cfg)
	defer l.w.Close()
	err := l.w.Run(tb.Context(), func(ctx context.Context, c host.Control) error {
		l.c, l.ended = c, c.NewCond()
		return l.run(ctx)
	})
	l.trace = l.w.TraceHash()
	return l, err
}

func (l *lab) observe(node cluster.NodeID, at time.Duration, e history.Event) {
	op, err := history.NewEvent(string(node), e)
	if err != nil {
		panic(err)
	}
	l.record(at, op)
}

func (l *lab) record(at time.Duration, op history.Op) {
	op.Index, op.Time = len(l.ops), at
	l.ops = append(l.ops, op)
}

func (l *lab) run(ctx context.Context) error {
	cl, err := New(l.w, Config{
		Coordinators: l.coordinators, Tablets: l.tablets, Policy: l.policy, SessionTimeout: l.session, Recovery: l.recovery,
	})
	if err != nil {
		return err
	}
	l.cl = cl
	if err := l.within(ctx, 20*time.Second, cl.Start); err != nil {
		return err
	}
	if err := l.createTable(ctx); err != nil {
		return err
	}
	l.start = l.c.Now()
	l.running = l.clients
	for i := range l.clients {
		l.c.Go(ctx, fmt.Sprintf("worker %d", i), l.work)
	}
	if l.faults != nil {
		l.running++
		l.c.Go(ctx, "faults", func(ctx context.Context) {
			l.faults(ctx, l)
			l.done()
		})
	}
	if err := l.c.Sleep(ctx, l.length); err != nil {
		return err
	}
	l.over = true
	for l.running > 0 {
		if err := l.ended.Wait(ctx); err != nil {
			return err
		}
	}
	if err := l.heal(ctx); err != nil {
		return err
	}
	if err := l.converge(ctx, 30*time.Second); err != nil {
		return err
	}
	l.finalReads(ctx)
	return cl.Stop(ctx)
}

func (l *lab) done() {
	l.running--
	l.ended.Broadcast()
}

func (l *lab) within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := l.c.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}

func (l *lab) createTable(ctx context.Context) error {
	conn, err := l.cl.Dial(ctx, "setup", "")
	if err != nil {
		return err
	}
	return l.within(ctx, 20*time.Second, func(ctx context.Context) error {
		if _, err := conn.(cluster.Admin).CreateTable(ctx, cluster.TableSpec{
			Name: "orders", Kind: cluster.KVTable, Buckets: l.buckets, Replication: l.replication, MinISR: l.minISR,
		}); err != nil {
			return err
		}
		for i := range 4 * l.buckets {
			if _, err := conn.(cluster.KV).Put(ctx, "orders", fmt.Sprintf("warm-%d", i), []byte("0")); err != nil {
				return fmt.Errorf("first put %d: %w", i, err)
			}
		}
		return conn.Close(ctx)
	})
}

// key draws a key of the present generation: hot, so that operations meet.
func (l *lab) key() string {
	const perGeneration = 600
	return fmt.Sprintf("k%d-%d", l.r.IntN(4), (l.next*2)/perGeneration)
}

func (l *lab) work(ctx context.Context) {
	defer l.done()
	for !l.over {
		name := cluster.NodeID(fmt.Sprintf("client-%d", l.process))
		process := history.Process(l.process)
		l.process++
		conn, err := l.cl.Dial(ctx, name, "")
		if err != nil {
			return
		}
		for !l.over {
			if l.c.Sleep(ctx, time.Duration(l.r.ExpFloat64()*float64(l.pause))) != nil {
				return
			}
			if !l.operation(ctx, conn.(cluster.KV), process, l.key(), l.r.IntN(2) == 0) {
				break // an operation of unknown outcome ends the process
			}
		}
		_ = conn.Close(ctx)
	}
}

// operation does and records one read or write; false means unknown.
func (l *lab) operation(ctx context.Context, kv cluster.KV, p history.Process, key string, write bool) bool {
	ctx, cancel := l.c.WithTimeout(ctx, l.timeout)
	defer cancel()
	value, f := json.RawMessage(nil), "read"
	if write {
		l.next++
		value, f = json.RawMessage(strconv.Itoa(l.next)), "write"
	}
	l.record(l.c.Now(), history.Op{Process: p, Type: history.Invoke, F: f, Value: history.KeyValue{Key: key, Value: value}.JSON()})
	var a cluster.Attempts
	var err error
	if write {
		a, err = kv.Put(ctx, "orders", key, value)
	} else {
		var got []byte
		got, a, err = kv.Get(ctx, "orders", key)
		value = got
	}
	op := history.Op{Process: p, F: f, Type: history.Ok, Node: string(a.Node), Tries: a.Tries, Metadata: a.Metadata}
	op.Value = history.KeyValue{Key: key, Value: value}.JSON()
	switch {
	case err == nil:
		l.acked++
	case cluster.IsDefinite(err):
		op.Type = history.Fail
	default:
		op.Type = history.Info
	}
	if err != nil {
		op.Error = err.Error()
	}
	l.tally.Tries += a.Tries
	l.tally.Metadata += a.Metadata
	l.record(l.c.Now(), op)
	return op.Type != history.Info
}

// heal ends every fault and starts what is down.
func (l *lab) heal(ctx context.Context) error {
	l.w.Network().Heal()
	for _, n := range l.cl.Nodes() {
		if !l.cl.Up(n.ID) {
			if err := l.cl.StartNode(ctx, n.ID); err != nil {
				return err
			}
		}
		if err := l.cl.Resume(ctx, n.ID); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) converge(ctx context.Context, limit time.Duration) error {
	deadline := l.c.Now() + limit
	for {
		var err error
		if l.unconverged, err = l.cl.Unconverged(ctx); err != nil || len(l.unconverged) == 0 || l.c.Now() > deadline {
			return err
		}
		if err := l.c.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (l *lab) finalReads(ctx context.Context) {
	conn, _ := l.cl.Dial(ctx, "final", "")
	p := history.Process(l.process)
	seen := map[string]bool{}
	for _, op := range l.ops {
		if op.Client() && op.Type == history.Invoke {
			if kv, err := history.KeyValueOf(op); err == nil && !seen[kv.Key] {
				seen[kv.Key] = true
				l.operation(ctx, conn.(cluster.KV), p, kv.Key, false)
			}
		}
	}
	_ = conn.Close(ctx)
}

// checkers are all that a run is judged by.
func (l *lab) checkers() []checker.Checker {
	return []checker.Checker{
		checker.NewLinearizable(checker.DefaultLinearizable()), checker.NewInvariants(), checker.NewSingleLeader(),
		checker.NewFencing(), checker.NewStorms(checker.DefaultStorms()),
	}
}

// judge lists what is wrong with the run, a line each, beginning with the name
// of the checker that found it.
func (l *lab) judge(ctx context.Context) []string {
	h, err := history.New(l.ops)
	if err != nil {
		return []string{"history: " + err.Error()}
	}
	var wrong []string
	for _, v := range checker.CheckAll(ctx, h, l.checkers()...).Verdicts {
		if v.Validity != checker.Valid {
			wrong = append(wrong, fmt.Sprintf("%s: %v: %s %s", v.Checker, v.Validity, v.Summary, v.Reason))
		}
		l.verdicts = append(l.verdicts, v)
	}
	wrong = append(wrong, l.gaps()...)
	for _, p := range l.unconverged {
		wrong = append(wrong, "converged: "+p.Name+": "+p.Reason)
	}
	return wrong
}

// gaps lists the times of the load without a success that were too long.
func (l *lab) gaps() []string {
	var wrong []string
	last := l.start
	for _, op := range l.ops {
		if l.gap == 0 || !op.Client() || op.Type != history.Ok || op.Time < l.start || op.Time > l.start+l.length {
			continue
		}
		if op.Time-last > l.gap {
			wrong = append(wrong, fmt.Sprintf("availability: nothing succeeded from %v to %v", last, op.Time))
		}
		last = op.Time
	}
	return wrong
}

// count is how many events of a kind there were.
func (l *lab) count(kind string) int {
	n := 0
	for _, op := range l.ops {
		if op.Process == history.Observer && op.F == kind {
			n++
		}
	}
	return n
}
