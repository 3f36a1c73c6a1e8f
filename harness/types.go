// Package harness runs tests: it owns the plan, the run loop, the generators
// and the schedule of faults. It works for anyone's system that implements
// cluster.Cluster.
package harness

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// Completion is what a client returns for an operation: the value that the
// history stores, who answered, and how many attempts it took. Attempts count
// whether or not there is an error.
type Completion struct {
	Value    any
	Attempts cluster.Attempts
}

// Client does one process's operations. Invoke returns nil for Ok; a definite
// error (cluster.IsDefinite) for Fail; any other for Info, except that a read
// that failed is Fail (see Workload.ReadOnly). The run loop alone decides.
type Client interface {
	Invoke(ctx context.Context, op history.Op) (Completion, error)
	Close(ctx context.Context) error
}

// Nemesis injects one kind of fault. Invoke carries out one schedule entry, from
// its injection to its heal, and returns what it did for the history. Heal ends
// whatever the nemesis may have left; it may be called at any time, repeatedly.
type Nemesis interface {
	Invoke(ctx context.Context, e Entry) (any, error)
	Heal(ctx context.Context) error
}

// Generator is a pure description of what comes next: no clock, no sleep, no
// block. The loop asks Next for the next step and tells Update what happened;
// both return nothing but values, and every draw comes from Context.Rand.
type Generator interface {
	Next(c Context) Step
	Update(c Context, op history.Op)
}

// Context is what a generator may know: the time since the start, the free
// processes, and a stream of its own.
type Context struct {
	Time time.Duration
	Free []history.Process // sorted, not empty when Next is asked for an operation
	All  []history.Process
	Rand *rand.Rand
}

// Step is a generator's answer. Exactly one of the forms holds: an operation to
// invoke now (Op.Process set to one of Free); Pending, with a time at which to ask again
// at the latest (zero: when something completes); or Done.
type Step struct {
	Op      history.Op
	Pending bool
	At      time.Duration
	Done    bool
}

// Workload is a value: what clients do, and what they are promised.
type Workload struct {
	Name string
	Doc  string // what it does
	// Consistency states in words what the checkers hold the system to.
	Consistency string
	// Setup runs once before the load, with a connection of its own.
	Setup func(ctx context.Context, env Env) error
	// Open makes the client of one process.
	Open func(ctx context.Context, env Env, p history.Process) (Client, error)
	// Generator is the load; Final runs after every fault is healed.
	Generator func(o Options) Generator
	Final     func(o Options) Generator
	// ReadOnly tells functions whose failure is Fail whatever the error.
	ReadOnly func(f string) bool
	// Background starts tasks beside the load (tail scanners), or is nil. They
	// end with ctx.
	Background func(ctx context.Context, env Env) error
	// Checkers judge the property; the standing ones are added by the test.
	Checkers func(o Options) []checker.Checker
}

// Env is what workloads and faults are given to work with.
type Env struct {
	Host    host.Control
	World   host.World // nil where the system under test is not in process
	Cluster cluster.Cluster
	Options Options
	Log     *zap.Logger
}

// Fault is a value: a kind of fault that a nemesis can inject.
type Fault struct {
	Name string
	Doc  string
	// Supports says why the cluster cannot have this fault, or nil.
	Supports func(c cluster.Cluster) error
	// Draw plans the entries of a run from the fault's own stream; pure.
	Draw func(o Options, r *rand.Rand) []Entry
	New  func(env Env) Nemesis
	// Effects must have been seen for the fault to count as injected.
	Effects func(o Options) []checker.Effect
}

// Entry is one fault of a schedule: when, what, whom, how, how long. Schedules
// are written before the run, can be edited by hand, and are replayed.
type Entry struct {
	ID      int             `json:"id"`
	Fault   string          `json:"fault"`
	Trigger Trigger         `json:"trigger"`
	Target  Target          `json:"target"`
	Params  json.RawMessage `json:"params,omitempty"` // the fault's own
	// Lease bounds the fault's duration in any case.
	Lease time.Duration `json:"lease"`
}

// Trigger says when an entry starts. At is a time since the start of the load;
// Ops a number of completed client operations; Event an observer event. All
// that are set must hold; events count only after the others hold.
type Trigger struct {
	At    time.Duration     `json:"at,omitempty"`
	Ops   int               `json:"ops,omitempty"`
	Event string            `json:"event,omitempty"`
	Where map[string]string `json:"where,omitempty"` // fields of the event, as text
	// AfterFault starts the entry when the entry with this ID has ended.
	AfterFault *int `json:"after_fault,omitempty"`
}

// Target selects nodes by role at the moment of injection.
type Target struct {
	// Who is one of: coordinator-leader, standby, coordinators, tablet, tablets,
	// bucket-leader, bucket-followers, minority, majority, all, node.
	Who    string           `json:"who"`
	Count  int              `json:"count,omitempty"` // how many of them, 0 = one, -1 = all
	Nodes  []cluster.NodeID `json:"nodes,omitempty"` // for who = node
	Table  string           `json:"table,omitempty"` // for bucket-…
	Bucket int              `json:"bucket,omitempty"`
}

// Options are the knobs of a test that workloads and faults draw from. They
// stand, fully resolved, in test.json.
type Options struct {
	Seed           uint64        `json:"seed"`
	TimeLimit      time.Duration `json:"time_limit"`
	Rate           float64       `json:"rate"` // operations per second, 0 = as fast as the clients go
	Concurrency    int           `json:"concurrency"`
	Coordinators   int           `json:"coordinators"`
	Tablets        int           `json:"tablets"`
	Replication    int           `json:"replication"`
	MinISR         int           `json:"min_isr"`
	Buckets        int           `json:"buckets"`
	Recovery       time.Duration `json:"recovery"`     // a KV tablet's restore inside activation
	LogRecovery    time.Duration `json:"log_recovery"` // before a tablet registers
	SessionTimeout time.Duration `json:"session_timeout"`
	StormLimit     int           `json:"storm_limit"` // refusals of a bucket within 10 s
	RollOn         string        `json:"roll_on"`     // ready or serving
	OpTimeout      time.Duration `json:"op_timeout"`
	Converge       time.Duration `json:"converge"` // how long convergence may take after the last heal
}

// Test is a fully resolved plan: everything a run needs.
type Test struct {
	Name      string
	Options   Options
	Workload  Workload
	Faults    []Fault
	Schedule  []Entry
	World     string // sim, local, fluss
	Control   host.Control
	HostWorld host.World
	Cluster   cluster.Cluster
	Dir       string // the run's directory; empty: nothing is written
	Log       *zap.Logger
	// Progress is told what goes on, for the terminal; may be nil.
	Progress func(Progress)
}

// Progress is a snapshot of a running test.
type Progress struct {
	Phase          string // setup, load, heal, converge, final, check
	Time           time.Duration
	Ok, Fail, Info int
	Open           int
	Faults         []string // in force
	Leader         string   // the coordinator in office
	Refused        int
}
