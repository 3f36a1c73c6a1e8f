package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// watchTablets posts the registrations whenever they have changed. The watch is
// set before the registrations are read, so none is missed.
func (t *term) watchTablets(ctx context.Context) {
	for {
		_, watch, err := t.z.childrenW(ctx, protocol.TabletIDsPath)
		if err != nil {
			return // the session is over
		}
		seen, err := readTablets(ctx, t.z)
		if err != nil {
			return
		}
		t.post("tablets", func(ctx context.Context) { t.tabletsSeen(ctx, seen) })
		if _, err := watch.Wait(ctx); err != nil {
			return
		}
	}
}

// readTablets reads all registrations with their czxids. Names alone would not
// do: a tablet that restarted between two looks is there both times.
func readTablets(ctx context.Context, z zk) (map[int]tabletServer, error) {
	names, err := z.children(ctx, protocol.TabletIDsPath)
	if err != nil {
		return nil, err
	}
	seen := map[int]tabletServer{}
	for _, name := range names {
		server, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		data, stat, err := z.get(ctx, protocol.TabletPath(server))
		if errors.Is(err, host.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		node, err := protocol.DecodeTabletNode(data)
		if err != nil {
			return nil, fmt.Errorf("read registration of tablet %d: %w", server, err)
		}
		seen[server] = tabletServer{node: node.Node(), incarnation: stat.Czxid}
	}
	return seen, nil
}

// tabletChange is what happened between two looks at the registrations, sorted.
type tabletChange struct {
	gone, bounced, came []int
}

func compareTablets(before, now map[int]tabletServer, seeBounce bool) tabletChange {
	var c tabletChange
	for _, server := range slices.Sorted(maps.Keys(before)) {
		after, ok := now[server]
		switch {
		case !ok:
			c.gone = append(c.gone, server)
		case seeBounce && after.incarnation != before[server].incarnation:
			c.bounced = append(c.bounced, server)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(now)) {
		if _, ok := before[server]; !ok {
			c.came = append(c.came, server)
		}
	}
	return c
}

// tabletsSeen acts on new registrations (p): channels first, so that nothing
// more goes to a former life; then the buckets concerned.
func (t *term) tabletsSeen(ctx context.Context, seen map[int]tabletServer) {
	change := compareTablets(t.tablets, seen, t.policy.SeeBounce)
	if len(change.gone)+len(change.bounced)+len(change.came) == 0 {
		return
	}
	t.log.Info("tablets changed",
		zap.Ints("gone", change.gone), zap.Ints("bounced", change.bounced), zap.Ints("came", change.came))
	for _, server := range slices.Concat(change.gone, change.bounced) {
		t.closeChannel(server)
		delete(t.tablets, server)
		delete(t.leaving, server)
	}
	arrived := slices.Concat(change.bounced, change.came)
	for _, server := range arrived {
		t.tablets[server] = seen[server]
	}
	t.servers = t.tick()
	for _, server := range arrived {
		t.openChannel(server)
	}
	concerned := slices.Concat(change.gone, arrived)
	var buckets []*bucket
	for _, b := range t.order {
		if slices.ContainsFunc(b.replicas, func(s int) bool { return slices.Contains(concerned, s) }) {
			buckets = append(buckets, b)
		}
	}
	t.wake()
	t.replan(ctx, buckets, func(b *bucket) bool {
		return t.policy.ReelectRestarted && slices.Contains(change.bounced, b.lai.Leader) &&
			b.act.key.incarnation != t.tablets[b.lai.Leader].incarnation
	})
	for _, b := range buckets {
		for _, server := range arrived {
			if ch := t.channels[server]; ch != nil && slices.Contains(b.replicas, server) && b.stored {
				ch.tell(b)
			}
		}
	}
}
