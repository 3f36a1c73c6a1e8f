package coordinator

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// errTermOver says that nothing more may be done in this term's name.
var errTermOver = errors.New("term is over")

// errFenced says that another has taken a newer coordinator epoch.
var errFenced = errors.New("fenced by a newer coordinator epoch")

// term is one stay in office. It belongs to one ZooKeeper session and ends with
// it, by fencing, or by resignation.
type term struct {
	c      *coordinator
	h      host.Host
	policy protocol.CoordinatorPolicy
	timing Timing
	log    *zap.Logger
	z      zk
	ref    protocol.TermRef
	epoch  int64
	token  int32 // the epoch node's ZooKeeper version: the fencing token

	ctx    context.Context //nolint:containedctx // ends with the term; for its tasks and channels
	cancel context.CancelFunc
	// work is the context of the event loop. It is ctx, unless the guards are
	// dropped: then a decision once taken is written whatever became of the term.
	work    context.Context //nolint:containedctx // as above
	over    bool
	changed host.Cond // over, a request done, an acknowledgement
	queue   *host.Queue[*request]

	state
	tablets  map[int]tabletServer // those registered
	leaving  map[int]int64        // shutting down, by incarnation
	channels map[int]*channel     // one for each of tablets
	writers  writerBlock
	gone     []*deletion // of dropped tables and partitions, not yet finished
}

func newTerm(c *coordinator, z zk, epoch int64, token int32) *term {
	t := &term{
		c: c, h: c.h, policy: c.policy, timing: c.timing, z: z, epoch: epoch, token: token,
		log:     c.log.With(zap.Int64("epoch", epoch)),
		ref:     protocol.TermRef{Coordinator: string(c.h.ID())},
		changed: c.h.NewCond(), queue: host.NewQueue[*request](c.h),
		state: newState(), tablets: map[int]tabletServer{}, leaving: map[int]int64{}, channels: map[int]*channel{},
	}
	t.ctx, t.cancel = c.h.WithCancel(c.h.Context())
	t.work = t.ctx
	if !t.policy.GuardWrites {
		t.work = c.h.Context()
	}
	return t
}

func (t *term) report(state, reason string) {
	t.h.Observe(history.Term{
		Coordinator: t.ref.Coordinator, Epoch: t.epoch, Zxid: t.ref.Zxid, Session: t.z.s.ID(), State: state, Reason: reason,
	})
}

// end stops the event loop and the channels, at once and for good. No park.
func (t *term) end(state, reason string) {
	if t.over {
		return
	}
	t.over = true
	if t.c.term == t {
		t.c.term = nil
	}
	t.cancel()
	t.report(state, reason)
	t.changed.Broadcast()
	t.c.changed.Broadcast()
}

func (t *term) resign(reason string) { t.end(history.TermResigned, reason) }
func (t *term) fence(reason string)  { t.end(history.TermFenced, reason) }

// await waits until the term is over (p); false says that ctx, and with it the
// session, ended first.
func (t *term) await(ctx context.Context) bool {
	for !t.over {
		if t.changed.Wait(ctx) != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// request is an event of the loop. Whoever asked may wait for done.
type request struct {
	name    string
	run     func(ctx context.Context)
	started bool
	done    bool
}

// post queues an event. It never parks.
func (t *term) post(name string, run func(ctx context.Context)) *request {
	r := &request{name: name, run: run}
	if !t.over {
		t.queue.Put(r)
	}
	return r
}

// answer is what became of a request that somebody waited for.
type answer uint8

const (
	refused   answer = iota // it was not begun, and never will be
	uncertain               // it was begun; nobody knows more
	answered                // it is done
)

// ask queues an event and waits until it is done or the term is over (p).
func (t *term) ask(ctx context.Context, name string, run func(ctx context.Context)) answer {
	r := t.post(name, run)
	for !r.done && !t.over {
		if t.changed.Wait(ctx) != nil {
			break
		}
	}
	switch {
	case r.done:
		return answered
	case r.started:
		return uncertain
	default:
		r.run = nil // nobody may run what was answered as refused
		return refused
	}
}

// run is the event loop: all decisions of the term are taken in it, one after
// the other. A decision that fails is logged and does not end the loop; what is
// wrong is looked at again by whatever happens next.
func (t *term) run(ctx context.Context) {
	if err := t.load(ctx); err != nil {
		t.log.Info("load state", zap.Error(err))
		t.resign("load state: " + err.Error())
		return
	}
	for !t.over {
		r, err := t.queue.Take(t.ctx)
		if err != nil {
			return
		}
		if r.run == nil {
			continue
		}
		r.started = true
		r.run(ctx)
		r.done = true
		t.changed.Broadcast()
	}
}

// serve opens the office: from now on requests are taken. The state is loaded.
func (t *term) serve() {
	if t.over {
		return
	}
	t.c.term = t
	t.c.changed.Broadcast()
	t.report(history.TermServing, "")
	t.h.Go(t.ctx, "watch tablets", t.watchTablets)
	t.h.Go(t.ctx, "watch tables", t.watchTables)
	t.h.Go(t.ctx, "partition creator", t.createPartitions)
}

// coordinator is who coordinates, as tablets and clients are told.
func (t *term) coordinator() protocol.ServerNode {
	return protocol.ServerNode{Server: -1, Node: t.h.ID()}
}

// liveTablets lists the registered tablets, sorted.
func (t *term) liveTablets() []protocol.ServerNode {
	out := make([]protocol.ServerNode, 0, len(t.tablets))
	for server, s := range t.tablets { // sorted below
		out = append(out, protocol.ServerNode{Server: server, Node: s.node, Incarnation: s.incarnation})
	}
	slices.SortFunc(out, func(a, b protocol.ServerNode) int { return a.Server - b.Server })
	return out
}

// isLeaving reports whether a tablet is about to stop.
func (t *term) isLeaving(server int) bool {
	at, ok := t.leaving[server]
	return ok && at == t.tablets[server].incarnation
}

// tabletServer is a registered tablet.
type tabletServer struct {
	node        cluster.NodeID
	incarnation int64 // czxid of its registration
}
