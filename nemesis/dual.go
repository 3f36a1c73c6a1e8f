package nemesis

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

// dualDDL asks two coordinators at once to change tables, each by a connection
// that goes to it whoever leads. Whether either obeys is for the checkers.
type dualDDL struct {
	n       *usurper
	dialer  cluster.CoordinatorDialer // nil: nothing is asked
	open    int
	asks    int
	done    host.Cond
	answers []asked
}

// ddlTime bounds one request; the old leader's may hang until it is healed, and
// is worth waiting for until then.
const ddlTime = 10 * time.Second

func (n *usurper) startDDL(p oldLeaderParams) *dualDDL {
	d := &dualDDL{n: n, done: n.env.Host.NewCond()}
	if p.Variant == variantDual {
		d.dialer, _ = n.env.Cluster.(cluster.CoordinatorDialer)
	}
	return d
}

// ask sends each coordinator a table to create, beside the nemesis.
func (d *dualDDL) ask(nodes ...cluster.NodeID) {
	if d.dialer == nil {
		return
	}
	h := d.n.env.Host
	for _, node := range nodes {
		d.open++
		d.asks++
		table := fmt.Sprintf("dual-%d-%d", h.Now().Milliseconds(), d.asks)
		h.Go(h.Context(), "ddl to "+string(node), func(ctx context.Context) {
			bounded, cancel := h.WithTimeout(ctx, ddlTime)
			answer := "ok"
			if err := d.create(bounded, node, table); err != nil {
				answer = err.Error()
			}
			cancel()
			d.answers = append(d.answers, asked{Node: node, Table: table, Answer: answer})
			d.open--
			d.done.Broadcast()
		})
	}
}

func (d *dualDDL) create(ctx context.Context, node cluster.NodeID, table string) error {
	conn, err := d.dialer.DialCoordinator(ctx, cluster.NodeID("nemesis-"+table), node)
	if err != nil {
		return fmt.Errorf("dial %s: %w", node, err)
	}
	defer func() { _ = conn.Close(ctx) }() // a connection of one request has nothing to lose
	admin, ok := conn.(cluster.Admin)
	if !ok {
		return cluster.ErrUnsupported
	}
	_, err = admin.CreateTable(ctx, cluster.TableSpec{Name: table, Kind: cluster.LogTable, Buckets: 1, Replication: 1, MinISR: 1})
	return err
}

// wait joins the requests and returns their answers.
func (d *dualDDL) wait(ctx context.Context) []asked {
	for d.open > 0 {
		if d.done.Wait(ctx) != nil {
			break
		}
	}
	return d.answers
}
