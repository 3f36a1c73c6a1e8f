package coordinator

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

func viewOf(live, leaving []int) view {
	return view{
		live:    func(s int) bool { return slices.Contains(live, s) },
		leaving: func(s int) bool { return slices.Contains(leaving, s) },
		epoch:   9,
	}
}

func lai(leader, leaderEpoch, bucketEpoch int, isr ...int) protocol.LeaderAndIsr {
	return protocol.LeaderAndIsr{Leader: leader, LeaderEpoch: leaderEpoch, BucketEpoch: bucketEpoch, ISR: isr, CoordinatorEpoch: 4}
}

func TestFirst(t *testing.T) {
	got, ok := first([]int{2, 0, 1}, viewOf([]int{0, 1}, nil))
	assert.True(t, ok)
	assert.Equal(t, protocol.LeaderAndIsr{Leader: 0, ISR: []int{0, 1}, CoordinatorEpoch: 9}, got)
	_, ok = first([]int{2}, viewOf([]int{0, 1}, nil))
	assert.False(t, ok)
}

func TestElect(t *testing.T) {
	for _, c := range []struct {
		name             string
		old              protocol.LeaderAndIsr
		live, leaving    []int
		avoid, preferred int
		leader           int
		isr              []int
	}{
		{"first by preference", lai(2, 1, 5, 0, 1, 2), []int{0, 1}, nil, -1, -1, 1, []int{0, 1}},
		{"only from the isr", lai(2, 1, 5, 0, 2), []int{0, 1}, nil, -1, -1, 0, []int{0}},
		{"nobody: the isr stays whole", lai(2, 1, 5, 0, 2), []int{1}, nil, -1, -1, -1, []int{0, 2}},
		{"the same server again", lai(1, 1, 5, 1), []int{1}, nil, -1, -1, 1, []int{1}},
		{"one to avoid comes later", lai(1, 1, 5, 0, 1), []int{0, 1}, nil, 1, -1, 0, []int{0, 1}},
		{"one to avoid, if it is alone", lai(1, 1, 5, 1), []int{0, 1}, nil, 1, -1, 1, []int{1}},
		{"leaving last", lai(1, 1, 5, 0, 1), []int{0, 1}, []int{1}, -1, -1, 0, []int{0}},
		{"leaving, if it is alone", lai(1, 1, 5, 1), []int{1}, []int{1}, 1, -1, 1, []int{1}},
		{"preferred", lai(1, 1, 5, 0, 1, 2), []int{0, 1, 2}, nil, 1, 2, 2, []int{0, 1, 2}},
		{"preferred, but not in sync", lai(1, 1, 5, 0, 1), []int{0, 1, 2}, nil, 1, 2, 0, []int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := elect([]int{1, 0, 2}, c.old, viewOf(c.live, c.leaving), c.avoid, c.preferred)
			assert.Equal(t, protocol.LeaderAndIsr{
				Leader: c.leader, LeaderEpoch: 2, BucketEpoch: 6, ISR: c.isr, CoordinatorEpoch: 9,
			}, got)
		})
	}
}

