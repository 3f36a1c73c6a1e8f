package coordinator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/sim"
)

const sessionTimeout = 3 * time.Second

// lab is a simulated world of coordinators and scripted tablets.
type lab struct {
	*testing.T
	w       *sim.World
	c       host.Control
	s       host.Session // of the control node
	coords  []host.Node
	tablets []*fakeTablet
	events  []seen
}

type seen struct {
	node cluster.NodeID
	at   time.Duration
	history.Event
}

// fakeTablet registers, does what its script says, and remembers what it heard.
type fakeTablet struct {
	server      int
	node        host.Node
	h           host.Host
	incarnation int64
	fences      bool // refuses old coordinators
	epoch       int64

	// script, nil for the ordinary answer
	onNotify func(b protocol.BucketState) protocol.BucketResult
	onStop   func() protocol.Code

	roles     map[cluster.BucketID]protocol.LeaderAndIsr
	told      []protocol.BucketMetadata // every bucket entry of metadata, in order
	metadata  map[cluster.BucketID]protocol.BucketMetadata
	updates   int
	live      []protocol.ServerNode
	deleted   map[cluster.BucketID]bool
	stops     map[cluster.BucketID]int
	fromEpoch map[int64]int // notifications by coordinator epoch
}

type setup struct {
	seed         uint64
	coordinators int
	tablets      int
	policy       *protocol.CoordinatorPolicy
	timing       Timing
}

// run starts a lab, waits until one coordinator is in office, and calls f.
func run(t *testing.T, s setup, f func(ctx context.Context, l *lab)) *lab {
	t.Helper()
	l := &lab{T: t}
	if s.policy == nil {
		sound := protocol.Sound().Coordinator
		s.policy = &sound
	}
	l.w = sim.NewWorld(sim.Config{Seed: s.seed, Observe: func(node cluster.NodeID, at time.Duration, e history.Event) {
		l.events = append(l.events, seen{node, at, e})
	}})
	t.Cleanup(l.w.Close)
	err := l.w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		l.c = c
		session, err := c.Dial(ctx, host.SessionOptions{Timeout: 10 * time.Minute})
		require.NoError(t, err)
		l.s = session
		for i := range s.coordinators {
			n := l.w.NewNode(coordinatorID(i), New(Config{Policy: *s.policy, SessionTimeout: sessionTimeout, Timing: s.timing}))
			l.coords = append(l.coords, n)
			require.NoError(t, n.Start(ctx))
		}
		for i := range s.tablets {
			l.tablets = append(l.tablets, l.newTablet(i))
			require.NoError(t, l.tablets[i].node.Start(ctx))
		}
		l.until(ctx, 20*time.Second, "a coordinator to be in office", func() bool { return l.office(ctx) != "" })
		f(ctx, l)
		return nil
	})
	require.NoError(t, err)
	return l
}

func coordinatorID(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("coordinator-%d", i)) }

func (l *lab) newTablet(server int) *fakeTablet {
	f := &fakeTablet{
		server: server, fences: true, deleted: map[cluster.BucketID]bool{}, stops: map[cluster.BucketID]int{}, fromEpoch: map[int64]int{},
	}
	f.node = l.w.NewNode(cluster.NodeID(fmt.Sprintf("tablet-%d", server)), func(ctx context.Context, h host.Host) {
		f.h = h
		f.roles, f.metadata = map[cluster.BucketID]protocol.LeaderAndIsr{}, map[cluster.BucketID]protocol.BucketMetadata{}
		h.Serve(f.handle)
		for ctx.Err() == nil {
			f.live1(ctx)
		}
	})
	return f
}

// live1 is one session of a tablet.
func (f *fakeTablet) live1(ctx context.Context) {
	s, err := f.h.Dial(ctx, host.SessionOptions{Timeout: sessionTimeout})
	if err != nil {
		_ = f.h.Sleep(ctx, 50*time.Millisecond)
		return
	}
	for s.State() != host.Expired && s.State() != host.Closed {
		data := protocol.NewTabletNode(f.h.ID(), 1).Encode()
		_, zxid, err := s.Create(ctx, protocol.TabletPath(f.server), data, host.Ephemeral)
		if err == nil {
			f.incarnation = zxid
			break
		}
		_ = f.h.Sleep(ctx, 20*time.Millisecond)
	}
	for state := s.State(); state != host.Expired && state != host.Closed; {
		if state, err = s.Changed(ctx, state); err != nil {
			return
		}
	}
}

