package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// The names of requests in events.
const (
	apiMetadata = "metadata"
	apiPut      = "put"
	apiLookup   = "lookup"
	apiFetch    = "fetch"
	apiProduce  = "produce"
	apiWriter   = "init writer"
	apiDDL      = "ddl"
)

// outcome is how an attempt ended.
type outcome uint8

const (
	succeeded outcome = iota
	refused           // definitely not executed; another attempt may be
	rejected          // definitely not executed, and no attempt will be
	unknown           // it may have been executed, or may still be
)

// classify turns a code into the outcome of its attempt.
func classify(code protocol.Code) outcome {
	switch {
	case code == protocol.CodeNone:
		return succeeded
	case code.Refusal() || slices.Contains([]protocol.Code{
		protocol.CodeFencedLeaderEpoch, protocol.CodeNotEnoughReplicas, protocol.CodeNotCoordinatorLeader,
		protocol.CodeNotAttempted, protocol.CodeInvalidCoordinator,
	}, code):
		return refused
	case cluster.IsDefinite(code.Err()):
		return rejected
	default:
		return unknown
	}
}

// operation is one operation in all its attempts.
type operation struct {
	c *Client
	// What is done to which table and key; for errors.
	what, path, key string
	api             string
	limit           time.Duration // of one attempt
	// effect is set for operations that change something: only they can end unknown.
	effect   bool
	attempts cluster.Attempts
	// open is set once an attempt may have been executed.
	open     bool
	failures int // attempts since the last that succeeded, for the back-off
	last     error
}

// end is the operation's error: definite only if no attempt may have been
// executed. An operation without effect never happened if it failed.
func (o *operation) end(err error) error {
	if err == nil {
		err = o.last
	}
	if o.last != nil && !errors.Is(err, o.last) {
		err = fmt.Errorf("%w; last attempt: %w", err, o.last)
	}
	name := o.what + " " + o.path
	if o.key != "" {
		name += " " + o.key
	}
	if !o.effect || !o.open {
		return cluster.Definite(fmt.Errorf("%s: %w", name, err))
	}
	// The text alone: an error in the chain may be marked definite.
	return fmt.Errorf("%s: outcome unknown: %w", name, unknownError{err.Error(), codeOf(err)})
}

// unknownError keeps the words and the code of an error that is not definite
// for the operation, whatever it was for its attempt.
type unknownError struct {
	text string
	code error
}

func (u unknownError) Error() string { return u.text }
func (u unknownError) Unwrap() error { return u.code }

func codeOf(err error) error {
	if code, ok := errors.AsType[protocol.CodeError](err); ok {
		return code
	}
	return nil
}

// call sends one attempt of the operation and counts it. Only an answer gives a
// message; one that does not come in time has hung.
func (o *operation) call(ctx context.Context, to cluster.NodeID, m host.Message, b *bucket) (host.Message, outcome) {
	c := o.c
	o.attempts.Tries++
	from := c.h.Now()
	attempt, cancel := c.h.WithTimeout(ctx, o.limit)
	reply, err := c.h.Call(attempt, to, m)
	cancel()
	switch {
	case err == nil:
		o.attempts.Node = to
		return reply, succeeded
	case errors.Is(err, host.ErrUnreachable):
		o.last = fmt.Errorf("call %s: %w", to, err)
		return nil, refused
	case errors.Is(err, context.DeadlineExceeded):
		id := cluster.BucketID("")
		if b != nil {
			id = b.id
		}
		c.hung(id, c.serverOf(to), o.api, from)
	}
	o.last = fmt.Errorf("call %s: %w", to, err)
	o.open = true
	return nil, unknown
}

// answered takes in the code of an answer.
func (o *operation) answered(node cluster.NodeID, code protocol.Code) outcome {
	result := classify(code)
	if result == succeeded {
		return succeeded
	}
	o.last = fmt.Errorf("%s answered: %w", node, protocol.CodeError{Code: code})
	if result == unknown {
		o.open = true
	}
	return result
}

func (c *Client) hung(b cluster.BucketID, server int, api string, from time.Duration) {
	c.h.Observe(history.Hung{
		Bucket: string(b), Server: server, Client: c.name, API: api, From: int64(from), To: int64(c.h.Now()),
	})
}

// backOff pauses before the next attempt: growing, with jitter between half
// and whole, so that clients that were refused together come back apart.
func (o *operation) backOff(ctx context.Context) error {
	t := o.c.times
	d := t.BackOffMax
	if shift := o.failures; shift < 30 && t.BackOffMin<<shift < d {
		d = t.BackOffMin << shift
	}
	o.failures++
	return o.c.h.Sleep(ctx, d/2+time.Duration(o.c.h.Rand().Int64N(int64(d/2)+1)))
}
