package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// metadataTries is how many servers one refresh asks at most.
const metadataTries = 3

// refresh asks a tablet for the metadata of a table; several tasks that want
// the same at the same time share one request. An error says that nobody
// answered; an answer without the table is none.
func (c *Client) refresh(ctx context.Context, path string, a *cluster.Attempts) error {
	name := tableOf(path)
	if c.refreshing[name] {
		for c.refreshing[name] {
			if err := c.changed.Wait(ctx); err != nil {
				return fmt.Errorf("wait for metadata: %w", err)
			}
		}
		return nil
	}
	c.refreshing[name] = true
	err := c.ask(ctx, name, a)
	delete(c.refreshing, name)
	c.changed.Broadcast()
	if t := c.cache.tables[path]; t != nil {
		t.asked = c.h.Now()
	}
	return err
}

// ask sends the request to one tablet after another, in random order.
func (c *Client) ask(ctx context.Context, name string, a *cluster.Attempts) error {
	var asked []cluster.NodeID
	err := errNoTablet
	for range metadataTries {
		node, ok := c.pickTablet(asked)
		if !ok {
			break
		}
		asked = append(asked, node)
		if err = c.askNode(ctx, node, name, a); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("get metadata of %q: %w", name, err)
	}
	return nil
}

func (c *Client) askNode(ctx context.Context, node cluster.NodeID, name string, a *cluster.Attempts) error {
	a.Tries++
	a.Metadata++
	from := c.h.Now()
	attempt, cancel := c.h.WithTimeout(ctx, c.times.Metadata)
	defer cancel()
	reply, err := c.h.Call(attempt, node, &protocol.GetMetadata{Client: c.name, Tables: []string{name}})
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			c.hung("", c.serverOf(node), apiMetadata, from)
		}
		return fmt.Errorf("ask %s: %w", node, err)
	}
	a.Node = node
	m, ok := reply.(*protocol.GetMetadataReply)
	if !ok {
		return fmt.Errorf("ask %s: unexpected answer %s", node, reply.API())
	}
	if m.Code != protocol.CodeNone && m.Code != protocol.CodeTableMissing {
		return fmt.Errorf("ask %s: %w", node, protocol.CodeError{Code: m.Code})
	}
	c.cache.learn(m)
	return nil
}

// pickTablet chooses a tablet that is not in asked: the preferred one first of
// all, then one that metadata calls live, then any that the client was told of.
func (c *Client) pickTablet(asked []cluster.NodeID) (cluster.NodeID, bool) {
	if prefer := c.prefer; prefer != "" && slices.Contains(c.cache.bootstrap, prefer) {
		c.prefer = ""
		return prefer, true
	}
	for _, list := range [][]cluster.NodeID{c.cache.live, c.cache.bootstrap} {
		open := make([]cluster.NodeID, 0, len(list))
		for _, node := range list {
			if !slices.Contains(asked, node) {
				open = append(open, node)
			}
		}
		if len(open) > 0 {
			return open[c.h.Rand().IntN(len(open))], true
		}
	}
	return "", false
}

func (c *Client) serverOf(node cluster.NodeID) int {
	server := -1
	for s, n := range c.cache.servers { // at most one server has this name, so order cannot matter
		if n == node {
			server = s
		}
	}
	return server
}

// refreshByAge renews metadata that has grown old, without making the
// operation wait.
func (c *Client) refreshByAge(path string, t *table, a *cluster.Attempts) {
	name := tableOf(path)
	if c.h.Now()-t.asked < c.times.MetadataAge || c.refreshing[name] || c.ctx.Err() != nil {
		return
	}
	t.asked = c.h.Now()
	// One request at least will be sent; the tally of the operation that caused
	// it counts that one, even though it may be over before the answer comes.
	a.Tries++
	a.Metadata++
	c.h.Go(c.ctx, "client metadata", func(ctx context.Context) {
		var later cluster.Attempts
		// An answer that does not come leaves the old metadata in use.
		_ = c.refresh(ctx, path, &later)
	})
}