func (f *fakeTablet) handle(_ context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
	switch m := m.(type) {
	case *protocol.NotifyLeaderAndIsr:
		f.fromEpoch[m.CoordinatorEpoch]++
		if f.old(m.CoordinatorEpoch) {
			return &protocol.NotifyLeaderAndIsrReply{Code: protocol.CodeInvalidCoordinator}, nil
		}
		reply := &protocol.NotifyLeaderAndIsrReply{}
		for _, b := range m.Buckets {
			reply.Buckets = append(reply.Buckets, f.role(b))
		}
		return reply, nil
	case *protocol.UpdateMetadata:
		if f.old(m.CoordinatorEpoch) {
			return &protocol.CodeReply{Code: protocol.CodeInvalidCoordinator}, nil
		}
		f.updates++
		f.live = m.Tablets
		for _, b := range m.Buckets {
			f.told = append(f.told, b)
			f.metadata[b.Bucket] = b
		}
		for _, b := range m.Deleted {
			f.deleted[b] = true
		}
		return &protocol.CodeReply{}, nil
	case *protocol.StopReplica:
		if f.onStop != nil {
			return &protocol.CodeReply{Code: f.onStop()}, nil
		}
		for _, b := range m.Buckets {
			f.stops[b.Bucket]++
			delete(f.roles, b.Bucket)
		}
		return &protocol.CodeReply{}, nil
	default:
		return nil, errors.New("not scripted")
	}
}

func (f *fakeTablet) old(epoch int64) bool {
	if f.fences && epoch < f.epoch {
		return true
	}
	f.epoch = max(f.epoch, epoch)
	return false
}

func (f *fakeTablet) role(b protocol.BucketState) protocol.BucketResult {
	r := protocol.BucketResult{
		Bucket: b.Bucket, LeaderEpoch: b.LAI.LeaderEpoch, Incarnation: f.incarnation, Status: protocol.NotifySuccess,
	}
	if b.Incarnation != f.incarnation {
		r.Status, r.Code = protocol.NotifyFailed, protocol.CodeNotAttempted
		return r
	}
	if f.onNotify != nil {
		r = f.onNotify(b)
		r.Bucket = b.Bucket
	}
	if r.Status != protocol.NotifyFailed {
		f.roles[b.Bucket] = b.LAI
	}
	return r
}

// inProgress is an answer of a tablet that is activating.
func (f *fakeTablet) inProgress(b protocol.BucketState) protocol.BucketResult {
	return protocol.BucketResult{LeaderEpoch: b.LAI.LeaderEpoch, Incarnation: f.incarnation, Status: protocol.NotifyInProgress}
}

func (f *fakeTablet) success(b protocol.BucketState) protocol.BucketResult {
	r := f.inProgress(b)
	r.Status = protocol.NotifySuccess
	return r
}

// until waits for a condition, and fails the test if it does not come true.
func (l *lab) until(ctx context.Context, limit time.Duration, what string, ok func() bool) {
	l.Helper()
	for deadline := l.c.Now() + limit; !ok(); {
		require.Less(l, l.c.Now(), deadline, "wait for %s", what)
		l.sleep(ctx, 5*time.Millisecond)
	}
}

func (l *lab) sleep(ctx context.Context, d time.Duration) {
	l.Helper()
	require.NoError(l, l.c.Sleep(ctx, d))
}

// call asks a node something; a refusal in the answer is no error.
func call1[R host.Message](ctx context.Context, l *lab, to cluster.NodeID, m host.Message) (R, error) {
	ctx, cancel := l.c.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := l.c.Call(ctx, to, m)
	if err != nil {
		var none R
		return none, err
	}
	return answer.(R), nil
}

// office is the coordinator that answers as the one in office, "" if there is
// not exactly one.
func (l *lab) office(ctx context.Context) cluster.NodeID {
	var in []cluster.NodeID
	for _, n := range l.coords {
		if !n.Up() {
			continue
		}
		if m, err := call1[*protocol.GetMetadataReply](ctx, l, n.ID(), &protocol.GetMetadata{}); err == nil && m.Code == protocol.CodeNone {
			in = append(in, n.ID())
		}
	}
	if len(in) != 1 {
		return ""
	}
	return in[0]
}

// awaitOffice waits for a coordinator in office other than the given one.
func (l *lab) awaitOffice(ctx context.Context, not cluster.NodeID) cluster.NodeID {
	l.Helper()
	var in cluster.NodeID
	l.until(ctx, 20*time.Second, "another coordinator", func() bool {
		for _, n := range l.coords {
			if n.ID() != not && n.Up() {
				m, err := call1[*protocol.GetMetadataReply](ctx, l, n.ID(), &protocol.GetMetadata{})
				if err == nil && m.Code == protocol.CodeNone {
					in = n.ID()
					return true
				}
			}
		}
		return false
	})
	return in
}

