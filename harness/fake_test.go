package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

// request is the one message of the fake cluster: a read of a key, or a write.
type request struct {
	key   string
	value []byte // nil: a read
}

func (r *request) Clone() host.Message { c := *r; return &c }
func (r *request) API() string         { return "request" }

// fake is a cluster of servers in front of one store, linearizable because the
// store is one map. It is the smallest thing that the harness can test.
type fake struct {
	world host.World
	nodes []cluster.NodeInfo
	procs map[cluster.NodeID]host.Node
	mu    sync.Mutex
	store map[string][]byte
	logs  int // records written
	// Broken, if set, is what each operation does before anything else.
	broken  func(client cluster.NodeID, r *request) error
	unmet   func() []cluster.Predicate
	started bool
	stopped bool
	heals   int
}

func newFake(world host.World, servers int) *fake {
	f := &fake{world: world, procs: map[cluster.NodeID]host.Node{}, store: map[string][]byte{}}
	for i := range servers {
		id := cluster.NodeID(fmt.Sprintf("tablet-%d", i))
		f.nodes = append(f.nodes, cluster.NodeInfo{ID: id, Role: cluster.RoleTablet, Server: i})
		f.procs[id] = world.NewNode(id, f.serve)
	}
	return f
}

func (f *fake) serve(_ context.Context, h host.Host) {
	h.Serve(func(ctx context.Context, from cluster.NodeID, m host.Message) (host.Message, error) {
		r := m.(*request)
		if err := h.Sleep(ctx, time.Duration(1+h.Rand().IntN(2000))*time.Microsecond); err != nil {
			return nil, err
		}
		f.mu.Lock() // in real time each server has a goroutine of its own
		defer f.mu.Unlock()
		if r.value != nil {
			f.store[r.key] = r.value
			f.logs++
		}
		return &request{key: r.key, value: f.store[r.key]}, nil
	})
}

func (f *fake) Nodes() []cluster.NodeInfo { return f.nodes }

func (f *fake) Start(ctx context.Context) error {
	f.started = true
	for _, n := range f.nodes {
		if err := f.procs[n.ID].Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Stop(ctx context.Context) error {
	f.stopped = true
	var all error
	for _, n := range f.nodes {
		if f.procs[n.ID].Up() {
			all = errors.Join(all, f.procs[n.ID].Kill(ctx))
		}
	}
	return all
}

func (f *fake) Kill(ctx context.Context, id cluster.NodeID) error { return f.procs[id].Kill(ctx) }
func (f *fake) PowerLoss(ctx context.Context, id cluster.NodeID) error {
	return f.procs[id].PowerLoss(ctx)
}

func (f *fake) StartNode(ctx context.Context, id cluster.NodeID) error {
	f.heals++
	return f.procs[id].Start(ctx)
}
func (f *fake) Up(id cluster.NodeID) bool { return f.procs[id].Up() }

func (f *fake) Unconverged(context.Context) ([]cluster.Predicate, error) {
	var unmet []cluster.Predicate
	for _, n := range f.nodes {
		if !f.Up(n.ID) {
			unmet = append(unmet, cluster.Predicate{Name: "every-node-up", Reason: string(n.ID) + " is down"})
		}
	}
	if f.unmet != nil {
		unmet = append(unmet, f.unmet()...)
	}
	return unmet, nil
}

func (f *fake) Dial(_ context.Context, client, _ cluster.NodeID) (cluster.Conn, error) {
	return &fakeConn{f: f, h: f.world.Control().Endpoint(client), name: client}, nil
}

// fakeConn asks one server after the other.
type fakeConn struct {
	f    *fake
	h    host.Host
	name cluster.NodeID
	next int
}

func (c *fakeConn) Close(context.Context) error { return nil }

func (c *fakeConn) call(ctx context.Context, r *request) ([]byte, cluster.Attempts, error) {
	var a cluster.Attempts
	if c.f.broken != nil {
		if err := c.f.broken(c.name, r); err != nil {
			return nil, a, err
		}
	}
	for {
		a.Node = c.f.nodes[c.next%len(c.f.nodes)].ID
		a.Tries++
		reply, err := c.h.Call(ctx, a.Node, r)
		switch {
		case err == nil:
			return reply.(*request).value, a, nil
		case !cluster.IsDefinite(err) || a.Tries > 10:
			c.next++
			return nil, a, err
		}
		c.next++
		if err := c.h.Sleep(ctx, time.Millisecond); err != nil {
			return nil, a, cluster.Definite(err)
		}
	}
}

func (c *fakeConn) Put(ctx context.Context, _, key string, value []byte) (cluster.Attempts, error) {
	_, a, err := c.call(ctx, &request{key: key, value: value})
	return a, err
}

func (c *fakeConn) Get(ctx context.Context, _, key string) ([]byte, cluster.Attempts, error) {
	return c.call(ctx, &request{key: key})
}

func (c *fakeConn) CreateTable(context.Context, cluster.TableSpec) (cluster.Attempts, error) {
	return cluster.Attempts{}, nil
}

func (c *fakeConn) DropTable(context.Context, string) (cluster.Attempts, error) {
	return cluster.Attempts{}, cluster.ErrUnsupported
}

func (c *fakeConn) CreatePartition(context.Context, string, string) (cluster.Attempts, error) {
	return cluster.Attempts{}, cluster.ErrUnsupported
}

func (c *fakeConn) DropPartition(context.Context, string, string) (cluster.Attempts, error) {
	return cluster.Attempts{}, cluster.ErrUnsupported
}

func (c *fakeConn) Buckets(context.Context, string) (int, cluster.Attempts, error) {
	return 2, cluster.Attempts{}, nil
}

func (c *fakeConn) Append(context.Context, string, int, [][]byte) (int64, cluster.Attempts, error) {
	return 0, cluster.Attempts{}, cluster.ErrUnsupported
}

// Fetch pretends that every record lies in each bucket.
func (c *fakeConn) Fetch(
	ctx context.Context, _ string, _ int, offset int64, max int,
) ([]cluster.Record, int64, int64, cluster.Attempts, error) {
	if err := c.h.Sleep(ctx, time.Millisecond); err != nil {
		return nil, 0, 0, cluster.Attempts{}, err
	}
	c.f.mu.Lock()
	end := int64(c.f.logs)
	c.f.mu.Unlock()
	n := min(end-offset, int64(max))
	return make([]cluster.Record, n), offset + n, end, cluster.Attempts{Tries: 1}, nil
}

// problemIn reports whether a text names one of the words.
func problemIn(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
