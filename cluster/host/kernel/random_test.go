package kernel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRandomProgramsKeepTheKernelSound lets groups of tasks do everything at
// random, kills and pauses them, and checks after every event that the
// kernel's lists agree with each other.
func TestRandomProgramsKeepTheKernelSound(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 7))
		k := New(Config{Pick: r.IntN, Trace: true, OnPanic: func(_ *Group, p Panic) {
			if p.Value != "on purpose" {
				t.Error(p)
			}
		}})
		run(t, k, func(ctx context.Context, g *Group) {
			var groups []*Group
			for range 200 {
				if len(groups) < 4 {
					v := k.NewGroup(fmt.Sprintf("group-%d", len(groups)))
					p := &program{g: v, r: r, conds: []*Cond{v.MakeCond(), v.MakeCond()}, order: &Order{}}
					v.Go(v.Context(), "root", p.task)
					groups = append(groups, v)
				}
				_ = g.Sleep(ctx, time.Duration(r.IntN(300)))
				k.check(t)
				i := r.IntN(len(groups))
				switch r.IntN(5) {
				case 0:
					groups[i].Kill()
				case 1:
					groups[i].Pause()
				case 2:
					groups[i].Resume()
				}
				k.check(t)
				if groups[i].Dead() {
					groups = append(groups[:i], groups[i+1:]...)
				}
			}
		})
		k.Close()
		require.Empty(t, k.groups)
		k.check(t)
	}
}

// program is what the tasks of a group share.
type program struct {
	g     *Group
	r     *rand.Rand
	conds []*Cond
	order *Order
	depth int
}

// task does a few things at random, some of them in deferred functions.
func (p *program) task(ctx context.Context) {
	p.depth++
	defer func() { p.depth-- }()
	for range p.r.IntN(12) {
		cond := p.conds[p.r.IntN(len(p.conds))]
		switch p.r.IntN(11) {
		case 0:
			_ = p.g.Sleep(ctx, time.Duration(p.r.IntN(200)))
		case 1:
			_ = cond.Wait(ctx)
		case 2:
			cond.Broadcast()
		case 3, 4:
			if p.depth < 30 {
				p.g.Go(ctx, "child", p.task)
			}
		case 5:
			inner, cancel := p.g.WithTimeout(ctx, time.Duration(p.r.IntN(100)))
			defer cancel()
			p.g.Go(inner, "bounded", p.task)
			_ = cond.Wait(inner)
		case 6:
			inner, cancel := p.g.WithCancel(ctx)
			defer cancel()
			p.g.Go(inner, "cancelled", p.task)
		case 7:
			_, _ = Await(ctx, "timer", func(complete func(any)) {
				p.g.Kernel().After(time.Duration(p.r.IntN(100)), Func(func() { complete(nil) }))
			})
		case 8:
			if p.depth < 30 {
				p.g.GoOrdered(ctx, p.order, "ordered", RunFunc(p.task))
			}
		case 9:
			defer cond.Broadcast()
		case 10:
			switch p.r.IntN(40) {
			case 0:
				p.g.Exit(nil)
			case 1:
				panic("on purpose")
			}
		}
	}
}

// check walks every list of the kernel.
func (k *Kernel) check(t *testing.T) {
	t.Helper()
	ready := map[*task]int{}
	for i := range k.ready.n {
		ready[k.ready.ring[(k.ready.head+i)&(len(k.ready.ring)-1)]]++
	}
	spare := map[*task]bool{}
	for s := k.spare; s != nil; s = s.next {
		require.False(t, spare[s], "a finished task is spare twice")
		spare[s] = true
	}
	alive := map[*task]bool{}
	for _, g := range k.groups {
		n := 0
		for x := g.head; x != nil; x = x.next {
			require.False(t, alive[x], "a task is listed twice")
			require.False(t, spare[x], "a live task is spare")
			require.Same(t, g, x.group)
			alive[x] = true
			n++
		}
		require.Equal(t, g.size, n)
		for _, x := range g.held {
			require.True(t, g.paused && alive[x], "held without a pause")
			require.Zero(t, ready[x], "held and ready")
		}
	}
	for x, n := range ready {
		require.Equal(t, 1, n, "a task is ready twice")
		require.True(t, alive[x], "a task of the past is ready")
		require.True(t, x.cond == nil && x.waits == nil && x.slot == nil && !x.timer.set(), "a ready task still waits")
	}
	for i, x := range k.timers {
		require.Equal(t, i+1, x.pos)
		require.False(t, i > 0 && before(x, k.timers[(i-1)/4]))
	}
}
