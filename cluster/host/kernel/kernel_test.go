package kernel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestTimersFireInOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		k := New(Config{})
		type fired struct {
			at  time.Duration
			seq int
		}
		var got, want []fired
		var timers []*Timer
		for i := range 200 {
			f := fired{time.Duration(r.IntN(20)), i}
			timers = append(timers, k.After(f.at, Func(func() { got = append(got, f) })))
			want = append(want, f)
		}
		for range 50 {
			i := r.IntN(len(timers))
			first := k.Cancel(timers[i])
			require.False(t, k.Cancel(timers[i]))
			if first {
				want = slices.DeleteFunc(want, func(f fired) bool { return f.seq == i })
			}
		}
		slices.SortStableFunc(want, func(a, b fired) int { return int(a.at - b.at) })
		require.ErrorIs(t, k.Run(), ErrDeadlock)
		require.Equal(t, want, got)
		require.False(t, k.Cancel(nil))
		k.Close()
	}
}

func TestKillUnwindsEveryTaskAndLeaksNone(t *testing.T) {
	defer goleak.VerifyNone(t)
	k := New(Config{})
	defers := 0
	run(t, k, func(ctx context.Context, _ *Group) {
		for range 100 {
			v := k.NewGroup("victim")
			cond := v.MakeCond()
			for i := range 10 {
				v.Go(v.Context(), "task", func(ctx context.Context) {
					defer func() { defers++ }()
					for {
						switch i % 4 {
						case 0:
							_ = v.Sleep(ctx, time.Hour)
						case 1:
							_ = cond.Wait(ctx)
						case 2:
							_, _ = Await(ctx, "never", func(func(any)) {})
						case 3:
							_ = v.Sleep(ctx, time.Microsecond)
						}
					}
				})
			}
			_ = Of(ctx).group.Sleep(ctx, time.Millisecond)
			v.Kill()
			_ = Of(ctx).group.Sleep(ctx, time.Millisecond)
			require.Zero(t, v.Size())
		}
	})
	require.Equal(t, 1000, defers)
	k.Close()
}

func TestKillBeforeTheFirstStepRunsNothing(t *testing.T) {
	k := New(Config{})
	run(t, k, func(ctx context.Context, g *Group) {
		v := k.NewGroup("victim")
		v.Go(v.Context(), "task", func(context.Context) { t.Error("ran") })
		o := &Order{}
		for range 3 {
			v.GoOrdered(v.Context(), o, "ordered", RunFunc(func(context.Context) { t.Error("ran") }))
		}
		v.Kill()
		_ = g.Sleep(ctx, 1)
	})
}

func TestDeferredCancelOfTheKilledWakesNobody(t *testing.T) {
	k := New(Config{})
	run(t, k, func(ctx context.Context, g *Group) {
		for range 20 {
			v := k.NewGroup("victim")
			v.Go(v.Context(), "main", func(ctx context.Context) {
				inner, cancel := v.WithCancel(ctx)
				defer cancel()
				for range 3 {
					v.Go(inner, "waiter", func(ctx context.Context) {
						_ = v.Sleep(ctx, time.Hour)
						t.Error("ran on")
					})
				}
				_ = v.Sleep(ctx, time.Hour)
			})
			_ = g.Sleep(ctx, 1)
			v.Kill()
			_ = g.Sleep(ctx, 1)
			require.Zero(t, v.Size())
			require.Zero(t, k.ready.len())
			for range 4 {
				g.Go(ctx, "other", func(ctx context.Context) { _ = g.Sleep(ctx, 1) })
			}
		}
	})
}

func TestHooksRunOnceInOrderBeforeTheTasksUnwind(t *testing.T) {
	k := New(Config{})
	var order []string
	run(t, k, func(ctx context.Context, g *Group) {
		v := k.NewGroup("victim")
		v.OnDead(func() { order = append(order, "first") })
		back := v.OnDead(func() { order = append(order, "taken back") })
		v.OnDead(func() { order = append(order, "second") })
		back()
		v.OnGone(func() { order = append(order, "gone") })
		Of(v.Context()).OnEnd(func() { order = append(order, "context") })
		v.Go(v.Context(), "task", func(ctx context.Context) {
			defer func() { order = append(order, "unwound") }()
			_ = v.Sleep(ctx, time.Hour)
		})
		_ = g.Sleep(ctx, 1)
		v.Kill()
		v.Kill()
		_ = g.Sleep(ctx, 1)
		v.OnGone(func() { order = append(order, "gone already") })
		v.OnDead(func() { order = append(order, "dead already") })
	})
	require.Equal(t, []string{"first", "second", "unwound", "context", "gone", "gone already", "dead already"}, order)
}

func TestPanicKeepsItsOwnStack(t *testing.T) {
	var got Panic
	k := New(Config{OnPanic: func(_ *Group, p Panic) { got = p }})
	run(t, k, func(ctx context.Context, g *Group) {
		v := k.NewGroup("victim")
		v.Go(v.Context(), "clumsy", func(context.Context) { deepPanic() })
		_ = g.Sleep(ctx, 1)
		require.True(t, v.Dead())
		require.ErrorAs(t, v.ExitErr(), &Panic{})
	})
	require.Equal(t, "clumsy", got.Task)
	require.Contains(t, string(got.Stack), "deepPanic")
	require.Contains(t, got.Error(), "ouch")
}

func deepPanic() { panic("ouch") }

