package nemesis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
)

// decode reads an entry's own parameters into p, which holds the defaults.
func decode(e harness.Entry, p any) error {
	if len(e.Params) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(e.Params))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return fmt.Errorf("read parameters of entry %d: %w", e.ID, err)
	}
	return nil
}

// encode writes parameters; they are plain structs, which always have a form.
func encode(p any) json.RawMessage {
	raw, _ := json.Marshal(p)
	return raw
}

// wait is a duration in a schedule's parameters, as words.
type wait time.Duration

func (w wait) MarshalText() ([]byte, error) { return []byte(time.Duration(w).String()), nil }

func (w *wait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err == nil && d < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	*w = wait(d)
	return err
}

// between draws a duration from [from, to), in whole milliseconds so that a
// schedule is pleasant to read.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	if to <= from {
		return from
	}
	return from.Round(time.Millisecond) + time.Duration(r.Int64N(int64((to-from)/time.Millisecond)+1))*time.Millisecond
}

// overlap is how many client operations must have been open during a fault for
// it to have met a load: two thirds of a second's worth, at most a thousand.
func overlap(o harness.Options) int {
	if o.Rate <= 0 {
		return 1000
	}
	return int(min(1000, max(10, o.Rate*2/3)))
}

func list(nodes []cluster.NodeID) string {
	words := make([]string, 0, len(nodes))
	for _, id := range nodes {
		words = append(words, string(id))
	}
	return strings.Join(words, ", ")
}

// sessionEnd is how long after a node fell silent ZooKeeper surely has ended
// its session: servers round up to their tick.
func sessionEnd(o harness.Options) time.Duration { return o.SessionTimeout*3/2 + 500*time.Millisecond }

// settleTime is how long a fault's window stays open after its heal: the
// recovery belongs to the fault, and some faults are over in a moment.
const settleTime = 1500 * time.Millisecond

func settle(ctx context.Context, env harness.Env) error { return env.Host.Sleep(ctx, settleTime) }

// aBucketsLeader is a tablet that leads something: tablets that were down lead
// nothing for a while, and hitting those again changes little.
func aBucketsLeader(o harness.Options, r *rand.Rand) harness.Target {
	return harness.Target{Who: harness.WhoBucketLeader, Bucket: r.IntN(o.Buckets)}
}

// need reports that the cluster lacks a capability.
func need(what string) error {
	return fmt.Errorf("the cluster cannot %s: %w", what, cluster.ErrUnsupported)
}

// within runs f with a context that ends after d at the latest.
func within(ctx context.Context, env harness.Env, d time.Duration, f func(ctx context.Context) error) error {
	bounded, cancel := env.Host.WithTimeout(ctx, d)
	defer cancel()
	return f(bounded)
}
