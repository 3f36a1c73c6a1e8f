package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/history"
)

// ExploreOptions say which seeds Explore runs, and how.
type ExploreOptions struct {
	// Config is what all seeds share; its seed is the first one.
	Config Config
	// Seeds is how many, 0 = until For is over. For 0 = no limit of time.
	Seeds int
	For   time.Duration
	// Shard of Shards takes every Shards-th seed; both from 1, 0 = all seeds.
	Shard, Shards int
	// Collect goes on after a finding.
	Collect bool
	// Swarm has every seed draw its own faults, sizes and rates.
	Swarm bool
	// Workers is the number of seeds under way at a time, 0 = GOMAXPROCS.
	Workers int
}

func (o ExploreOptions) validate() error {
	switch {
	case o.Config.World != WorldSim:
		return usagef("explore runs in the simulated world only")
	case o.Seeds < 0 || o.For < 0:
		return usagef("seeds and time cannot be negative")
	case o.Seeds == 0 && o.For == 0:
		return usagef("explore has no end: give a number of seeds or a time")
	case o.Shards < 0 || o.Shards > 0 && (o.Shard < 1 || o.Shard > o.Shards):
		return usagef("shard %d/%d: want 1/n to n/n", o.Shard, o.Shards)
	case o.Config.Schedule != "":
		return usagef("explore draws its schedules; jepsen test follows one")
	}
	return nil
}

// Explored is what has been found so far.
type Explored struct {
	Seeds        int           `json:"seeds"` // judged
	Valid        int           `json:"valid"`
	Unknown      int           `json:"unknown"`
	Failed       int           `json:"failed"`    // runs with a finding
	Uncovered    int           `json:"uncovered"` // runs whose coverage is not valid
	Acknowledged int           `json:"acknowledged"`
	Events       int           `json:"events"`  // lines of histories
	Virtual      time.Duration `json:"virtual"` // simulated
	Elapsed      time.Duration `json:"elapsed"`
	Findings     []Finding     `json:"findings"` // by fingerprint, in order of discovery
}

// Finding is a kind of failure, with the first run that showed it.
type Finding struct {
	checker.Fingerprint
	ID      string `json:"id"`
	Count   int    `json:"count"` // runs that showed it
	Seed    uint64 `json:"seed"`
	After   int    `json:"after"` // seeds judged by then, itself included
	Dir     string `json:"dir,omitempty"`
	Command string `json:"command"`
}

// explorer shares the seeds among workers.
type explorer struct {
	ExploreOptions
	faults []string
	begun  time.Time
	report func(Explored)

	mu    sync.Mutex
	taken int
	done  Explored
	stop  bool
	err   error
}

// Explore runs many seeds, one a core, each in memory, and runs those that show
// something new once more into a folder. Report is told after every seed, with
// a lock held. The error says that exploring itself failed; a seed whose run
// failed is a finding about the harness.
func Explore(ctx context.Context, o ExploreOptions, report func(Explored)) (Explored, error) {
	if err := o.validate(); err != nil {
		return Explored{}, err
	}
	faults, err := faultNames(o.Config.Nemesis)
	if err != nil {
		return Explored{}, err
	}
	x := &explorer{ExploreOptions: o, faults: faults, begun: time.Now(), report: report}
	if _, err := x.config(o.Config.Options.Seed).resolve(); err != nil {
		return Explored{}, err // what is wrong with one seed is wrong with all
	}
	if x.Workers == 0 {
		x.Workers = runtime.GOMAXPROCS(0)
	}
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	var workers sync.WaitGroup
	for range x.Workers {
		workers.Go(func() { x.work(ctx) })
	}
	workers.Wait()
	x.done.Elapsed = time.Since(x.begun)
	return x.done, x.err
}

func (x *explorer) work(ctx context.Context) {
	for ctx.Err() == nil {
		seed, ok := x.next()
		if !ok {
			return
		}
		c := x.config(seed)
		outcome, err := Run(ctx, c, Quiet{})
		if ctx.Err() != nil {
			return // cut short: this seed says nothing
		}
		x.judged(c, outcome, err)
	}
}

// next gives the next seed of the shard.
func (x *explorer) next() (uint64, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	step, offset := 1, 0
	if x.Shards > 0 {
		step, offset = x.Shards, x.Shard-1
	}
	n := offset + x.taken*step
	if x.stop || x.Seeds > 0 && n >= x.Seeds {
		return 0, false
	}
	x.taken++
	return x.Config.Options.Seed + uint64(n), true
}

// config is the test of a seed.
func (x *explorer) config(seed uint64) Config {
	c := x.Config
	c.Options.Seed, c.Out, c.quick = seed, "", true
	if x.Swarm {
		c = swarm(c, x.faults)
	}
	return c
}

// judged counts a seed, and keeps what it shows that is new.
func (x *explorer) judged(c Config, outcome Outcome, err error) {
	prints := checker.Fingerprints(outcome.Result)
	if err != nil {
		prints = checker.Fingerprints(checker.Compose([]checker.Verdict{harnessFailure(err)}))
	}
	fresh := x.count(c, outcome, prints)
	if len(fresh) == 0 || x.Config.Out == "" {
		return
	}
	kept := c
	kept.Out, kept.quick = x.Config.Out, false
	again, err := Run(context.Background(), kept, Quiet{}) // a finding is kept even if time is up
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil && again.Dir == "" {
		x.err = errors.Join(x.err, fmt.Errorf("keep seed %d: %w", c.Options.Seed, err))
	}
	for _, i := range fresh {
		x.done.Findings[i].Dir = again.Dir
	}
	x.report(x.done)
}

// count adds a seed up and gives the places of its new findings.
func (x *explorer) count(c Config, outcome Outcome, prints []checker.Fingerprint) (fresh []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := &x.done
	d.Seeds++
	d.Acknowledged += acknowledged(outcome.input.History)
	d.Events += outcome.input.History.Len()
	d.Virtual += outcome.input.History.End()
	d.Elapsed = time.Since(x.begun)
	switch {
	case len(prints) > 0:
		d.Failed++
		x.stop = x.stop || !x.Collect
	case outcome.Exit == checker.ExitValid:
		d.Valid++
	default:
		d.Unknown++
	}
	if outcome.Coverage != checker.Valid {
		d.Uncovered++
	}
	for _, f := range prints {
		if i := d.find(f); i >= 0 {
			d.Findings[i].Count++
			continue
		}
		kept := c
		kept.Out = DefaultConfig().Out
		fresh = append(fresh, len(d.Findings))
		d.Findings = append(d.Findings, Finding{
			Fingerprint: f, ID: f.ID(), Count: 1, Seed: c.Options.Seed, After: d.Seeds, Command: kept.Command(),
		})
	}
	x.report(*d)
	return fresh
}

func (e Explored) find(f checker.Fingerprint) int {
	for i, known := range e.Findings {
		if known.Fingerprint == f {
			return i
		}
	}
	return -1
}

// acknowledged counts the operations that clients were told have happened.
func acknowledged(h history.History) int {
	n := 0
	for _, op := range h.Ops() {
		if op.Process >= 0 && op.Type == history.Ok {
			n++
		}
	}
	return n
}
