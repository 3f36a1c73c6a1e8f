package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

var (
	errNoTablet      = errors.New("no tablet is known")
	errNoCoordinator = errors.New("no coordinator is known")
)

func unexpected(node cluster.NodeID, m host.Message) error {
	return fmt.Errorf("%s answered %s", node, m.API())
}

// CreateTable creates a table; nil says that ZooKeeper holds it, not that its
// buckets have leaders yet. If an attempt's outcome was unknown and a later one
// finds the table there, nobody can say whose it is: the error is unknown.
func (c *Client) CreateTable(ctx context.Context, spec cluster.TableSpec) (cluster.Attempts, error) {
	return c.ddl(ctx, "create table", spec.Name, "", &protocol.CreateTable{Spec: spec})
}

// DropTable removes a table.
func (c *Client) DropTable(ctx context.Context, name string) (cluster.Attempts, error) {
	return c.ddl(ctx, "drop table", name, "", &protocol.DropTable{Name: name})
}

// CreatePartition adds a partition to a partitioned table.
func (c *Client) CreatePartition(ctx context.Context, table, partition string) (cluster.Attempts, error) {
	return c.ddl(ctx, "create partition", table, partition,
		&protocol.CreatePartition{Table: table, Partition: partition})
}

// DropPartition removes a partition.
func (c *Client) DropPartition(ctx context.Context, table, partition string) (cluster.Attempts, error) {
	return c.ddl(ctx, "drop partition", table, partition,
		&protocol.DropPartition{Table: table, Partition: partition})
}

// ddl sends a request to the leading coordinator until one answers that leads.
func (c *Client) ddl(ctx context.Context, what, path, part string, m host.Message) (cluster.Attempts, error) {
	o := &operation{c: c, what: what, path: path, key: part, api: apiDDL, limit: c.times.DDL, effect: true}
	for {
		if node := c.cache.coordinator; node != "" {
			reply, result := o.call(ctx, node, m, nil)
			if result == succeeded {
				r, ok := reply.(*protocol.CodeReply)
				if !ok {
					o.open = true
					return o.attempts, o.end(unexpected(node, reply))
				}
				if result = o.answered(node, r.Code); result != succeeded && r.Message != "" {
					o.last = fmt.Errorf("%w: %s", o.last, r.Message)
				}
			}
			if result == succeeded || result == rejected {
				if result == rejected {
					return o.attempts, o.end(nil)
				}
				return o.attempts, nil
			}
		} else {
			o.last = errNoCoordinator
		}
		if ctx.Err() != nil {
			return o.attempts, o.end(ctx.Err())
		}
		if err := o.refreshCoordinator(ctx, path); err != nil {
			return o.attempts, o.end(err)
		}
	}
}

// refreshCoordinator asks the tablets who coordinates, after a pause unless
// nothing was asked yet.
func (o *operation) refreshCoordinator(ctx context.Context, path string) error {
	if o.attempts.Tries > 0 {
		if err := o.pause(ctx); err != nil {
			return err
		}
	}
	return o.tryRefresh(ctx, path)
}
