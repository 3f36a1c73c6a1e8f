package gen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// loop asks a generator as the run loop does, on a clock of its own: workers
// take operations and end each after some time, in some way.
type loop struct {
	workers int
	limit   time.Duration                                     // of the whole
	answer  func(op history.Op) (time.Duration, history.Type) // how long, how
	open    map[history.Process]history.Op
	ends    []ending
	all     []history.Process
	now     time.Duration
	lines   []history.Op
	asked   int
}

type ending struct {
	at   time.Duration
	op   history.Op
	kind history.Type
}

func quick(history.Op) (time.Duration, history.Type) { return time.Millisecond, history.Ok }

func simulate(t *testing.T, g harness.Generator, l loop) *loop {
	t.Helper()
	if l.workers == 0 {
		l.workers = 3
	}
	if l.limit == 0 {
		l.limit = time.Minute
	}
	if l.answer == nil {
		l.answer = quick
	}
	l.open = map[history.Process]history.Op{}
	for i := range l.workers {
		l.all = append(l.all, history.Process(i))
	}
	r := harness.Stream(1, "test")
	for l.now < l.limit {
		c := l.context()
		c.Rand = r
		until := l.limit
		if len(c.Free) > 0 {
			require.Less(t, l.asked, 1_000_000, "the generator spins")
			l.asked++
			s := g.Next(c)
			if s.Done {
				break
			}
			if !s.Pending {
				require.Contains(t, c.Free, s.Op.Process)
				l.dispatch(g, s.Op, r)
				continue
			}
			if s.At > 0 {
				until = min(until, max(s.At, l.now+1))
			}
		}
		l.advance(g, until, r)
	}
	return &l
}

func (l *loop) context() harness.Context {
	c := harness.Context{Time: l.now, All: l.all, Workers: l.workers}
	for _, p := range l.all {
		if _, busy := l.open[p]; !busy {
			c.Free = append(c.Free, p)
		}
	}
	return c
}

func (l *loop) dispatch(g harness.Generator, op history.Op, _ any) {
	op.Type, op.Time, op.Index = history.Invoke, l.now, len(l.lines)
	l.lines = append(l.lines, op)
	l.open[op.Process] = op
	took, kind := l.answer(op)
	l.ends = append(l.ends, ending{l.now + took, op, kind})
	slices.SortStableFunc(l.ends, func(a, b ending) int { return int(a.at - b.at) })
	g.Update(l.context(), op)
}

// advance moves the clock to the next completion, or to until.
func (l *loop) advance(g harness.Generator, until time.Duration, _ any) {
	if len(l.ends) == 0 || l.ends[0].at > until {
		l.now = until
		return
	}
	e := l.ends[0]
	l.ends = l.ends[1:]
	l.now = e.at
	op := e.op
	op.Type, op.Time, op.Index = e.kind, l.now, len(l.lines)
	l.lines = append(l.lines, op)
	delete(l.open, op.Process)
	if op.Type == history.Info {
		i := slices.Index(l.all, op.Process)
		l.all[i] += history.Process(l.workers)
	}
	g.Update(l.context(), op)
}

// fs are the functions of the invocations, in order.
func (l *loop) fs() string {
	var words []string
	for _, op := range l.lines {
		if op.Type == history.Invoke {
			words = append(words, op.F)
		}
	}
	return strings.Join(words, " ")
}

func (l *loop) count(f string) int {
	n := 0
	for _, op := range l.lines {
		if op.Type == history.Invoke && (f == "" || op.F == f) {
			n++
		}
	}
	return n
}

func op(f string) history.Op { return history.Op{F: f} }

func always(f string) harness.Generator {
	return Ops(func(harness.Context) history.Op { return op(f) })
}

func TestPartsInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		gen     harness.Generator
		workers int
		want    string
	}{
		"once":                         {Once(op("a")), 1, "a"},
		"sequence":                     {Seq(op("a"), op("b"), op("c")), 1, "a b c"},
		"nothing":                      {Seq(), 1, ""},
		"limit":                        {Limit(3, always("a")), 1, "a a a"},
		"limit longer than the part":   {Limit(3, Once(op("a"))), 1, "a"},
		"flip-flop":                    {Limit(5, FlipFlop(always("a"), always("b"))), 1, "a b a b a"},
		"flip-flop ends with its turn": {FlipFlop(Seq(op("a"), op("a")), Once(op("b")), always("c")), 1, "a b c a"},
		"any prefers the first":        {Any(Once(op("a")), Seq(op("b"), op("b"))), 1, "a b b"},
		"phases":                       {Phases(Once(op("a")), Seq(op("b"), op("b")), Once(op("c"))), 2, "a b b c"},
		"each process":                 {EachProcess(func(w int) harness.Generator { return Once(op(fmt.Sprint(w))) }), 3, "0 1 2"},
		"until ok":                     {UntilOk(3, op("a"), op("b")), 1, "a b"},
		"mix of one":                   {Mix(Weighted{1, Once(op("a"))}, Weighted{0, always("never")}), 1, "a"},
		"mix drops what is done":       {Limit(9, Mix(Weighted{1, Once(op("a"))}, Weighted{100, Once(op("b"))})), 1, "b a"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, simulate(t, c.gen, loop{workers: c.workers}).fs())
		})
	}
}

