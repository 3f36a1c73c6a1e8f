package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// outcome is what is known of a transaction.
type outcome uint8

const (
	committed outcome = iota
	notTaken          // refused because of one of its operations
	unknown           // sent, and the answer lost
)

// tried is a transaction's outcome; failed and err are set if it was not taken.
type tried struct {
	outcome
	host.MultiResult
	failed int // index among the caller's operations
	err    error
}

// try makes one guarded transaction (p). The check of the epoch node comes first
// in it, so that it is taken only while this term is the newest. An error says
// that the term is over.
func (t *term) try(ctx context.Context, ops []host.ZKOp) (tried, error) {
	guarded := ops
	if t.policy.GuardWrites {
		guarded = append([]host.ZKOp{host.Check(protocol.EpochPath, t.token)}, ops...)
	}
	for {
		z, err := t.writable(ctx)
		if err != nil {
			return tried{}, err
		}
		res, err := z.s.Multi(ctx, guarded...)
		at := res.Failed - (len(guarded) - len(ops))
		switch {
		case err == nil:
			return tried{MultiResult: res}, nil
		case errors.Is(err, host.ErrNotSent) || errors.Is(err, host.ErrExpired) || errors.Is(err, host.ErrClosed):
			// Not done; writable decides whether there is another try.
			if t.h.Sleep(ctx, t.timing.Retry/4) != nil {
				return tried{}, errTermOver
			}
		case errors.Is(err, host.ErrConnectionLoss):
			return tried{outcome: unknown}, nil
		case ctx.Err() != nil:
			return tried{}, errTermOver
		case at < 0:
			t.fence(err.Error())
			return tried{}, errTermOver
		default:
			return tried{outcome: notTaken, failed: at, err: err}, nil
		}
	}
}

// writable is a connected session to write through (p). A term has one session.
// Without guards a write belongs to no term: it goes through whatever session
// the process has by then, as with a client library that opens a new one itself.
func (t *term) writable(ctx context.Context) (zk, error) {
	for {
		if t.policy.GuardWrites {
			if t.over || t.z.connected(ctx) != nil || t.over {
				return zk{}, errTermOver
			}
			return t.z, nil
		}
		z := zk{h: t.h, s: t.c.session, retry: t.timing.Retry}
		switch err := z.connected(ctx); {
		case err == nil:
			return z, nil
		case !errors.Is(err, errSessionOver):
			return zk{}, errTermOver
		}
		if t.c.session == z.s {
			if t.c.changed.Wait(ctx) != nil {
				return zk{}, errTermOver
			}
		}
	}
}

// settled waits for the connection and syncs, after an unknown outcome: what z
// reads then decides (p).
func (t *term) settled(ctx context.Context) (zk, error) {
	for {
		z, err := t.writable(ctx)
		if err != nil {
			return zk{}, err
		}
		err = z.sync(ctx, protocol.EpochPath)
		if err == nil {
			return z, nil
		}
		if !errors.Is(err, errSessionOver) || t.policy.GuardWrites {
			return zk{}, errTermOver
		}
	}
}

// landing is what was read back after an unknown outcome.
type landing uint8

const (
	absent     landing = iota // not done, and as before: the same again
	landed                    // done
	superseded                // not done, and no longer possible
)

// refusedError says that a transaction was not taken: the compare-and-set was
// lost, or what it wants is there already.
type refusedError struct {
	failed int
	err    error
}

func (e refusedError) Error() string { return fmt.Sprintf("operation %d: %v", e.failed, e.err) }
func (e refusedError) Unwrap() error { return e.err }

// commit makes a guarded transaction until its outcome is known (p): section 3
// of the protocol. The error is errTermOver, a refusedError, or what landed says.
func (t *term) commit(
	ctx context.Context, what string, ops []host.ZKOp, look func(ctx context.Context, z zk) (landing, error),
) error {
	for {
		got, err := t.try(ctx, ops)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case got.outcome == committed:
			return nil
		case got.outcome == notTaken:
			return fmt.Errorf("%s: %w", what, refusedError{got.failed, got.err})
		}
		z, err := t.settled(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		switch found, err := look(ctx, z); {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case found == landed:
			return nil
		case found == superseded:
			return fmt.Errorf("%s: %w", what, refusedError{-1, host.ErrBadVersion})
		}
	}
}
