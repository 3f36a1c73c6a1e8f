package inproc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

const (
	pollEvery    = 20 * time.Millisecond
	questionTime = 500 * time.Millisecond // one question to one node
)

// observer asks nodes and ZooKeeper how things are, for targets of faults and
// for convergence. It changes nothing and causes no event of a refusal.
type observer struct {
	c       *Cluster
	h       host.Host // an endpoint of its own
	session host.Session
	opening *host.Mutex
}

func newObserver(c *Cluster) *observer {
	return &observer{c: c, h: c.control.Endpoint(observerID), opening: host.NewMutex(c.control)}
}

// zookeeper is an open session; a lost one is replaced.
func (o *observer) zookeeper(ctx context.Context) (host.Session, error) {
	if err := o.opening.Lock(ctx); err != nil {
		return nil, fmt.Errorf("wait for a session: %w", err)
	}
	defer o.opening.Unlock()
	if o.session != nil && o.session.State() != host.Expired && o.session.State() != host.Closed {
		return o.session, nil
	}
	s, err := o.c.control.Dial(ctx, host.SessionOptions{Timeout: o.c.cfg.SessionTimeout})
	if err != nil {
		return nil, fmt.Errorf("open the observer's session: %w", err)
	}
	o.session = s
	return s, nil
}

func (o *observer) close(ctx context.Context) {
	if o.session != nil {
		_ = o.session.Close(ctx) // the server ends it anyhow
		o.session = nil
	}
}

// ask sends a question to one node.
func ask[R host.Message](ctx context.Context, o *observer, node cluster.NodeID, m host.Message) (R, error) {
	var none R
	ctx, cancel := o.h.WithTimeout(ctx, questionTime)
	defer cancel()
	reply, err := o.h.Call(ctx, node, m)
	if err != nil {
		return none, fmt.Errorf("ask %s: %w", node, err)
	}
	r, ok := reply.(R)
	if !ok {
		return none, fmt.Errorf("ask %s: answered %s", node, reply.API())
	}
	return r, nil
}

func (o *observer) probe(ctx context.Context, node cluster.NodeID) (*protocol.ProbeReply, error) {
	return ask[*protocol.ProbeReply](ctx, o, node, &protocol.Probe{})
}

func (o *observer) metadata(ctx context.Context, node cluster.NodeID) (*protocol.GetMetadataReply, error) {
	return ask[*protocol.GetMetadataReply](ctx, o, node, &protocol.GetMetadata{Client: string(observerID)})
}

// await polls until the condition holds: until it gives no reason why not.
func (o *observer) await(ctx context.Context, what string, condition func(ctx context.Context) (reason string)) error {
	for {
		reason := condition(ctx)
		if reason == "" {
			return nil
		}
		if err := o.c.control.Sleep(ctx, pollEvery); err != nil {
			return fmt.Errorf("wait for %s: %w (%s)", what, err, reason)
		}
	}
}

// started says why a table cannot be created and written yet.
func (o *observer) started(ctx context.Context) string {
	for _, info := range o.c.tablets() {
		m, err := o.metadata(ctx, info.ID)
		switch {
		case err != nil:
			return err.Error()
		case m.Coordinator.Node == "":
			return fmt.Sprintf("%s knows no coordinator", info.ID)
		case len(m.Tablets) < len(o.c.tablets()):
			return fmt.Sprintf("%s knows %d of %d tablets", info.ID, len(m.Tablets), len(o.c.tablets()))
		}
	}
	if len(o.inOffice(ctx)) == 0 {
		return "no coordinator in office"
	}
	return ""
}

// inOffice lists the coordinators that answer as the one in office.
func (o *observer) inOffice(ctx context.Context) []cluster.NodeID {
	var leading []cluster.NodeID
	for _, info := range o.c.coordinators() {
		if !o.c.Up(info.ID) {
			continue
		}
		if m, err := o.metadata(ctx, info.ID); err == nil && m.Code == protocol.CodeNone {
			leading = append(leading, info.ID)
		}
	}
	return leading
}

func (o *observer) oneCoordinator(ctx context.Context) string {
	if leading := o.inOffice(ctx); len(leading) != 1 {
		return fmt.Sprintf("in office: %v", leading)
	}
	return ""
}

// AwaitReady waits until a node that was started is ready: a tablet has
// registered in ZooKeeper, a coordinator answers, if only that it does not lead.
func (c *Cluster) AwaitReady(ctx context.Context, id cluster.NodeID) error {
	if _, err := c.node(id); err != nil {
		return err
	}
	return c.obs.await(ctx, string(id)+" to be ready", func(ctx context.Context) string {
		if c.knobs[id] == nil {
			if _, err := c.obs.metadata(ctx, id); err != nil {
				return err.Error()
			}
			return ""
		}
		p, err := c.obs.probe(ctx, id)
		if err != nil {
			return err.Error()
		}
		if !p.Registered {
			return "it has not registered"
		}
		return ""
	})
}

// AwaitServing waits until a tablet serves all that it leads by ZooKeeper's
// word; a coordinator serves when it is ready.
func (c *Cluster) AwaitServing(ctx context.Context, id cluster.NodeID) error {
	if err := c.AwaitReady(ctx, id); err != nil || c.knobs[id] == nil {
		return err
	}
	return c.obs.await(ctx, string(id)+" to serve", func(ctx context.Context) string {
		v, err := c.obs.look(ctx, id)
		if err != nil {
			return err.Error()
		}
		return v.unserved(v.probes[id].Server)
	})
}

// Coordinator is the coordinator in office by ZooKeeper's word, or "".
func (c *Cluster) Coordinator(ctx context.Context) (cluster.NodeID, error) {
	s, err := c.obs.zookeeper(ctx)
	if err != nil {
		return "", err
	}
	return leadingCoordinator(ctx, s)
}

// Bucket is the leader of a bucket and its in-sync followers by ZooKeeper's
// word; the leader is "" if there is none.
func (c *Cluster) Bucket(ctx context.Context, table string, bucket int) (cluster.NodeID, []cluster.NodeID, error) {
	s, err := c.obs.zookeeper(ctx)
	if err != nil {
		return "", nil, err
	}
	buckets, err := readBuckets(ctx, s)
	if err != nil {
		return "", nil, err
	}
	for _, b := range buckets {
		parts, err := b.id.Parts()
		if err != nil || parts.Table != table || parts.Bucket != bucket {
			continue
		}
		var leader cluster.NodeID
		var followers []cluster.NodeID
		for _, info := range c.tablets() {
			switch {
			case info.Server == b.lai.Leader:
				leader = info.ID
			case b.inSync(info.Server):
				followers = append(followers, info.ID)
			}
		}
		return leader, followers, nil
	}
	return "", nil, cluster.Definite(fmt.Errorf("find bucket %d of %q: %w", bucket, table, errNoBucket))
}

var errNoBucket = errors.New("no such bucket in ZooKeeper")
