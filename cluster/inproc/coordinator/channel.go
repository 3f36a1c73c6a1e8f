package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// channel carries what one incarnation of one tablet has to be told. What it
// holds is state to be brought about, not a queue of requests: what is not
// acknowledged is sent again, as it is by then, with back-off and no last try.
type channel struct {
	t      *term
	key    tabletKey
	node   cluster.NodeID
	ctx    context.Context //nolint:containedctx // ends with the channel, for its tasks
	cancel context.CancelFunc
	cond   host.Cond

	notices map[cluster.BucketID]*notice
	stops   map[cluster.BucketID]protocol.StopBucket
	acked   int64 // the change number up to which metadata is acknowledged
}

// openChannel begins to tell a tablet all there is.
func (t *term) openChannel(server int) {
	s := t.tablets[server]
	ch := &channel{
		t: t, key: tabletKey{server, s.incarnation}, node: s.node, cond: t.h.NewCond(),
		notices: map[cluster.BucketID]*notice{}, stops: map[cluster.BucketID]protocol.StopBucket{},
	}
	ch.ctx, ch.cancel = t.h.WithCancel(t.ctx)
	t.channels[server] = ch
	for _, d := range t.gone {
		ch.stopAll(d)
	}
	name := fmt.Sprintf("channel to tablet %d: ", server)
	t.h.Go(ch.ctx, name+"metadata", ch.syncMetadata)
	t.h.Go(ch.ctx, name+"notify", ch.notify)
	t.h.Go(ch.ctx, name+"stop", ch.stopReplicas)
}

func (t *term) closeChannel(server int) {
	if ch := t.channels[server]; ch != nil {
		ch.cancel()
		delete(t.channels, server)
	}
}

// open reports whether the channel still is the one to its tablet.
func (ch *channel) open() bool { return !ch.t.over && ch.t.channels[ch.key.server] == ch }

// sleep waits until something may have changed, or d has passed (p).
func (ch *channel) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	ctx, cancel := ch.t.h.WithTimeout(ch.ctx, d)
	defer cancel()
	_ = ch.cond.Wait(ctx) // the end of the time is no error; callers look at the channel
}

// call sends a request and waits for its answer for so long (p).
func call[R host.Message](ctx context.Context, ch *channel, m host.Message, timeout time.Duration) (R, error) {
	var none R
	ctx, cancel := ch.t.h.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := ch.t.h.Call(ctx, ch.node, m)
	if err != nil {
		return none, err
	}
	reply, ok := answer.(R)
	if !ok {
		return none, errors.New("unexpected answer " + answer.API())
	}
	return reply, nil
}

// refusedAsOld steps down if a tablet says that it knows a newer coordinator
// epoch: somebody took that from the epoch node.
func (t *term) refusedAsOld(server int, code protocol.Code) {
	if code == protocol.CodeInvalidCoordinator {
		t.fence(fmt.Sprintf("tablet %d has processed a newer epoch", server))
	}
}