// TestElectionsKeepTheInvariants draws elections and looks at what must hold of
// every LAI: the leader is in the ISR, that is a part of the old one and never
// empty, and the epochs go up.
func TestElectionsKeepTheInvariants(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	some := func() (out []int) {
		for s := range 4 {
			if r.IntN(2) == 0 {
				out = append(out, s)
			}
		}
		return out
	}
	for range 20000 {
		replicas := []int{3, 1, 0, 2}
		isr := some()
		if len(isr) == 0 {
			continue
		}
		b := &bucket{stored: true, replicas: replicas, lai: lai(isr[r.IntN(len(isr))], 3, 8, isr...)}
		if r.IntN(4) == 0 {
			b.lai.Leader = protocol.NoLeader
		}
		live := some()
		v := viewOf(live, some())
		next, change := plan(b, v, r.IntN(3) == 0)
		if !change {
			continue
		}
		assert.Subset(t, b.lai.ISR, next.ISR)
		assert.NotEmpty(t, next.ISR)
		assert.Equal(t, b.lai.BucketEpoch+1, next.BucketEpoch)
		if next.Leader == protocol.NoLeader {
			assert.Equal(t, b.lai.ISR, next.ISR)
			assert.False(t, slices.ContainsFunc(live, func(s int) bool { return slices.Contains(isr, s) }), "nobody who may lead lives")
		} else {
			assert.Contains(t, next.ISR, next.Leader)
			assert.Contains(t, live, next.Leader)
		}
		if next.LeaderEpoch == b.lai.LeaderEpoch {
			assert.Equal(t, b.lai.Leader, next.Leader, "a leader epoch has one leader")
		} else {
			assert.Equal(t, b.lai.LeaderEpoch+1, next.LeaderEpoch)
		}
	}
}

func TestPlan(t *testing.T) {
	b := &bucket{replicas: []int{0, 1, 2}}
	_, change := plan(b, viewOf(nil, nil), false)
	assert.False(t, change, "new, and nobody lives")
	assert.Equal(t, bucketNew, b.state())

	b.stored, b.lai = true, lai(0, 1, 1, 0, 1, 2)
	assert.Equal(t, bucketOnline, b.state())
	_, change = plan(b, viewOf([]int{0, 1, 2}, nil), false)
	assert.False(t, change, "all is well")
	next, change := plan(b, viewOf([]int{0, 2}, nil), false)
	assert.True(t, change, "a follower died")
	assert.Equal(t, []int{0, 2}, next.ISR)
	assert.Equal(t, 1, next.LeaderEpoch)
	next, change = plan(b, viewOf([]int{0, 1, 2}, nil), true)
	assert.True(t, change, "the leader restarted")
	assert.Equal(t, 0, next.Leader)
	assert.Equal(t, 2, next.LeaderEpoch)

	b.lai = lai(protocol.NoLeader, 2, 3, 0)
	assert.Equal(t, bucketOffline, b.state())
	_, change = plan(b, viewOf([]int{1, 2}, nil), false)
	assert.False(t, change, "still nobody who may lead: no epoch is used up")
	next, change = plan(b, viewOf([]int{0, 1}, nil), false)
	assert.True(t, change)
	assert.Equal(t, 0, next.Leader)
}

