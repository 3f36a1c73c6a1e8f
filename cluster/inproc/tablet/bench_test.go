package tablet_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/inproc/tablet"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/sim"
)

const (
	boss     = cluster.NodeID("coordinator-0")
	accounts = cluster.BucketID("accounts#1/0")
	journal  = cluster.BucketID("journal#2/0")
)

// relay has the scripted coordinator send a message in its own name.
type relay struct {
	to cluster.NodeID
	m  host.Message
}

func (r relay) Clone() host.Message { return relay{r.to, r.m.Clone()} }
func (relay) API() string           { return "relay" }

// seen is an event with its time.
type seen struct {
	at   time.Duration
	node cluster.NodeID
	e    history.Event
}

// bench is a simulated world of tablets and a coordinator that does only what
// the test says.
type bench struct {
	t      *testing.T
	w      *sim.World
	c      host.Control
	ctx    context.Context
	nodes  map[int]host.Node
	knobs  map[int]*tablet.Knobs
	events []seen
	lives  map[int]int64 // server → incarnation, 0 while down
	lai    map[cluster.BucketID]protocol.LeaderAndIsr
	minISR int
	size   int
	epoch  int64 // of the coordinator
	stubs  map[cluster.NodeID]*stubSession
	zxid   int64
	// adjust answers AdjustIsr; the default accepts by compare-and-set.
	adjust func(p protocol.IsrProposal) protocol.IsrResult
}

type options struct {
	seed   uint64
	size   int // tablets = replicas
	minISR int
	policy func(*protocol.TabletPolicy)
	timing tablet.Timing
	wait   time.Duration // latency of a hop
	// zookeeper has tablets register in the simulated ZooKeeper; without it a
	// stub lets them register at once, also after a kill.
	zookeeper bool
}

func run(t *testing.T, o options, script func(b *bench)) []seen {
	t.Helper()
	if o.size == 0 {
		o.size = 3
	}
	if o.minISR == 0 {
		o.minISR = 2
	}
	b := &bench{
		t: t, nodes: map[int]host.Node{}, lives: map[int]int64{}, knobs: map[int]*tablet.Knobs{},
		stubs: map[cluster.NodeID]*stubSession{}, lai: map[cluster.BucketID]protocol.LeaderAndIsr{}, minISR: o.minISR, size: o.size, epoch: 1,
	}
	b.adjust = b.compareAndSet
	b.w = sim.NewWorld(sim.Config{Seed: o.seed, Log: logger(), Observe: b.observe, Latency: o.wait})
	t.Cleanup(b.w.Close)
	policy := protocol.Sound().Tablet
	if o.policy != nil {
		o.policy(&policy)
	}
	for i := range o.size {
		b.knobs[i] = &tablet.Knobs{}
		main := tablet.New(tablet.Config{
			Server: i, Policy: policy, SessionTimeout: 3 * time.Second, Knobs: b.knobs[i], Timing: o.timing,
		})
		if !o.zookeeper {
			main = withStub(b, main)
		}
		b.nodes[i] = b.w.NewNode(tablet.NodeOf(i), main)
	}
	coordinator := b.w.NewNode(boss, b.coordinator)
	err := b.w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		b.c, b.ctx = c, ctx
		require.NoError(t, coordinator.Start(ctx))
		for i := range o.size {
			b.start(i)
		}
		script(b)
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, b.w.Findings())
	return b.events
}

func (b *bench) observe(node cluster.NodeID, at time.Duration, e history.Event) {
	b.events = append(b.events, seen{at, node, e})
	switch e := e.(type) {
	case history.Ready:
		b.lives[e.Server] = e.Incarnation
	case history.Node:
		require.NotEqual(b.t, history.NodePanicked, e.State, e.Error)
	}
}

func (b *bench) coordinator(_ context.Context, h host.Host) {
	h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
		switch m := m.(type) {
		case relay:
			return h.Call(ctx, m.to, m.m)
		case *protocol.AdjustIsr:
			reply := &protocol.AdjustIsrReply{}
			for _, p := range m.Buckets {
				reply.Buckets = append(reply.Buckets, b.adjust(p))
			}
			return reply, nil
		case *protocol.InitWriter:
			return &protocol.InitWriterReply{Writer: 7}, nil
		case *protocol.ControlledShutdown:
			return &protocol.ControlledShutdownReply{}, nil
		default:
			return nil, fmt.Errorf("unexpected %s", m.API())
		}
	})
}

