package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/kernel"
	"github.com/fencepost-dev/fencepost/history"
)

// Node is a process as the harness sees it. Every call is carried out inside
// the node's own kernel while the calling task of the control node is parked.
type Node struct {
	port  *port
	main  host.Main
	up    atomic.Bool
	lease *kernel.Timer // the end of a pause
	hold  host.Undo     // of its ZooKeeper gate
}

var (
	_ host.Node   = (*Node)(nil)
	_ host.Skewer = (*Node)(nil)
)

// ID names the node.
func (n *Node) ID() cluster.NodeID { return n.port.id }

// Up reports whether the process runs, paused or not.
func (n *Node) Up() bool { return n.up.Load() }

// do runs f inside the node's kernel and parks until it calls done.
func (n *Node) do(ctx context.Context, what string, f func(done func(error))) error {
	v, err := kernel.Await(ctx, what+" "+string(n.port.id), func(complete func(any)) {
		n.port.k.Post(kernel.Func(func() { f(func(err error) { complete(err) }) }))
	})
	if err != nil {
		return err
	}
	err, _ = v.(error)
	return err
}

// Start begins a new incarnation.
func (n *Node) Start(ctx context.Context) error {
	return n.do(ctx, "start", func(done func(error)) {
		p := n.port
		if p.proc != nil {
			done(fmt.Errorf("start %s: already up", p.id))
			return
		}
		proc := p.newProcess()
		p.proc = proc
		proc.setRate()
		n.up.Store(true)
		proc.OnDead(func() {
			n.up.Store(false)
			n.endPause()
		})
		proc.OnGone(func() {
			p.core.observe(p.id, history.Node{Node: string(p.id), State: history.NodeDown, Error: exitText(proc.ExitErr())})
		})
		p.core.observe(p.id, history.Node{Node: string(p.id), State: history.NodeUp})
		proc.Go(proc.Context(), "main", func(ctx context.Context) { n.main(ctx, proc) })
		done(nil)
	})
}

// exitText is what the down event says: a panic has an event of its own.
func exitText(err error) string {
	switch err.(type) { //nolint:errorlint // Exit's own error, never wrapped here
	case nil:
		return ""
	case kernel.Panic:
		return "panicked"
	default:
		return err.Error()
	}
}

// Stop asks the process to end and waits until it has.
func (n *Node) Stop(ctx context.Context) error {
	return n.do(ctx, "stop", func(done func(error)) {
		proc := n.port.proc
		if proc == nil {
			done(nil)
			return
		}
		proc.stopping = true
		proc.stopped.Broadcast()
		proc.OnGone(func() { done(nil) })
	})
}

// Kill ends the incarnation by unwinding.
func (n *Node) Kill(ctx context.Context) error {
	return n.do(ctx, "kill", func(done func(error)) { n.kill(func() { done(nil) }) })
}

// PowerLoss kills, and loses what the disk had not synced.
func (n *Node) PowerLoss(ctx context.Context) error {
	return n.do(ctx, "power off", func(done func(error)) {
		n.kill(func() {
			n.port.disk.powerLoss()
			done(nil)
		})
	})
}

func (n *Node) kill(then func()) {
	proc := n.port.proc
	if proc == nil {
		then()
		return
	}
	proc.OnGone(then)
	proc.Kill()
}

// Pause stops the process from running until Resume or the lease's end.
func (n *Node) Pause(ctx context.Context, lease time.Duration) error {
	return n.do(ctx, "pause", func(done func(error)) {
		p := n.port
		if p.proc == nil {
			done(fmt.Errorf("pause %s: not up", p.id))
			return
		}
		n.endPause()
		p.proc.Pause()
		n.hold = p.core.sessions.Control(p.id).Hold(lease)
		n.lease = p.k.After(lease, kernel.Func(n.resume))
		p.core.observe(p.id, history.Node{Node: string(p.id), State: history.NodePaused})
		done(nil)
	})
}

// Resume ends a pause; without one it does nothing.
func (n *Node) Resume(ctx context.Context) error {
	return n.do(ctx, "resume", func(done func(error)) {
		n.resume()
		done(nil)
	})
}

func (n *Node) resume() {
	p := n.port
	n.endPause()
	if p.proc != nil && p.proc.Paused() {
		p.proc.Resume()
		p.core.observe(p.id, history.Node{Node: string(p.id), State: history.NodeResumed})
	}
}

// endPause takes back the lease and the hold of a pause.
func (n *Node) endPause() {
	n.port.k.Cancel(n.lease)
	n.lease = nil
	if n.hold != nil {
		n.hold()
		n.hold = nil
	}
}

// Skew makes the node's clock wrong until the lease ends or Undo.
func (n *Node) Skew(ctx context.Context, jump time.Duration, rate float64, lease time.Duration) (host.Undo, error) {
	if rate <= -1 {
		return nil, fmt.Errorf("skew %s: rate %v would stop the clock", n.port.id, rate)
	}
	p := n.port
	mine := &skew{jump: jump, rate: rate}
	end := kernel.Func(func() {
		if p.skew == mine {
			p.setSkew(nil)
		}
	})
	err := n.do(ctx, "skew", func(done func(error)) {
		mine.since = p.core.cfg.Now()
		p.setSkew(mine)
		p.k.After(lease, end)
		done(nil)
	})
	if err != nil {
		return nil, err
	}
	return func() { p.k.Post(end) }, nil
}

// skew is what is wrong with a clock.
type skew struct {
	jump  time.Duration
	rate  float64
	since time.Duration
}

func (p *port) setSkew(s *skew) {
	p.skew = s
	if p.proc != nil {
		p.proc.setRate()
	}
}

// setRate has the process's timers run as fast as its clock.
func (p *Process) setRate() {
	rate := 1.0
	if s := p.port.skew; s != nil {
		rate += s.rate
	}
	p.SetRate(rate)
}
