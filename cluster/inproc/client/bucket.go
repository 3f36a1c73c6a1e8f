package client

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

var (
	errNoLeader  = errors.New("no leader is known")
	errNoTable   = errors.New("table is not known")
	errOtherLife = errors.New("table was dropped and created again")
	errNoBucket  = errors.New("no such bucket")
)

// bucketRequest is an operation on one bucket.
type bucketRequest struct {
	path   string
	number func(t *table) int // which bucket
	// message is the next attempt's request; it is given back the bucket's present
	// leader epoch each time.
	message func(b *bucket, epoch int) host.Message
	// code reads an answer. It may keep what it needs of it.
	code func(b *bucket, m host.Message) (protocol.Code, bool)
	// before runs when the bucket is known and before anything is sent to it; again
	// if the operation moves on to a new life of the table.
	before func(ctx context.Context, b *bucket) error
}

// keyBucket is where a key lives: fnv-1a of the key, modulo the buckets.
func keyBucket(key string) func(t *table) int {
	return func(t *table) int {
		h := fnv.New32a()
		_, _ = h.Write([]byte(key)) // a hash takes everything
		return int(h.Sum32() % uint32(len(t.buckets)))
	}
}

// onBucket drives an operation until it succeeds, is rejected, or ctx ends. A
// table that was dropped and created again meanwhile is another table: the
// operation moves on to it only if nothing of it can have happened in the old one.
func (o *operation) onBucket(ctx context.Context, r bucketRequest) error {
	for {
		b, err := o.findBucket(ctx, r)
		if err == nil && r.before != nil {
			err = r.before(ctx, b)
		}
		if err == nil {
			err = o.tryAll(ctx, r, b)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errOtherLife) && !o.open && ctx.Err() == nil:
			continue
		default:
			return o.end(err)
		}
	}
}

// tryAll makes attempts on one bucket. The error is what ended them; that of the
// last attempt, if it was rejected.
func (o *operation) tryAll(ctx context.Context, r bucketRequest, b *bucket) error {
	for {
		node, err := o.awaitLeader(ctx, r.path, b)
		if err != nil {
			return err
		}
		leader, epoch := b.meta.Leader, b.meta.LeaderEpoch
		reply, result := o.call(ctx, node, r.message(b, epoch), b)
		code := protocol.CodeNone
		if result == succeeded {
			var ok bool
			if code, ok = r.code(b, reply); !ok {
				o.open = true
				return unexpected(node, reply)
			}
			result = o.answered(node, code)
		}
		switch {
		case result == succeeded:
			b.refusals, b.suspectUntil = 0, 0
			return nil
		case result == rejected:
			return o.last
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if code.Refusal() || code == protocol.CodeFencedLeaderEpoch {
			b.refuse(o.c.h.Now(), leader, epoch, o.c.times.Suspect)
		}
		if err := o.beforeRetry(ctx, r.path, code, result); err != nil {
			return err
		}
	}
}

// beforeRetry is the policy between two attempts. With back-off: pause, then
// refresh, unless the leader answered that it is the leader (it lacks replicas,
// say). Without: refresh and send again at once, as today's Fluss client does.
func (o *operation) beforeRetry(ctx context.Context, path string, code protocol.Code, result outcome) error {
	leaderStands := code == protocol.CodeNotEnoughReplicas || code == protocol.CodeNotEnoughReplicasAfterAppend
	if o.c.policy.BackOff {
		if err := o.backOff(ctx); err != nil {
			return err
		}
	} else if result == refused && code == protocol.CodeNone { // unreachable
		if err := o.c.h.Sleep(ctx, o.c.times.Reconnect); err != nil {
			return err
		}
	}
	if leaderStands {
		return nil
	}
	return o.tryRefresh(ctx, path)
}

// tryRefresh asks for metadata; that nobody answers is an error only of the
// operation's last resort, its deadline.
func (o *operation) tryRefresh(ctx context.Context, path string) error {
	err := o.c.refresh(ctx, path, &o.attempts)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		o.last = err
	}
	return nil
}

// findBucket waits until the table is known.
func (o *operation) findBucket(ctx context.Context, r bucketRequest) (*bucket, error) {
	for {
		if t := o.c.cache.tables[r.path]; t != nil && len(t.buckets) > 0 {
			o.c.refreshByAge(r.path, t, &o.attempts)
			n := r.number(t)
			if n < 0 || n >= len(t.buckets) {
				return nil, fmt.Errorf("%w: %d of %d in %q", errNoBucket, n, len(t.buckets), r.path)
			}
			return t.buckets[n], nil
		}
		if err := o.tryRefresh(ctx, r.path); err != nil {
			return nil, err
		}
		if o.c.cache.tables[r.path] != nil {
			o.failures = 0
			continue
		}
		if o.last == nil {
			o.last = errNoTable
		}
		if err := o.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// awaitLeader waits until a leader is known that may be asked.
func (o *operation) awaitLeader(ctx context.Context, path string, b *bucket) (cluster.NodeID, error) {
	for {
		if o.c.cache.buckets[b.id] != b {
			return "", errOtherLife
		}
		node, ok := o.c.cache.leader(b)
		if ok && (!o.c.policy.BackOff || !b.suspected(o.c.h.Now())) {
			return node, nil
		}
		if !ok {
			o.last = fmt.Errorf("%w: %s", errNoLeader, b.id)
		}
		if err := o.pause(ctx); err != nil {
			return "", err
		}
		if err := o.tryRefresh(ctx, path); err != nil {
			return "", err
		}
	}
}

// pause is the wait for something that only metadata can bring.
func (o *operation) pause(ctx context.Context) error {
	if o.c.policy.BackOff {
		return o.backOff(ctx)
	}
	return o.c.h.Sleep(ctx, o.c.times.NoLeaderWait)
}

// refuse notes a refusal by a leader at an epoch. It is not asked again at that
// epoch before the suspicion ends, for longer each time: only a newer epoch in
// the metadata makes asking it worth while.
func (b *bucket) refuse(now time.Duration, leader, epoch int, suspect time.Duration) {
	if leader != b.refusedBy || epoch != b.refusedEpoch {
		b.refusedBy, b.refusedEpoch, b.refusals = leader, epoch, 0
	}
	if b.refusals < 16 {
		b.refusals++
	}
	b.suspectUntil = now + suspect<<(b.refusals-1)
}

func (b *bucket) suspected(now time.Duration) bool {
	return b.refusals > 0 && b.meta.Leader == b.refusedBy && b.meta.LeaderEpoch == b.refusedEpoch && now < b.suspectUntil
}