// compareAndSet is the sound answer to a proposal.
func (b *bench) compareAndSet(p protocol.IsrProposal) protocol.IsrResult {
	now := b.lai[p.Bucket]
	switch {
	case p.LeaderEpoch != now.LeaderEpoch:
		return protocol.IsrResult{Bucket: p.Bucket, Code: protocol.CodeFencedLeaderEpoch}
	case p.BucketEpoch != now.BucketEpoch:
		return protocol.IsrResult{Bucket: p.Bucket, Code: protocol.CodeInvalidUpdateVersion, LAI: now}
	}
	now.ISR, now.BucketEpoch = p.NewISR, now.BucketEpoch+1
	b.lai[p.Bucket] = now
	return protocol.IsrResult{Bucket: p.Bucket, LAI: now}
}

func (b *bench) sleep(d time.Duration) { require.NoError(b.t, b.c.Sleep(b.ctx, d)) }

// until waits, in virtual time, until ok holds.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	for range 20_000 {
		if ok() {
			return
		}
		b.sleep(time.Millisecond)
	}
	require.FailNow(b.t, "never: "+what)
}

func (b *bench) start(server int) {
	b.lives[server] = 0
	require.NoError(b.t, b.nodes[server].Start(b.ctx))
	b.until("registered", func() bool { return b.lives[server] != 0 })
}

func (b *bench) kill(server int) {
	require.NoError(b.t, b.nodes[server].Kill(b.ctx))
	b.lives[server] = 0
}

func (b *bench) powerLoss(server int) {
	require.NoError(b.t, b.nodes[server].PowerLoss(b.ctx))
	b.lives[server] = 0
}

// call sends a message from the client, send from the coordinator.
func (b *bench) call(server int, m host.Message) (host.Message, error) {
	ctx, cancel := b.c.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	return b.c.Call(ctx, tablet.NodeOf(server), m)
}

func (b *bench) send(server int, m host.Message) (host.Message, error) {
	ctx, cancel := b.c.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	return b.c.Call(ctx, boss, relay{tablet.NodeOf(server), m})
}

func (b *bench) servers() []int {
	var all []int
	for i := range b.size {
		all = append(all, i)
	}
	return all
}

func (b *bench) table(id cluster.BucketID) protocol.TableInfo {
	info := protocol.TableInfo{Name: "accounts", ID: 1, Kind: cluster.KVTable, Buckets: 1, Replication: b.size, MinISR: b.minISR}
	if id == journal {
		info.Name, info.ID, info.Kind = "journal", 2, cluster.LogTable
	}
	return info
}

// order makes the notification of a bucket's present LeaderAndIsr.
func (b *bench) order(server int, ids ...cluster.BucketID) *protocol.NotifyLeaderAndIsr {
	m := &protocol.NotifyLeaderAndIsr{CoordinatorEpoch: b.epoch, MaxWaitMillis: 200, Term: protocol.TermRef{Coordinator: string(boss), Zxid: b.epoch}}
	for _, id := range ids {
		m.Buckets = append(m.Buckets, protocol.BucketState{
			Bucket: id, Table: b.table(id), Replicas: b.servers(), LAI: b.lai[id].Clone(), Incarnation: b.lives[server],
		})
	}
	return m
}

// notify orders one server, and returns its answer.
func (b *bench) notify(server int, ids ...cluster.BucketID) *protocol.NotifyLeaderAndIsrReply {
	answer, err := b.send(server, b.order(server, ids...))
	require.NoError(b.t, err)
	return answer.(*protocol.NotifyLeaderAndIsrReply)
}

// elect makes a new leader, in the coordinator's books, and tells those named.
func (b *bench) elect(id cluster.BucketID, leader int, isr []int, tell ...int) {
	old, known := b.lai[id]
	if !known {
		old = protocol.LeaderAndIsr{LeaderEpoch: -1, BucketEpoch: -1}
	}
	b.lai[id] = protocol.LeaderAndIsr{
		Leader: leader, LeaderEpoch: old.LeaderEpoch + 1, BucketEpoch: old.BucketEpoch + 1, ISR: isr, CoordinatorEpoch: b.epoch,
	}
	for _, server := range tell {
		m := b.order(server, id)
		m.MaxWaitMillis = 0
		answer, err := b.send(server, m)
		require.NoError(b.t, err)
		require.NotEqual(b.t, protocol.NotifyFailed, answer.(*protocol.NotifyLeaderAndIsrReply).Buckets[0].Status,
			"server %d, %+v", server, answer)
	}
}