func (l *lab) ddl(ctx context.Context, to cluster.NodeID, m host.Message) protocol.Code {
	l.Helper()
	reply, err := call1[*protocol.CodeReply](ctx, l, to, m)
	require.NoError(l, err)
	return reply.Code
}

func tableSpec(name string, buckets, replication int) cluster.TableSpec {
	return cluster.TableSpec{Name: name, Kind: cluster.KVTable, Buckets: buckets, Replication: replication, MinISR: min(2, replication)}
}

// create makes a table once all tablets are known, and returns its buckets.
func (l *lab) create(ctx context.Context, to cluster.NodeID, spec cluster.TableSpec) []cluster.BucketID {
	l.Helper()
	l.until(ctx, 10*time.Second, "all tablets to be known", func() bool {
		m, err := call1[*protocol.GetMetadataReply](ctx, l, to, &protocol.GetMetadata{})
		return err == nil && len(m.Tablets) == len(l.tablets)
	})
	require.Equal(l, protocol.CodeNone, l.ddl(ctx, to, &protocol.CreateTable{Spec: spec}))
	m, err := call1[*protocol.GetMetadataReply](ctx, l, to, &protocol.GetMetadata{Tables: []string{spec.Name}})
	require.NoError(l, err)
	require.Len(l, m.Tables, 1)
	var ids []cluster.BucketID
	for i := range spec.Buckets {
		ids = append(ids, cluster.NewBucket(spec.Name, m.Tables[0].ID, "", -1, i))
	}
	return ids
}

// held is what ZooKeeper holds of a bucket.
func (l *lab) held(ctx context.Context, id cluster.BucketID) (protocol.LeaderAndIsr, bool) {
	l.Helper()
	parts, err := id.Parts()
	require.NoError(l, err)
	data, _, err := l.s.Get(ctx, protocol.LeaderIsrPath(protocol.AssignmentOf(parts), parts.Bucket))
	if errors.Is(err, host.ErrNoNode) {
		return protocol.LeaderAndIsr{}, false
	}
	require.NoError(l, err)
	lai, err := protocol.DecodeLeaderAndIsr(data)
	require.NoError(l, err)
	return lai, true
}

// awaitLed waits until the coordinator tells a leader that ZooKeeper agrees with.
func (l *lab) awaitLed(ctx context.Context, in cluster.NodeID, id cluster.BucketID) protocol.LeaderAndIsr {
	l.Helper()
	var lai protocol.LeaderAndIsr
	l.until(ctx, 20*time.Second, "a leader of "+string(id), func() bool {
		var ok bool
		lai, ok = l.held(ctx, id)
		m := l.metadataOf(ctx, in, id)
		return ok && m != nil && m.Leader == lai.Leader && m.Leader >= 0 && m.LeaderEpoch == lai.LeaderEpoch
	})
	return lai
}

// metadataOf is what a coordinator tells of a bucket, nil for nothing.
func (l *lab) metadataOf(ctx context.Context, in cluster.NodeID, id cluster.BucketID) *protocol.BucketMetadata {
	m, err := call1[*protocol.GetMetadataReply](ctx, l, in, &protocol.GetMetadata{})
	if err != nil {
		return nil
	}
	for _, b := range m.Buckets {
		if b.Bucket == id {
			return &b
		}
	}
	return nil
}

// terms lists the states of terms, as "coordinator-0 elected 0".
func (l *lab) terms() []string {
	var all []string
	for _, e := range l.events {
		if t, ok := e.Event.(history.Term); ok {
			all = append(all, fmt.Sprintf("%s %s %d", t.Coordinator, t.State, t.Epoch))
		}
	}
	return all
}

func (l *lab) node(id cluster.NodeID) host.Node {
	for _, n := range l.coords {
		if n.ID() == id {
			return n
		}
	}
	l.Fatalf("no coordinator %s", id)
	return nil
}

// writesAfter lists what sessions of a node wrote above a zxid, without errors,
// their own ephemerals apart.
func (l *lab) writesAfter(node cluster.NodeID, session, zxid int64) []history.Txn {
	var all []history.Txn
	for _, e := range l.events {
		t, ok := e.Event.(history.Txn)
		if ok && t.Node == string(node) && t.Session == session && t.Zxid > zxid && t.Error == "" && !t.Ephemeral && t.Op != "closeSession" {
			all = append(all, t)
		}
	}
	return all
}
