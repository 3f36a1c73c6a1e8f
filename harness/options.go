package harness

import (
	"fmt"
	"time"
)

// Options are the knobs of a test that workloads and faults draw from. They
// stand, fully resolved, in test.json; durations there are nanoseconds.
type Options struct {
	Seed           uint64        `json:"seed"`
	TimeLimit      time.Duration `json:"time_limit"` // of the load
	Rate           float64       `json:"rate"`       // operations per second, 0 = as fast as the clients go
	Concurrency    int           `json:"concurrency"`
	Coordinators   int           `json:"coordinators"`
	Tablets        int           `json:"tablets"`
	Replication    int           `json:"replication"`
	MinISR         int           `json:"min_isr"`
	Buckets        int           `json:"buckets"`
	Recovery       time.Duration `json:"recovery"`     // a KV tablet's restore inside activation, when slowed
	LogRecovery    time.Duration `json:"log_recovery"` // before a tablet registers, when slowed
	SessionTimeout time.Duration `json:"session_timeout"`
	StormLimit     int           `json:"storm_limit"` // refusals of a bucket within 10 s
	RollOn         string        `json:"roll_on"`     // ready or serving
	OpTimeout      time.Duration `json:"op_timeout"`
	Converge       time.Duration `json:"converge"` // how long convergence may take after the last heal
	// Keys is how many keys are in use at a time; OpsPerKey how many operations
	// the load makes on one before it takes a new one.
	Keys      int `json:"keys"`
	OpsPerKey int `json:"ops_per_key"`
	// HeavyTail makes some messages between nodes slow; in simulation only.
	HeavyTail bool `json:"heavy_tail,omitempty"`
}

// DefaultOptions are those of a laptop's half minute.
func DefaultOptions() Options {
	return Options{
		TimeLimit: 30 * time.Second, Rate: 1500, Concurrency: 16, Coordinators: 3, Tablets: 5,
		Replication: 3, MinISR: 2, Buckets: 12, Recovery: 2 * time.Second, LogRecovery: time.Second,
		SessionTimeout: 3 * time.Second, StormLimit: 100, RollOn: RollOnServing,
		OpTimeout: 5 * time.Second, Converge: 30 * time.Second, Keys: 12, OpsPerKey: 180,
	}
}

// What a rolling restart waits for before it goes on to the next node.
const (
	RollOnReady   = "ready"
	RollOnServing = "serving"
)

// Limits that the checkers rest on: Porcupine judges every key only while keys
// stay this small.
const (
	MaxOpsPerKey = 200
	MaxOpenKey   = 10
)

// Validate refuses options that no test can have, naming the field.
func (o Options) Validate() error {
	for _, check := range []struct {
		name string
		bad  bool
		want string
	}{
		{"time_limit", o.TimeLimit <= 0, "a positive duration"},
		{"rate", o.Rate < 0, "0 or more operations a second"},
		{"concurrency", o.Concurrency < 1, "at least 1"},
		{"coordinators", o.Coordinators < 1, "at least 1"},
		{"tablets", o.Tablets < 1, "at least 1"},
		{"replication", o.Replication < 1 || o.Replication > o.Tablets, "1 to the number of tablets"},
		{"min_isr", o.MinISR < 1 || o.MinISR > o.Replication, "1 to the replication"},
		{"buckets", o.Buckets < 1, "at least 1"},
		{"session_timeout", o.SessionTimeout <= 0, "a positive duration"},
		{"op_timeout", o.OpTimeout <= 0, "a positive duration"},
		{"converge", o.Converge <= 0, "a positive duration"},
		{"recovery", o.Recovery < 0, "0 or more"},
		{"log_recovery", o.LogRecovery < 0, "0 or more"},
		{"roll_on", o.RollOn != RollOnReady && o.RollOn != RollOnServing, "ready or serving"},
		{"keys", o.Keys < 1, "at least 1"},
		{"ops_per_key", o.OpsPerKey < 1 || o.OpsPerKey > MaxOpsPerKey, fmt.Sprintf("1 to %d", MaxOpsPerKey)},
	} {
		if check.bad {
			return fmt.Errorf("check options: %s: want %s", check.name, check.want)
		}
	}
	return nil
}