// admitted waits until a server serves a bucket at its present leader epoch.
func (b *bench) admitted(id cluster.BucketID) {
	b.t.Helper()
	leader := b.lai[id].Leader
	b.until(fmt.Sprintf("server %d leads %s at %d", leader, id, b.lai[id].LeaderEpoch), func() bool {
		r := b.replica(leader, id)
		return r.Admitted && r.LeaderEpoch == b.lai[id].LeaderEpoch
	})
}

func (b *bench) replica(server int, id cluster.BucketID) protocol.ReplicaState {
	answer, err := b.call(server, &protocol.Probe{})
	require.NoError(b.t, err)
	for _, r := range answer.(*protocol.ProbeReply).Replicas {
		if r.Bucket == id {
			return r
		}
	}
	return protocol.ReplicaState{LeaderEpoch: -1, Leader: protocol.NoLeader}
}

// put writes with a fresh sequence; timeout in milliseconds.
func (b *bench) put(server int, key, value string) *protocol.WriteReply {
	return b.putAs(server, -1, 0, key, value, 1000)
}

func (b *bench) putAs(server int, writer int64, seq int, key, value string, timeout int) *protocol.WriteReply {
	answer, err := b.call(server, &protocol.PutKv{
		Client: "control", Bucket: accounts, Writer: writer, Seq: seq, Acks: protocol.AcksAll, TimeoutMillis: timeout,
		Rows: []protocol.Row{{Key: key, Value: []byte(value)}},
	})
	require.NoError(b.t, err)
	return answer.(*protocol.WriteReply)
}

func (b *bench) mustPut(server int, key, value string) {
	b.t.Helper()
	require.Equal(b.t, protocol.CodeNone, b.put(server, key, value).Code)
}

func (b *bench) get(server int, key string) (string, protocol.Code) {
	return b.getWithin(server, key, 1000)
}

func (b *bench) getWithin(server int, key string, timeout int) (string, protocol.Code) {
	answer, err := b.call(server, &protocol.Lookup{Client: "control", Bucket: accounts, TimeoutMillis: timeout, Keys: []string{key}})
	require.NoError(b.t, err)
	reply := answer.(*protocol.LookupReply)
	if reply.Code != protocol.CodeNone {
		return "", reply.Code
	}
	return string(reply.Values[0]), protocol.CodeNone
}

func (b *bench) mustGet(server int, key, want string) {
	b.t.Helper()
	got, code := b.get(server, key)
	require.Equal(b.t, protocol.CodeNone, code)
	require.Equal(b.t, want, got)
}

// hold holds requests, or replies, until the returned Undo.
func (b *bench) hold(m host.Match) host.Undo {
	return b.w.Network().Apply(host.Rule{Match: m, Hold: true}, time.Hour)
}

// cut loses all messages of these APIs to and from a node, until the returned
// Undo.
func (b *bench) cut(node cluster.NodeID, apis ...string) host.Undo {
	var undo []host.Undo
	for _, m := range []host.Match{{From: []cluster.NodeID{node}}, {To: []cluster.NodeID{node}}} {
		m.Both, m.APIs = true, apis
		for _, api := range apis {
			m.APIs = append(m.APIs, api+"Reply")
		}
		undo = append(undo, b.w.Network().Apply(host.Rule{Match: m, Drop: 1}, time.Hour))
	}
	return func() { undo[0](); undo[1]() }
}

func violations(events []seen) []history.Violation {
	var out []history.Violation
	for _, s := range events {
		if v, ok := s.e.(history.Violation); ok {
			out = append(out, v)
		}
	}
	return out
}

func roles(events []seen, server int, id cluster.BucketID) []string {
	var out []string
	for _, s := range events {
		if r, ok := s.e.(history.Role); ok && r.Server == server && r.Bucket == string(id) {
			out = append(out, r.State)
		}
	}
	return out
}

func count[E history.Event](events []seen, match func(E) bool) int {
	return len(slices.DeleteFunc(slices.Clone(events), func(s seen) bool {
		e, ok := s.e.(E)
		return !ok || !match(e)
	}))
}

func logger() *zap.Logger {
	if os.Getenv("TABLET_LOG") == "" {
		return zap.NewNop()
	}
	return zap.Must(zap.NewDevelopment())
}
