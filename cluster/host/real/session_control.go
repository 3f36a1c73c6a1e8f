package real

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// The errors of SessionControl.Expire.
var (
	errNoSession    = fmt.Errorf("node has no zookeeper session: %w", cluster.ErrNoSession)
	errNotConnected = fmt.Errorf("node is not connected to zookeeper: %w", cluster.ErrNoSession)
)

// expireTimeout bounds one expiry: a take-over needs two round trips.
const expireTimeout = 5 * time.Second

// zkControl is the harness's hand on the sessions of one node.
type zkControl struct {
	gate    *zkGate
	servers []string
}

// Expire ends the present session at the server and returns when it has.
func (c zkControl) Expire(ctx context.Context, how host.ExpireMode) error {
	v, err := kernel.Await(ctx, "expire session of "+string(c.gate.node), func(complete func(any)) {
		if !c.gate.spawn(func() { complete(c.expire(how)) }) {
			complete(errZKShut)
		}
	})
	if err != nil {
		return err
	}
	if err, failed := v.(error); failed && err != nil {
		return fmt.Errorf("expire session of %s: %w", c.gate.node, err)
	}
	return nil
}

// expire blocks.
func (c zkControl) expire(how host.ExpireMode) error {
	ctx, cancel := context.WithTimeout(context.Background(), expireTimeout)
	defer cancel()
	d := c.gate.current()
	switch {
	case d == nil:
		return errNoSession
	case how == host.ByInjection:
		return d.expireByInjection(ctx)
	default:
		return d.expireByTakeover(ctx, c.servers)
	}
}

// expireByInjection sends closeSession on the session's own connection. Its
// reply is kept from the library, which sees the server hang up.
func (d *zkDoor) expireByInjection(ctx context.Context) error {
	d.lock()
	live := d.live
	d.unlock()
	if live == nil {
		return errNotConnected
	}
	done, err := live.inject(true)
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// expireByTakeover connects with the session's id and password, which moves the
// session to the new connection, and closes it there. The node's dials wait
// meanwhile, else it takes the session back in between (10 to 15 of 20 tries).
func (d *zkDoor) expireByTakeover(ctx context.Context, servers []string) error {
	release := d.gate.add(&zkRule{holdDials: true}, 2*expireTimeout)
	defer release()
	d.breakStrangers(errZKCut)
	d.lock()
	id, password, timeout := d.id, d.password, d.timeout
	d.unlock()
	var errs []error
	for _, server := range servers {
		zxid, err := closeForeign(ctx, server, id, password, timeout)
		if err == nil {
			d.gate.report(history.Txn{
				Node: string(d.gate.node), Session: id, Zxid: zxid, Op: zkOpName(jute.OpCloseSession), Paths: []string{},
			})
			d.gate.outbox.flush()
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// closeForeign takes a session over and closes it, past every gate. It returns
// the zxid of the closing.
func closeForeign(ctx context.Context, server string, id int64, password []byte, timeoutMillis int32) (int64, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }() // the server hangs up first
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return 0, err
		}
	}
	if _, err := conn.Write(connectFrame(timeoutMillis, id, password)); err != nil {
		return 0, fmt.Errorf("take session over: %w", err)
	}
	frame, err := readZKFrame(conn)
	if err != nil {
		return 0, fmt.Errorf("take session over: %w", err)
	}
	var h jute.ConnectResponse
	if err := jute.Unmarshal(frame[4:], &h); err != nil {
		return 0, fmt.Errorf("take session over: %w", err)
	}
	if h.SessionID != id {
		return 0, fmt.Errorf("take session over: it has expired already: %w", cluster.ErrNoSession)
	}
	if _, err := conn.Write(closeSessionFrame(1)); err != nil {
		return 0, fmt.Errorf("close session: %w", err)
	}
	for {
		frame, err := readZKFrame(conn)
		if err != nil {
			return 0, fmt.Errorf("close session: %w", err)
		}
		if reply, err := decodeZKReply(frame[4:]); err == nil && reply.Xid == 1 {
			return reply.Zxid, nil
		}
	}
}

// Hold lets no byte pass until the lease ends; then the connections break.
func (c zkControl) Hold(lease time.Duration) host.Undo {
	return c.gate.add(&zkRule{hold: true}, lease)
}

// Delay adds latency both ways.
func (c zkControl) Delay(d time.Duration, lease time.Duration) host.Undo {
	return c.gate.add(&zkRule{delay: d}, lease)
}

// CutBefore breaks the connection in place of sending the next such request.
func (c zkControl) CutBefore(op string, lease time.Duration) host.Undo {
	return c.gate.add(&zkRule{before: true, op: op}, lease)
}

// CutAfter breaks the connection in place of delivering the next such reply, if
// the server did what was asked.
func (c zkControl) CutAfter(op string, lease time.Duration) host.Undo {
	return c.gate.add(&zkRule{after: true, op: op}, lease)
}

// DelayWatches holds watch events back, and all that comes behind them.
func (c zkControl) DelayWatches(d time.Duration, lease time.Duration) host.Undo {
	return c.gate.add(&zkRule{watchDelay: d}, lease)
}

// RefuseDials refuses connections, as a server that is down does.
func (c zkControl) RefuseDials(lease time.Duration) host.Undo {
	return c.gate.add(&zkRule{refuse: true}, lease)
}

// Tap calls f for every request and reply, on a goroutine of the gate.
func (c zkControl) Tap(f func(host.ZKPassing)) host.Undo {
	return c.gate.add(&zkRule{tap: f}, 0)
}

// Current is the present session's id, 0 if there is none.
func (c zkControl) Current() int64 {
	d := c.gate.current()
	if d == nil {
		return 0
	}
	id, _ := d.identity()
	return id
}

var _ host.SessionControl = zkControl{}
