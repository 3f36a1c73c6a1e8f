package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/harness/gen"
	"github.com/fencepost-dev/fencepost/history"
)

// The functions of the register workload.
const (
	fRead  = "read"
	fWrite = "write"
	fFetch = "fetch"
)

const registerTable = "registers"

// register reads and writes single keys of a replicated primary-key table.
func register() harness.Workload {
	return harness.Workload{
		Name: "register", Table: registerTable,
		Doc: "Reads and writes of unique values over many keys and buckets of a replicated primary-key table, " +
			"with one tail scanner per bucket that fetches the changelog; in the end every key is read.",
		Consistency: "Each key is a linearizable register. The position of a tail scanner only moves forward, " +
			"and what it is told to ask for next lies behind no high watermark that it was shown.",
		Setup:     registerSetup,
		Open:      registerOpen,
		Extra:     func(o harness.Options) int { return o.Buckets },
		Generator: func(o harness.Options) harness.Generator { return newRegisterLoad(o) },
		Final:     registerFinal,
		ReadOnly:  func(f string) bool { return f == fRead || f == fFetch },
		Checkers: func(harness.Options) []checker.Checker {
			return []checker.Checker{checker.NewLinearizable(checker.DefaultLinearizable()), checker.NewPositions()}
		},
	}
}

func registerSetup(ctx context.Context, env harness.Env) error {
	o := env.Options
	return createTables(ctx, env, cluster.TableSpec{
		Name: registerTable, Kind: cluster.KVTable, Buckets: o.Buckets, Replication: o.Replication, MinISR: o.MinISR,
	}, calendar(o))
}

// registerLoad is the load: the mix over keys, and the scanners beside it.
type registerLoad struct {
	harness.Generator
	keys  *gen.IndependentGen
	scans *scans
}

func newRegisterLoad(o harness.Options) *registerLoad {
	value := 0
	limits := gen.Keys{
		Prefix: "k", Active: o.Keys, Ops: o.OpsPerKey, Open: harness.MaxOpenKey,
		Busy: max(2, (o.Concurrency+o.Keys-1)/o.Keys), // two at least, or nothing on a key is concurrent
	}
	keys := gen.Independent(limits,
		func(c harness.Context, key string) history.Op {
			if c.Rand.IntN(2) == 0 {
				return history.Op{F: fRead, Value: history.KeyValue{Key: key}.JSON()}
			}
			value++ // no value is written twice: a stale read then shows itself
			return history.Op{F: fWrite, Value: history.KeyValue{Key: key, Value: strconv.AppendInt(nil, int64(value), 10)}.JSON()}
		})
	s := newScans(o.Buckets)
	return &registerLoad{Generator: gen.Reserve(o.Buckets, s, gen.Rate(o.Rate, keys)), keys: keys, scans: s}
}

// finalTries bounds the reads of one key in the end, so that it keeps within
// the operations that its judge can take.
const finalTries = harness.MaxOpsPerKey / 10

// registerFinal reads every key that was ever in use.
func registerFinal(o harness.Options, load harness.Generator) harness.Generator {
	var reads []history.Op
	if l, ok := load.(*registerLoad); ok {
		for _, key := range l.keys.Used() {
			reads = append(reads, history.Op{F: fRead, Value: history.KeyValue{Key: key}.JSON()})
		}
	}
	return gen.Reserve(o.Buckets, gen.Seq(), gen.UntilOk(finalTries, reads...))
}

// registerClient does the operations of one process.
type registerClient struct {
	conn cluster.Conn
	kv   cluster.KV
	log  cluster.Log
}

func registerOpen(ctx context.Context, env harness.Env, p history.Process) (harness.Client, error) {
	conn, err := dial(ctx, env, fmt.Sprintf("client-%d", p))
	if err != nil {
		return nil, err
	}
	kv, isKV := conn.(cluster.KV)
	log, isLog := conn.(cluster.Log)
	if !isKV || !isLog {
		return nil, fmt.Errorf("open register client: %w", cluster.ErrUnsupported)
	}
	return &registerClient{conn: conn, kv: kv, log: log}, nil
}

func (c *registerClient) Close(ctx context.Context) error { return c.conn.Close(ctx) }

func (c *registerClient) Invoke(ctx context.Context, op history.Op) (harness.Completion, error) {
	if op.F == fFetch {
		return fetch(ctx, c.log, registerTable, op)
	}
	kv, err := history.KeyValueOf(op)
	if err != nil {
		return harness.Completion{}, cluster.Definite(err)
	}
	if op.F == fWrite {
		attempts, err := c.kv.Put(ctx, registerTable, kv.Key, kv.Value)
		return harness.Completion{Attempts: attempts}, err
	}
	value, attempts, err := c.kv.Get(ctx, registerTable, kv.Key)
	return harness.Completion{Value: history.KeyValue{Key: kv.Key, Value: stored(value)}.JSON(), Attempts: attempts}, err
}

// stored is a value as the history holds it: what was written was a number, and
// whatever else comes back must be seen as what it is.
func stored(value []byte) json.RawMessage {
	if value == nil || json.Valid(value) {
		return value
	}
	quoted, _ := json.Marshal(string(value)) // a string always has a form
	return quoted
}

// scanEvery is how often a tail scanner fetches while there is nothing new. A
// reader that polls ten times a second is enough to see where the log goes.
const scanEvery = 100 * time.Millisecond
