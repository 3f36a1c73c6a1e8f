package client

import (
	"context"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// Put writes one row and returns when it is replicated, or with a definite or
// an unknown error. Table is a name, or "name[partition]". A nil value deletes.
func (c *Client) Put(ctx context.Context, table, key string, value []byte) (cluster.Attempts, error) {
	o := &operation{c: c, what: "put", path: table, key: key, api: apiPut, limit: c.times.Attempt, effect: true}
	m := &protocol.PutKv{
		Client: c.name, Process: c.process, Acks: protocol.AcksAll, TimeoutMillis: c.serverTimeout(),
		Rows: []protocol.Row{{Key: key, Value: value}},
	}
	_, err := o.write(ctx, table, keyBucket(key), func(b *bucket, epoch int) host.Message {
		m.Bucket, m.LeaderEpoch = b.id, epoch
		m.Writer, m.Seq = c.sequence(b)
		return m
	})
	return o.attempts, err
}

// Get reads one row; nil is an absent key. It has no effect, so all its errors
// are definite.
func (c *Client) Get(ctx context.Context, table, key string) ([]byte, cluster.Attempts, error) {
	o := &operation{c: c, what: "get", path: table, key: key, api: apiLookup, limit: c.times.Attempt}
	m := &protocol.Lookup{Client: c.name, Process: c.process, TimeoutMillis: c.serverTimeout(), Keys: []string{key}}
	var value []byte
	err := o.onBucket(ctx, bucketRequest{
		path: table, number: keyBucket(key),
		message: func(b *bucket, epoch int) host.Message {
			m.Bucket, m.LeaderEpoch = b.id, epoch
			return m
		},
		code: func(_ *bucket, reply host.Message) (protocol.Code, bool) {
			r, ok := reply.(*protocol.LookupReply)
			if !ok || (r.Code == protocol.CodeNone && len(r.Values) != 1) {
				return 0, false
			}
			if r.Code == protocol.CodeNone {
				value = r.Values[0]
			}
			return r.Code, true
		},
	})
	return value, o.attempts, err
}

// write drives an idempotent write and returns its first offset.
func (o *operation) write(
	ctx context.Context, path string, number func(*table) int, message func(b *bucket, epoch int) host.Message,
) (base int64, err error) {
	var held *bucket
	err = o.onBucket(ctx, bucketRequest{
		path: path, number: number, message: message,
		before: func(ctx context.Context, b *bucket) error {
			if held != nil {
				o.c.endWrite(held, false)
				held = nil
			}
			if err := o.c.beginWrite(ctx, o, b); err != nil {
				return err
			}
			held = b
			return nil
		},
		code: func(_ *bucket, reply host.Message) (protocol.Code, bool) {
			r, ok := reply.(*protocol.WriteReply)
			if !ok {
				return 0, false
			}
			base = r.Base
			return r.Code, true
		},
	})
	if held != nil {
		o.c.endWrite(held, err == nil)
	}
	return base, err
}

// sequence is the pair of the bucket's write under way. Without the rule a
// retry is a write of its own.
func (c *Client) sequence(b *bucket) (writer int64, seq int) {
	if !c.policy.SameSequence {
		return noWriter, noWriter
	}
	return b.writes.id, b.writes.next
}

// serverTimeout is how long a server may wait for replication or confirmation:
// a little less than the client waits for it, so that its answer still counts.
func (c *Client) serverTimeout() int { return int(c.times.Attempt.Milliseconds() * 4 / 5) }
