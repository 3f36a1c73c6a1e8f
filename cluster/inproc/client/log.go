package client

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// numbered is a bucket given by its number.
func numbered(n int) func(*table) int { return func(*table) int { return n } }

// Buckets is the number of buckets of a table.
func (c *Client) Buckets(ctx context.Context, path string) (int, cluster.Attempts, error) {
	o := &operation{c: c, what: "count buckets of", path: path, api: apiMetadata, limit: c.times.Attempt}
	count := 0
	_, err := o.findBucket(ctx, bucketRequest{path: path, number: func(t *table) int {
		count = len(t.buckets)
		return 0
	}})
	if err != nil {
		return 0, o.attempts, o.end(err)
	}
	return count, o.attempts, nil
}

// Append adds a batch to one bucket of a log table and returns its first offset.
func (c *Client) Append(ctx context.Context, path string, n int, records [][]byte) (int64, cluster.Attempts, error) {
	o := &operation{
		c: c, what: "append to", path: path, key: fmt.Sprintf("bucket %d", n), api: apiProduce, limit: c.times.Attempt, effect: true,
	}
	m := &protocol.ProduceLog{
		Client: c.name, Process: c.process, Acks: protocol.AcksAll, TimeoutMillis: c.serverTimeout(), Records: records,
	}
	base, err := o.write(ctx, path, numbered(n), func(b *bucket, epoch int) host.Message {
		m.Bucket, m.LeaderEpoch = b.id, epoch
		m.Writer, m.Seq = c.sequence(b)
		return m
	})
	return base, o.attempts, err
}

// Fetch returns the records of one bucket from offset on, up to the high
// watermark, waiting a while for the first. Next is the offset to go on with,
// never lower than offset, except that an offset out of range (code 19) is read
// from the log's start instead: then the first record's offset, or next, is not
// what was asked for, and the log says so.
func (c *Client) Fetch(
	ctx context.Context, path string, n int, offset int64, limit int,
) (records []cluster.Record, next, hw int64, a cluster.Attempts, err error) {
	o := &operation{
		c: c, what: "fetch", path: path, key: fmt.Sprintf("bucket %d from %d", n, offset), api: apiFetch, limit: c.times.Attempt,
	}
	f, err := o.fetch(ctx, path, n, offset, limit)
	if err == nil && f.Code == protocol.CodeOffsetOutOfRange {
		c.h.Log().Warn("fetch again from the start of the log: offset out of range",
			zap.String("bucket", string(f.Bucket)), zap.Int64("offset", offset),
			zap.Int64("start", f.LogStart), zap.Int64("end", f.LogEnd))
		offset = f.LogStart
		f, err = o.fetch(ctx, path, n, offset, limit)
	}
	if err != nil {
		return nil, offset, 0, o.attempts, err
	}
	if f.Code != protocol.CodeNone {
		return nil, offset, 0, o.attempts, o.end(protocol.CodeError{Code: f.Code})
	}
	next = offset
	for _, r := range f.Records {
		records = append(records, cluster.Record{
			Offset: r.Offset, Change: r.Change.String(), Key: r.Key, Value: r.Value, Writer: r.Writer, Seq: r.Seq,
		})
		next = r.Offset + 1
	}
	return records, next, f.HW, o.attempts, nil
}

// fetch makes one fetch in all its attempts; code 19 is an answer.
func (o *operation) fetch(ctx context.Context, path string, n int, offset int64, limit int) (f protocol.FetchedBucket, err error) {
	c := o.c
	err = o.onBucket(ctx, bucketRequest{
		path: path, number: numbered(n),
		message: func(b *bucket, epoch int) host.Message {
			return &protocol.FetchLog{
				Client: c.name, Process: c.process, Follower: -1,
				MaxWaitMillis: int(min(c.times.FetchWait, c.times.Attempt/2).Milliseconds()), MinRecords: 1,
				Buckets: []protocol.FetchBucket{{
					Bucket: b.id, Offset: offset, MaxRecords: limit, LeaderEpoch: epoch, LastEpoch: -1,
				}},
			}
		},
		code: func(_ *bucket, reply host.Message) (protocol.Code, bool) {
			r, ok := reply.(*protocol.FetchLogReply)
			if !ok {
				return 0, false
			}
			if r.Code != protocol.CodeNone {
				return r.Code, true
			}
			if len(r.Buckets) != 1 {
				return 0, false
			}
			f = r.Buckets[0]
			if f.Code == protocol.CodeOffsetOutOfRange {
				return protocol.CodeNone, true
			}
			return f.Code, true
		},
	})
	return f, err
}