func TestGoexitEndsTheRunnerAndCloseCleansUp(t *testing.T) {
	defer goleak.VerifyNone(t)
	k := New(Config{})
	ended := false
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { ended = recover() == nil }()
		g := k.NewGroup("main")
		g.Go(g.Context(), "other", func(ctx context.Context) { _ = g.Sleep(ctx, time.Hour) })
		g.Go(g.Context(), "main", func(ctx context.Context) {
			_ = g.Sleep(ctx, 1)
			(&testing.T{}).SkipNow() // Goexit, as a failed requirement does
		})
		_ = k.Run()
		t.Error("Run returned")
	})
	wg.Wait()
	require.True(t, ended)
	k.Close()
}

func TestOrderStartsInTurnWhateverIsPicked(t *testing.T) {
	for seed := range uint64(30) {
		k := New(Config{Pick: Stream(seed, "scheduler").IntN})
		var started []int
		run(t, k, func(ctx context.Context, g *Group) {
			o := &Order{}
			for i := range 20 {
				g.GoOrdered(ctx, o, "task", RunFunc(func(ctx context.Context) {
					started = append(started, i)
					_ = g.Sleep(ctx, time.Duration(seed))
				}))
			}
			_ = g.Sleep(ctx, time.Second)
		})
		require.True(t, slices.IsSorted(started))
		require.Len(t, started, 20)
	}
}

func TestPausedGroupKeepsWhatWakesIt(t *testing.T) {
	k := New(Config{})
	run(t, k, func(ctx context.Context, g *Group) {
		v := k.NewGroup("victim")
		n := 0
		v.Go(v.Context(), "task", func(ctx context.Context) {
			for v.Sleep(ctx, time.Millisecond) == nil {
				n++
			}
		})
		_ = g.Sleep(ctx, 5*time.Millisecond+1)
		require.Equal(t, 5, n)
		v.Pause()
		_ = g.Sleep(ctx, time.Second)
		require.Equal(t, 5, n)
		v.Resume()
		_ = g.Sleep(ctx, 2*time.Millisecond)
		require.Equal(t, 7, n)
		v.Pause()
		v.Kill()
		_ = g.Sleep(ctx, 1)
		require.Zero(t, v.Size())
	})
}

func TestAwaitFromManyGoroutinesOnTheWallClock(t *testing.T) {
	defer goleak.VerifyNone(t)
	start := time.Now()
	k := New(Config{Clock: func() time.Duration { return time.Since(start) }})
	sum := 0
	var wg sync.WaitGroup
	run(t, k, func(ctx context.Context, g *Group) {
		left, ended := 50, g.MakeCond()
		for i := range 50 {
			g.Go(ctx, "waiter", func(ctx context.Context) {
				for range 20 {
					v, err := Await(ctx, "goroutine", func(complete func(any)) { wg.Go(func() { complete(i) }) })
					if err != nil {
						t.Error(err)
					}
					sum += v.(int)
				}
				left--
				ended.Broadcast()
			})
		}
		for left > 0 {
			_ = ended.Wait(ctx)
		}
	})
	wg.Wait()
	require.Equal(t, 20*(49*50/2), sum)
	k.Close()
}

func TestPostsKeepTheirOrderAndTimersWaitForTheirTime(t *testing.T) {
	start := time.Now()
	k := New(Config{Clock: func() time.Duration { return time.Since(start) }})
	var got []int
	run(t, k, func(ctx context.Context, g *Group) {
		var wg sync.WaitGroup
		wg.Go(func() {
			k.PostAt(k.Now()+20*time.Millisecond, Func(func() { got = append(got, -1) }))
			for i := range 100 {
				k.Post(Func(func() { got = append(got, i) }))
			}
		})
		wg.Wait()
		_ = g.Sleep(ctx, 5*time.Millisecond)
		require.Len(t, got, 100)
		_ = g.Sleep(ctx, 40*time.Millisecond)
	})
	require.True(t, slices.IsSorted(got[:100]))
	require.Equal(t, -1, got[100])
}

func TestReportSaysWhatEachTaskWaitsFor(t *testing.T) {
	k := New(Config{})
	var report string
	run(t, k, func(ctx context.Context, g *Group) {
		v := k.NewGroup("tablet-0")
		deadline, _ := v.WithTimeout(v.Context(), time.Minute)
		v.Go(deadline, "fetcher", func(ctx context.Context) {
			s := &Slot{}
			_ = s.Wait(ctx, "Fetch", "tablet-1")
		})
		v.Go(v.Context(), "ticker", func(ctx context.Context) { _ = v.Sleep(ctx, time.Second) })
		_ = g.Sleep(ctx, 1)
		v.Go(v.Context(), "fresh", func(context.Context) {})
		report = k.Report()
	})
	require.Equal(t, "main (1 tasks)\n  main: running\ntablet-0 (3 tasks)\n  fetcher: Fetch tablet-1, until 1m0s\n"+
		"  ticker: sleep, until 1s\n  fresh: not started\n", report)
}

func TestStreamsAreStableAndApart(t *testing.T) {
	once, again := Stream(1, "a"), Stream(1, "a")
	require.Equal(t, once.Uint64(), again.Uint64())
	seen := map[uint64]string{}
	for seed := range uint64(100) {
		for _, name := range []string{"a", "b", "node/a/1", "node/a/2", "scheduler"} {
			v := Stream(seed, name).Uint64()
			require.Empty(t, seen[v])
			seen[v] = fmt.Sprint(seed, name)
		}
	}
}

func TestExitCarriesItsError(t *testing.T) {
	k := New(Config{})
	mine := errors.New("mine")
	run(t, k, func(ctx context.Context, g *Group) {
		v := k.NewGroup("victim")
		v.Go(v.Context(), "task", func(context.Context) {
			v.Exit(mine)
			t.Error("Exit returned")
		})
		_ = g.Sleep(ctx, 1)
		require.ErrorIs(t, v.ExitErr(), mine)
		require.Panics(t, func() { v.Go(v.Context(), "late", func(context.Context) {}) })
	})
}