func TestPhasesWaitForEverythingUnderWay(t *testing.T) {
	l := simulate(t, Phases(Seq(op("a"), op("a"), op("a")), Once(op("b"))), loop{answer: func(o history.Op) (time.Duration, history.Type) {
		return time.Duration(1+int(o.Process)) * time.Second, history.Ok
	}})
	for _, line := range l.lines {
		if line.F == "b" && line.Type == history.Invoke {
			require.Equal(t, 3*time.Second, line.Time)
		}
	}
	require.Equal(t, 1, l.count("b"))
}

func TestRateIsKeptOnAverage(t *testing.T) {
	for _, perSecond := range []float64{0.5, 20, 1000} {
		l := simulate(t, Rate(perSecond, always("a")), loop{limit: 100 * time.Second, workers: 8})
		require.InEpsilon(t, perSecond*100, l.count(""), 0.2, "%v a second", perSecond)
	}
}

func TestNoFloodAfterAnOutage(t *testing.T) {
	// All workers hang for 10 s; afterwards the rate is what it was.
	l := simulate(t, Rate(100, always("a")), loop{limit: 20 * time.Second, answer: func(o history.Op) (time.Duration, history.Type) {
		if o.Time < 10*time.Second {
			return 10*time.Second - o.Time, history.Ok
		}
		return time.Millisecond, history.Ok
	}})
	n := 0
	for _, line := range l.lines {
		if line.Type == history.Invoke && line.Time >= 10*time.Second && line.Time < 10*time.Second+100*time.Millisecond {
			n++
		}
	}
	require.Less(t, n, 20)
}

func TestTimeLimitEndsInTime(t *testing.T) {
	l := simulate(t, TimeLimit(time.Second, Rate(0.001, always("a"))), loop{limit: time.Hour})
	require.LessOrEqual(t, l.now, time.Second)
}

func TestMixKeepsItsShares(t *testing.T) {
	l := simulate(t, Limit(10_000, Mix(Weighted{3, always("a")}, Weighted{1, always("b")})), loop{})
	require.InEpsilon(t, 7500, l.count("a"), 0.05)
}

func TestReserveKeepsItsWorkers(t *testing.T) {
	kinds := []history.Type{history.Ok, history.Info, history.Fail}
	n := 0
	l := simulate(t, Reserve(2, Rate(50, always("scan")), Rate(200, always("work"))), loop{
		workers: 5, limit: 20 * time.Second,
		answer: func(history.Op) (time.Duration, history.Type) { n++; return 3 * time.Millisecond, kinds[n%3] },
	})
	for _, line := range l.lines {
		require.Equal(t, line.F == "scan", int(line.Process)%5 >= 3, "process %d", line.Process)
	}
	require.Greater(t, l.count("scan"), 500)
	require.Greater(t, l.count("work"), 2000)
}

func TestUntilOkTriesAgainWithAPause(t *testing.T) {
	tries := map[string]int{}
	var times []time.Duration
	l := simulate(t, UntilOk(4, op("a"), op("b"), op("hopeless")), loop{answer: func(o history.Op) (time.Duration, history.Type) {
		tries[o.F]++
		if o.F == "a" {
			times = append(times, o.Time)
		}
		if o.F != "hopeless" && tries[o.F] == 3 {
			return time.Millisecond, history.Ok
		}
		return time.Millisecond, history.Fail
	}})
	require.Equal(t, map[string]int{"a": 3, "b": 3, "hopeless": 4}, tries)
	require.GreaterOrEqual(t, times[1]-times[0], retryPause)
	require.Less(t, l.now, 2*time.Second)
}

func TestKeysStayWithinTheirLimits(t *testing.T) {
	keys := Keys{Prefix: "k", Active: 4, Ops: 50, Open: 10}
	n := 0
	g := Independent(keys, func(_ harness.Context, key string) history.Op { return op(key) })
	l := simulate(t, g, loop{workers: 60, limit: 10 * time.Second, answer: func(history.Op) (time.Duration, history.Type) {
		n++
		if n%10 == 0 {
			return 200 * time.Millisecond, history.Info
		}
		return 20 * time.Millisecond, history.Ok
	}})
	ops, open, unknown, worst := map[string]int{}, map[string]int{}, map[string]int{}, 0
	for _, line := range l.lines {
		if line.Type == history.Invoke {
			ops[line.F]++
			open[line.F]++
			require.LessOrEqual(t, ops[line.F], keys.Ops)
			worst = max(worst, open[line.F]+unknown[line.F])
			continue
		}
		open[line.F]--
		if line.Type == history.Info {
			unknown[line.F]++
		}
	}
	require.LessOrEqual(t, worst, keys.Open)
	require.Greater(t, len(ops), 50, "keys retire")
	require.Subset(t, g.Used(), slices.Collect(func(yield func(string) bool) {
		for k := range ops {
			if !yield(k) {
				return
			}
		}
	}))
}

func TestASecondRunIsTheSame(t *testing.T) {
	run := func() string {
		g := Reserve(1, Rate(10, always("s")), Rate(100, Mix(Weighted{2, always("a")}, Weighted{1, always("b")})))
		l := simulate(t, g, loop{workers: 4, limit: 10 * time.Second})
		return fmt.Sprint(l.lines)
	}
	first := run()
	require.Equal(t, first, run())
}
