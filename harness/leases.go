package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// Leases hold the heals of faults that no gate can end by itself: a killed
// process stays dead until somebody starts it. Each lease is kept by a task of
// its own, so a nemesis that panics or hangs leaves a cluster that heals.
type Leases struct {
	h    host.Host
	cond host.Cond
	open []*lease // in the order in which they were taken
	// failed is told of a heal that failed.
	failed func(error)
}

type lease struct {
	name    string
	heal    func(ctx context.Context) error
	state   leaseState
	err     error
	release context.CancelFunc // ends the keeper's sleep
}

type leaseState uint8

const (
	leaseHeld leaseState = iota
	leaseHealing
	leaseHealed
)

// healTime bounds one heal.
const healTime = 30 * time.Second

// NewLeases returns an empty set whose tasks belong to h. Failed is told of
// heals that failed.
func NewLeases(h host.Host, failed func(error)) *Leases {
	return &Leases{h: h, cond: h.NewCond(), failed: failed}
}

// Take holds a fault for at most d; then, or when end is called, or at the end
// of the run, heal is called once, with a context of its own. End returns what
// heal returned, to every caller.
func (l *Leases) Take(name string, d time.Duration, heal func(ctx context.Context) error) (end func(ctx context.Context) error) {
	root := l.h.Context()
	sleep, release := l.h.WithCancel(root)
	x := &lease{name: name, heal: heal, release: release}
	l.open = append(l.open, x)
	l.h.Go(root, "lease of "+name, func(context.Context) {
		if err := l.h.Sleep(sleep, d); err == nil {
			_ = l.end(root, x) // reported by end itself
		}
	})
	return func(ctx context.Context) error { return l.end(ctx, x) }
}

// end heals, or waits for whoever is healing. The heal's own time does not
// depend on ctx: a nemesis that is being cancelled heals too.
func (l *Leases) end(ctx context.Context, x *lease) error {
	if x.state == leaseHeld {
		x.state = leaseHealing
		x.release()
		heal, cancel := l.h.WithTimeout(l.h.Context(), healTime)
		x.err = protect(heal, l.h, func() error { return x.heal(heal) })
		cancel()
		x.state = leaseHealed
		l.drop(x)
		if x.err != nil {
			x.err = fmt.Errorf("heal %s: %w", x.name, x.err)
			l.failed(x.err)
		}
		l.cond.Broadcast()
	}
	for x.state != leaseHealed {
		if err := l.cond.Wait(ctx); err != nil {
			return fmt.Errorf("wait for the heal of %s: %w", x.name, err)
		}
	}
	return x.err
}

func (l *Leases) drop(x *lease) {
	for i, y := range l.open {
		if y == x {
			l.open = append(l.open[:i], l.open[i+1:]...)
			return
		}
	}
}

// HealAll ends every lease, the youngest first, so that faults come off in the
// reverse of the order in which they were put on.
func (l *Leases) HealAll(ctx context.Context) error {
	var all error
	for len(l.open) > 0 {
		x := l.open[len(l.open)-1]
		if err := l.end(ctx, x); err != nil {
			all = errors.Join(all, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	return all
}

// Len is the number of leases held.
func (l *Leases) Len() int { return len(l.open) }
