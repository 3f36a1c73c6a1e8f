package lab

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

func looking(t *testing.T) *shrinker {
	t.Helper()
	return &shrinker{ctx: t.Context(), until: time.Now().Add(time.Hour), report: func(string) {}}
}

func TestDeltaDebuggingFindsTheSmallestList(t *testing.T) {
	list := make([]int, 100)
	for i := range list {
		list[i] = i
	}
	for _, needed := range [][]int{{0}, {99}, {3, 50}, {1, 2, 98}, {10, 30, 50, 70, 90}} {
		tries := 0
		got := looking(t).ddmin(list, func(keep []int) bool {
			tries++
			for _, n := range needed {
				if !slices.Contains(keep, n) {
					return false
				}
			}
			return true
		})
		require.Equal(t, needed, got)
		require.Less(t, tries, 300)
	}
	over := looking(t)
	over.until = time.Now().Add(-time.Second)
	require.Equal(t, list, over.ddmin(list, func([]int) bool { return true }), "no time, no change")
}

// lines makes a history of one client: an operation a line, as in "write k1 3"
// or "read k1 3".
func lines(t *testing.T, texts ...string) history.History {
	t.Helper()
	var ops []history.Op
	add := func(op history.Op) {
		op.Index, op.Time = len(ops), time.Duration(len(ops))
		ops = append(ops, op)
	}
	for _, text := range texts {
		var f, key, value string
		_, err := fmt.Sscan(text, &f, &key, &value)
		require.NoError(t, err)
		full := history.KeyValue{Key: key, Value: []byte(value)}.JSON()
		if f == "event" {
			add(history.Op{Process: history.Observer, Type: history.Info, F: key, Value: []byte(value)})
			continue
		}
		asked := full
		if f == "read" {
			asked = history.KeyValue{Key: key}.JSON()
		}
		add(history.Op{Type: history.Invoke, F: f, Value: asked})
		add(history.Op{Type: history.Ok, F: f, Value: full})
	}
	h, err := history.New(ops)
	require.NoError(t, err)
	return h
}

func TestAWriteTakesItsReadsAlong(t *testing.T) {
	h := lines(t, "write k1 1", "read k1 1", "event phase {\"name\":\"load\"}", "event hw {\"bucket\":\"b\"}", "write k2 2", "read k1 null")
	always, all := units(h, true)
	require.Equal(t, []int{4}, always, "phases stay")
	require.Len(t, all, 5)
	var writes []int
	for i, u := range all {
		if u.needs >= 0 {
			require.Equal(t, "write", h.Ops()[all[u.needs].lines[0]].F)
			require.Equal(t, []int{2, 3}, u.lines)
			writes = append(writes, u.needs)
			rest := slices.DeleteFunc([]int{0, 1, 2, 3, 4}, func(j int) bool { return j == u.needs })
			got, ok := part(h, always, all, rest)
			require.True(t, ok)
			require.Equal(t, 6, got.Len(), "the write, and the read of its value, are gone; %d stays out", i)
		}
	}
	require.Len(t, writes, 1, "a read of nothing needs nobody")
}

func TestEntriesWhoseCauseIsGoneGoToo(t *testing.T) {
	after := func(id int) harness.Trigger { return harness.Trigger{AfterFault: &id} }
	entries := []harness.Entry{{ID: 1, Trigger: after(0)}, {ID: 2, Trigger: after(1)}, {ID: 3}}
	require.Equal(t, []harness.Entry{{ID: 3}}, closed(entries))
}

func TestSwarmDrawsTestsThatCanRun(t *testing.T) {
	replications := map[int]bool{}
	for seed := uint64(1); seed <= 300; seed++ {
		c := DefaultConfig()
		c.World, c.Options.Seed = WorldSim, seed
		c = swarm(c, []string{"restart", "slow-recovery", "zk-session-loss", "old-leader"})
		_, err := c.resolve()
		require.NoError(t, err, "seed %d", seed)
		replications[c.Options.Replication] = true
		if slices.Contains(c.Nemesis, "old-leader") {
			require.GreaterOrEqual(t, c.Options.Coordinators, 2)
		}
	}
	require.Equal(t, map[int]bool{1: true, 3: true, 4: true, 5: true}, replications)
}

func TestDifferNamesTheFirstLine(t *testing.T) {
	for _, c := range []struct {
		a, b string
		line int
	}{
		{"", "", 0},
		{"a\nb\n", "a\nb\n", 0},
		{"a\nb\n", "a\nc\n", 2},
		{"a\nb\n", "a\n", 2},
		{"a\n", "a\nb\n", 2},
		{"", "a\n", 1},
	} {
		line, _, _ := differ([]byte(c.a), []byte(c.b))
		require.Equal(t, c.line, line, "%q %q", c.a, c.b)
	}
}
