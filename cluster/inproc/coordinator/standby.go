package coordinator

import (
	"context"
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// standbyTerm is the planted bug standby-serves: a coordinator that is not in
// office executes a request as if it were. It reads ZooKeeper and acts with the
// epoch that it finds there, which is another's, so no guard stops it. It opens
// no channel: the one in office finds out by its watches, or by a lost
// compare-and-set.
func (c *coordinator) standbyTerm(ctx context.Context) (*term, error) {
	if c.session == nil || c.session.State() != host.Connected {
		return nil, errSessionOver
	}
	z := zk{h: c.h, s: c.session, retry: c.timing.Retry}
	data, stat, err := z.get(ctx, protocol.EpochPath)
	if err != nil {
		return nil, err
	}
	epoch, err := protocol.DecodeEpoch(data)
	if err != nil {
		return nil, err
	}
	t := newTerm(c, z, epoch, stat.Version)
	if t.tablets, err = readTablets(ctx, z); err == nil {
		err = t.syncTables(ctx)
	}
	if err != nil {
		t.discard()
		return nil, fmt.Errorf("read state on standby: %w", err)
	}
	c.h.Go(t.work, "standby request", func(ctx context.Context) {
		r, err := t.queue.Take(ctx)
		if err != nil {
			return
		}
		r.started = true
		r.run(ctx)
		r.done = true
		t.changed.Broadcast()
	})
	return t, nil
}

// discard ends a term that never was one.
func (t *term) discard() {
	t.over = true
	t.cancel()
}
