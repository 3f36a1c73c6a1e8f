package inproc

import (
	"context"
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

var _ cluster.CoordinatorDialer = (*Cluster)(nil)

// DialCoordinator opens a connection whose DDL goes to one coordinator, whoever
// leads: each call is one request, and its answer is the coordinator's own.
func (c *Cluster) DialCoordinator(_ context.Context, name, coordinator cluster.NodeID) (cluster.Conn, error) {
	if _, err := c.node(coordinator); err != nil {
		return nil, err
	}
	return direct{h: c.control.Endpoint(name), to: coordinator}, nil
}

// direct is a client that never heard of a change of leadership.
type direct struct {
	h  host.Host
	to cluster.NodeID
}

var _ cluster.Admin = direct{}

// Close has nothing to end.
func (direct) Close(context.Context) error { return nil }

// CreateTable asks the coordinator once.
func (d direct) CreateTable(ctx context.Context, spec cluster.TableSpec) (cluster.Attempts, error) {
	return d.ask(ctx, &protocol.CreateTable{Spec: spec})
}

// DropTable asks the coordinator once.
func (d direct) DropTable(ctx context.Context, name string) (cluster.Attempts, error) {
	return d.ask(ctx, &protocol.DropTable{Name: name})
}

// CreatePartition asks the coordinator once.
func (d direct) CreatePartition(ctx context.Context, table, partition string) (cluster.Attempts, error) {
	return d.ask(ctx, &protocol.CreatePartition{Table: table, Partition: partition})
}

// DropPartition asks the coordinator once.
func (d direct) DropPartition(ctx context.Context, table, partition string) (cluster.Attempts, error) {
	return d.ask(ctx, &protocol.DropPartition{Table: table, Partition: partition})
}

func (d direct) ask(ctx context.Context, m host.Message) (cluster.Attempts, error) {
	attempts := cluster.Attempts{Node: d.to, Tries: 1}
	reply, err := d.h.Call(ctx, d.to, m)
	if err != nil {
		return attempts, fmt.Errorf("ask %s: %w", d.to, err)
	}
	answer, ok := reply.(*protocol.CodeReply)
	if !ok {
		return attempts, fmt.Errorf("ask %s: it answered %s", d.to, reply.API())
	}
	if err := answer.Code.Err(); err != nil {
		return attempts, fmt.Errorf("ask %s: %w", d.to, err)
	}
	return attempts, nil
}
