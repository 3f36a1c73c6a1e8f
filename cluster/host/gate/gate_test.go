package gate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

func ids(names ...cluster.NodeID) []cluster.NodeID { return names }

func TestMatches(t *testing.T) {
	request := host.Passing{From: "client", To: "tablet", API: "put"}
	reply := host.Passing{From: "tablet", To: "client", API: "put", Reply: true}
	for _, c := range []struct {
		name           string
		match          host.Match
		request, reply bool
	}{
		{"zero", host.Match{}, true, false},
		{"replies", host.Match{Replies: true}, false, true},
		{"both", host.Match{Both: true}, true, true},
		{"from", host.Match{From: ids("x", "client"), Both: true}, true, false},
		{"to", host.Match{To: ids("client"), Both: true}, false, true},
		{"api", host.Match{APIs: []string{"get", "put"}}, true, false},
		{"other api", host.Match{APIs: []string{"get"}, Both: true}, false, false},
		{"from and to", host.Match{From: ids("client"), To: ids("tablet")}, true, false},
		{"wrong to", host.Match{From: ids("client"), To: ids("client")}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.request, Matches(c.match, request))
			require.Equal(t, c.reply, Matches(c.match, reply))
		})
	}
}

func TestRulesAddUpAndTheStrictestWins(t *testing.T) {
	now := time.Duration(0)
	g := New(func() time.Duration { return now }, nil)
	r := rand.New(rand.NewPCG(1, 1))
	p := host.Passing{From: "a", To: "b", API: "put"}
	require.True(t, g.Open())
	require.Zero(t, g.Judge(p, r))
	g.Apply(host.Rule{Delay: 10, Hold: true}, 100)
	g.Apply(host.Rule{Delay: 5, Hold: true}, 200)
	g.Apply(host.Rule{Match: host.Match{APIs: []string{"get"}}, Refuse: true}, 200)
	require.Equal(t, Verdict{Delay: 15, HeldUntil: 200}, g.Judge(p, r))
	require.Equal(t, time.Duration(200), g.HeldUntil(p))
	p.API = "get"
	require.True(t, g.Judge(p, r).Refuse)
	p.At = 100
	require.Equal(t, time.Duration(5), g.Judge(p, r).Delay, "the first lease is over")
	p.At = 200
	require.Zero(t, g.Judge(p, r))
	require.Zero(t, g.HeldUntil(p))
}

func TestReplyCannotBeRefused(t *testing.T) {
	g := New(func() time.Duration { return 0 }, nil)
	g.Apply(host.Rule{Match: host.Match{Both: true}, Refuse: true}, 1)
	require.False(t, g.Judge(host.Passing{Reply: true}, nil).Refuse)
	require.True(t, g.Judge(host.Passing{}, nil).Refuse)
}

func TestSharesAreDrawn(t *testing.T) {
	g := New(func() time.Duration { return 0 }, nil)
	g.Apply(host.Rule{Drop: 0.3, Duplicate: 0.2, Reorder: 1, Jitter: 100}, time.Hour)
	r := rand.New(rand.NewPCG(1, 1))
	dropped, duplicated := 0, 0
	for range 10000 {
		v := g.Judge(host.Passing{}, r)
		require.True(t, v.Reorder)
		require.Less(t, v.Delay, time.Duration(100))
		if v.Drop {
			dropped++
		}
		if v.Duplicate {
			duplicated++
		}
	}
	require.InDelta(t, 3000, dropped, 200)
	require.InDelta(t, 2000, duplicated, 200)
}

func TestUndoAndHealTellOfTheChange(t *testing.T) {
	now := time.Duration(0)
	changes := 0
	g := New(func() time.Duration { return now }, func() { changes++ })
	undo := g.Apply(host.Rule{Drop: 1}, 10)
	late := g.Apply(host.Rule{Drop: 1}, 10)
	undo()
	undo()
	require.Equal(t, 1, changes)
	now = 10
	late()
	require.Equal(t, 1, changes, "the lease had ended by itself")
	require.True(t, g.Open())
	g.Apply(host.Rule{Drop: 1}, 10)
	g.Heal()
	require.Equal(t, 2, changes)
	require.True(t, g.Open())
}

func TestTaps(t *testing.T) {
	g := New(func() time.Duration { return 0 }, nil)
	var got []string
	one := g.Tap(func(p host.Passing) { got = append(got, "one "+p.API) })
	g.Tap(func(p host.Passing) { got = append(got, "two "+p.API) })
	require.False(t, g.Open())
	g.Listen(host.Passing{API: "x"})
	one()
	one()
	g.Listen(host.Passing{API: "y"})
	require.Equal(t, []string{"one x", "two x", "two y"}, got)
}
