// Package harness runs tests: it owns the plan, the run loop, the recorder and
// the schedule of faults. It works for anyone's system that implements
// cluster.Cluster. The run loop, the clients, the nemesis and the observers are
// tasks of one Host, the control node, so that a simulated world owns their time.
package harness

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/history"
)

// Completion is what a client returns for an operation: the value that the
// history stores (nil keeps the invocation's), who answered, and how many
// attempts it took. Attempts count whether or not there is an error.
type Completion struct {
	Value    any
	Attempts cluster.Attempts
}

// Client does one process's operations. Invoke returns nil for Ok; a definite
// error (cluster.IsDefinite) for Fail; any other for Info, except that a read
// that failed is Fail (see Workload.ReadOnly). The run loop alone decides. After
// an Info the client is closed and its process never comes back.
type Client interface {
	Invoke(ctx context.Context, op history.Op) (Completion, error)
	Close(ctx context.Context) error
}

// Nemesis injects one kind of fault. Invoke carries out one schedule entry, from
// its injection to its heal, tells the window when each happens, and returns
// what it did for the history. When ctx ends it heals and returns. Heal ends
// whatever the nemesis may have left; it may be called at any time, repeatedly.
type Nemesis interface {
	Invoke(ctx context.Context, e Entry, w *Window) (any, error)
	Heal(ctx context.Context) error
}

// Generator is a pure description of what comes next: no clock, no sleep, no
// block. The loop asks Next for the next step and tells Update what happened;
// both return nothing but values, and every draw comes from Context.Rand. Update
// is told of the invocations and of the completions of clients.
type Generator interface {
	Next(c Context) Step
	Update(c Context, op history.Op)
}

// Context is what a generator may know: the time since the start of the phase,
// the processes, and a stream of its own.
type Context struct {
	Time time.Duration
	// Free are the processes without an open operation, in the order of their
	// workers. Next is asked only when there is one.
	Free []history.Process
	// All are all processes, by worker. A process that ended in Info is replaced,
	// in the same place, by its number plus Workers.
	All     []history.Process
	Workers int
	Rand    *rand.Rand
}

// Worker is the place of a process among the workers. It outlives the process.
func (c Context) Worker(p history.Process) int { return int(p) % c.Workers }

// Step is a generator's answer. Exactly one of the forms holds: an operation to
// invoke now (Op.Process set to one of Free); Pending, with a time at which to ask
// again at the latest (zero: when something completes); or Done, for good.
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
	// Table is the one whose buckets a fault's target means if it names none.
	Table string
	// Consistency states in words what the checkers hold the system to.
	Consistency string
	// Setup runs once before the load, with a connection of its own.
	Setup func(ctx context.Context, env Env) error
	// Open makes the client of one process.
	Open func(ctx context.Context, env Env, p history.Process) (Client, error)
	// Extra is how many processes the workload needs beside Options.Concurrency,
	// for tail scanners and other observers; nil means none. They are the last
	// workers, see gen.Reserve.
	Extra func(o Options) int
	// Generator is the load; Final runs after every fault is healed and may be
	// nil. Final is asked for when the load has ended and gets the same value that
	// Generator returned, so that it knows what was done.
	Generator func(o Options) Generator
	Final     func(o Options, load Generator) Generator
	// ReadOnly tells functions whose failure is Fail whatever the error.
	ReadOnly func(f string) bool
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
	// Table is the workload's, see Workload.Table.
	Table string
	// Events are what nodes report; a nemesis waits for them.
	Events *Recorder
	// Leases keep the promise that a fault ends even if its nemesis is gone.
	Leases *Leases
}

// Fault is a value: a kind of fault that a nemesis can inject.
type Fault struct {
	Name string
	Doc  string
	// Supports says why the cluster cannot have this fault, or nil.
	Supports func(c cluster.Cluster) error
	// Draw plans the entries of a run from the fault's own stream, at least one
	// in each of its slots; pure. IDs are given by DrawSchedule.
	Draw func(o Options, r *rand.Rand, slots []Slot) []Entry
	New  func(env Env) Nemesis
	// Effects must have been seen for the fault to count as injected.
	Effects func(o Options) []checker.Effect
}

// Slot is the part of a run that belongs to one fault, so that faults leave
// each other time to recover. Times are since the start of the load.
type Slot struct {
	From, To time.Duration
	Round    int // how many slots this fault had before
}

// Test is a fully resolved plan: everything a run needs.
type Test struct {
	// Plan is what test.json holds. Run fills in what follows from the fields
	// below: workload, faults, options, planned effects.
	Plan      Plan
	Options   Options
	Workload  Workload
	Faults    []Fault
	Schedule  []Entry
	Control   host.Control
	HostWorld host.World // nil where the system under test is not in process
	Cluster   cluster.Cluster
	// Recorder receives what nodes observe; the world must have been made with
	// its Observe. Nil where nothing observes: Run makes one in Dir.
	Recorder *Recorder
	Dir      string // the run's directory; empty: nothing is written
	Log      *zap.Logger
	// Progress is told what goes on, for the terminal; may be nil. It is called
	// by a task of the control node and must not block.
	Progress func(Progress)
}

// Progress is a snapshot of a running test.
type Progress struct {
	Phase          string // setup, load, heal, converge, final, end
	Time           time.Duration
	Ok, Fail, Info int // completed client operations
	Open           int
	Faults         []string // in force
	Leader         string   // the coordinator in office
	Refused        int
}