func TestCheckProposal(t *testing.T) {
	b := &bucket{stored: true, replicas: []int{0, 1, 2, 3}, lai: lai(0, 3, 8, 0, 1), act: standing(key{3, 70})}
	v := viewOf([]int{0, 1, 2}, []int{})
	leader := tabletKey{0, 70}
	ok := protocol.IsrProposal{LeaderEpoch: 3, BucketEpoch: 8, CoordinatorEpoch: 4, NewISR: []int{0, 1, 2}}
	change := func(f func(p *protocol.IsrProposal)) protocol.IsrProposal {
		p := ok
		f(&p)
		return p
	}
	for _, c := range []struct {
		name string
		from tabletKey
		p    protocol.IsrProposal
		want protocol.Code
	}{
		{"accepted", leader, ok, protocol.CodeNone},
		{"the committed one itself", leader, change(func(p *protocol.IsrProposal) { p.NewISR = []int{0, 1} }), protocol.CodeNone},
		{"leader epoch of the future", leader, change(func(p *protocol.IsrProposal) { p.LeaderEpoch = 4 }), protocol.CodeInvalidCoordinator},
		{"bucket epoch of the future", leader, change(func(p *protocol.IsrProposal) { p.BucketEpoch = 9 }), protocol.CodeInvalidCoordinator},
		{"coordinator of the future", leader, change(func(p *protocol.IsrProposal) { p.CoordinatorEpoch = 10 }), protocol.CodeInvalidCoordinator},
		{"another coordinator's", leader, change(func(p *protocol.IsrProposal) { p.CoordinatorEpoch = 3 }), protocol.CodeInvalidCoordinator},
		{"old leader epoch", leader, change(func(p *protocol.IsrProposal) { p.LeaderEpoch = 2 }), protocol.CodeFencedLeaderEpoch},
		{"old bucket epoch", leader, change(func(p *protocol.IsrProposal) { p.BucketEpoch = 7 }), protocol.CodeInvalidUpdateVersion},
		{"not the leader", tabletKey{1, 70}, ok, protocol.CodeFencedLeaderEpoch},
		{"a former life of the leader", tabletKey{0, 69}, ok, protocol.CodeFencedLeaderEpoch},
		{"without the leader", leader, change(func(p *protocol.IsrProposal) { p.NewISR = []int{1} }), protocol.CodeIneligibleReplica},
		{"with one that is dead", leader, change(func(p *protocol.IsrProposal) { p.NewISR = []int{0, 3} }), protocol.CodeIneligibleReplica},
		{"with a stranger", leader, change(func(p *protocol.IsrProposal) { p.NewISR = []int{0, 7} }), protocol.CodeFencedLeaderEpoch},
	} {
		assert.Equal(t, c.want, checkProposal(b, c.from, c.p, v, true), c.name)
	}
	assert.Equal(t, protocol.CodeIneligibleReplica, checkProposal(b, leader, ok, viewOf([]int{0, 1, 2}, []int{2}), true), "about to stop")
	old := change(func(p *protocol.IsrProposal) { p.BucketEpoch = 2 })
	assert.Equal(t, protocol.CodeNone, checkProposal(b, leader, old, v, false), "the bug accepts a stale one")
	assert.Equal(t, protocol.CodeUnknownTableOrBucket, checkProposal(&bucket{}, leader, ok, v, true))
	assert.Equal(t, protocol.LeaderAndIsr{Leader: 0, LeaderEpoch: 3, BucketEpoch: 9, ISR: []int{0, 1, 2}, CoordinatorEpoch: 9},
		accepted(b.lai, change(func(p *protocol.IsrProposal) { p.NewISR = []int{2, 0, 1, 0} }), 9))
}

// TestPendingActivation is section 2 of the protocol, key by key.
func TestPendingActivation(t *testing.T) {
	mine, sound := key{4, 70}, true
	a := elected(mine)
	for _, other := range []key{{3, 70}, {5, 70}, {4, 69}} {
		assert.False(t, a.succeeded(other, sound), "%v", other)
		assert.Equal(t, pending, a.stage)
	}
	assert.False(t, a.dropped(true), "a lost answer says nothing")
	assert.True(t, a.succeeded(mine, sound))
	assert.False(t, a.succeeded(mine, sound), "once")

	a = standing(mine)
	assert.False(t, a.succeeded(key{4, 69}, sound), "of a former life")
	assert.True(t, a.succeeded(mine, sound))

	a = elected(mine)
	assert.True(t, a.succeeded(key{3, 70}, false), "bug: stale-ack-clears-newer")
	a = elected(mine)
	assert.True(t, a.dropped(false), "bug: cleared-on-rpc-failure")
}

func TestAdvertised(t *testing.T) {
	sound := protocol.Sound().Coordinator
	with := func(f func(*protocol.CoordinatorPolicy)) protocol.CoordinatorPolicy {
		p := sound
		f(&p)
		return p
	}
	naming := with(func(p *protocol.CoordinatorPolicy) { p.WithholdPending = false })
	talking := with(func(p *protocol.CoordinatorPolicy) { p.SilentUntilConfirmed = false })
	k := key{4, 70}
	done := standing(k)
	done.succeeded(k, true)
	for _, c := range []struct {
		name   string
		p      protocol.CoordinatorPolicy
		lai    protocol.LeaderAndIsr
		act    activation
		leader int
		known  bool
	}{
		{"pending is withheld", sound, lai(1, 4, 9, 1), elected(k), protocol.NoLeader, true},
		{"standing is not spoken of", sound, lai(1, 4, 9, 1), standing(k), protocol.NoLeader, false},
		{"confirmed", sound, lai(1, 4, 9, 1), done, 1, true},
		{"nobody leads", sound, lai(protocol.NoLeader, 4, 9, 1), elected(k), protocol.NoLeader, true},
		{"bug: pending is named", naming, lai(1, 4, 9, 1), elected(k), 1, true},
		{"bug: standing is named", naming, lai(1, 4, 9, 1), standing(k), 1, true},
		{"bug: standing is unsaid", talking, lai(1, 4, 9, 1), standing(k), protocol.NoLeader, true},
	} {
		b := &bucket{id: "t#1/0", stored: true, lai: c.lai, act: c.act, replicas: []int{1, 2}}
		m, known := b.advertised(c.p)
		assert.Equal(t, c.known, known, c.name)
		assert.Equal(t, protocol.BucketMetadata{Bucket: "t#1/0", Leader: c.leader, LeaderEpoch: 4, Replicas: []int{1, 2}}, m, c.name)
	}
	_, known := (&bucket{}).advertised(sound)
	assert.False(t, known)
}

func TestPredecessor(t *testing.T) {
	children := []string{"_c_aa-latch-0000000003", "_c_zz-latch-0000000001", "stray", "_c_bb-latch-0000000012"}
	for child, want := range map[string]string{children[0]: children[1], children[1]: "", children[3]: children[0]} {
		before, found := predecessor(children, child)
		assert.True(t, found)
		assert.Equal(t, want, before)
	}
	_, found := predecessor(children, "_c_gone-latch-0000000002")
	assert.False(t, found)
}

func TestCompareTablets(t *testing.T) {
	before := map[int]tabletServer{0: {incarnation: 5}, 1: {incarnation: 6}, 2: {incarnation: 7}}
	now := map[int]tabletServer{0: {incarnation: 5}, 1: {incarnation: 16}, 3: {incarnation: 8}}
	assert.Equal(t, tabletChange{gone: []int{2}, bounced: []int{1}, came: []int{3}}, compareTablets(before, now, true))
	assert.Equal(t, tabletChange{gone: []int{2}, came: []int{3}}, compareTablets(before, now, false), "bug: bounce-unseen")
}

func TestNextPartitions(t *testing.T) {
	for _, c := range []struct {
		have        []string
		keep        int
		add, remove []string
	}{
		{nil, 3, []string{"auto-1", "auto-2", "auto-3"}, nil},
		{[]string{"auto-1", "auto-2", "auto-3", "mine"}, 3, []string{"auto-4"}, []string{"auto-1"}},
		{[]string{"auto-10", "auto-9"}, 2, []string{"auto-11"}, []string{"auto-9"}},
		{[]string{"auto-1", "auto-2", "auto-3", "auto-4"}, 2, []string{"auto-5"}, []string{"auto-1", "auto-2", "auto-3"}},
		{[]string{"auto-4"}, 3, []string{"auto-5", "auto-6"}, nil},
	} {
		add, remove := nextPartitions(c.have, c.keep)
		assert.Equal(t, c.add, add)
		assert.Equal(t, c.remove, remove)
	}
}

func TestCheckSpec(t *testing.T) {
	good := tableSpec("orders", 2, 3)
	assert.Empty(t, checkSpec(good))
	for _, name := range []string{"", "a/b", "a#1", "a[b]", "a b"} {
		bad := good
		bad.Name = name
		assert.NotEmpty(t, checkSpec(bad), name)
	}
	bad := good
	bad.MinISR = 4
	assert.NotEmpty(t, checkSpec(bad))
	bad = good
	bad.Kind = "graph"
	assert.NotEmpty(t, checkSpec(bad))
	bad = good
	bad.AutoPartitions = 2
	assert.NotEmpty(t, checkSpec(bad))
}
