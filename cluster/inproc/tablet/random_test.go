package tablet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/cluster/inproc/tablet"
)

// TestRandomFaults runs one bucket under random faults, with a coordinator in
// the test that elects and orders soundly, over links that lose and delay, and
// checks that reads and writes are linearizable, that no replica reports a
// violation, and that all is well again after the last heal. TABLET_SEEDS makes
// it longer, TABLET_BUG plants a bug by its name in rules_test.go (and then the
// test counts what it finds, and demands at least one).
func TestRandomFaults(t *testing.T) {
	seeds := 40
	if n, err := strconv.Atoi(os.Getenv("TABLET_SEEDS")); err == nil {
		seeds = n
	}
	bug := os.Getenv("TABLET_BUG")
	found := 0
	for seed := range uint64(seeds) {
		why := randomRun(t, seed, bug)
		if why != "" {
			found++
			t.Logf("seed %d: %s", seed, why)
		}
	}
	if bug == "" {
		require.Zero(t, found)
	} else {
		t.Logf("%s: found by %d of %d seeds", bug, found, seeds)
		require.NotZero(t, found)
	}
}

func randomRun(t *testing.T, seed uint64, bug string) string {
	t.Helper()
	draw := rand.New(rand.NewPCG(seed, 99))
	o := options{seed: seed, size: []int{3, 3, 3, 4, 5}[draw.IntN(5)], timing: tablet.Timing{MaxLag: 500 * time.Millisecond}, zookeeper: seed%4 == 3}
	for _, r := range rules() {
		if r.name == bug {
			o.policy = r.plant
		}
	}
	var f *fuzz
	var why string
	events := run(t, o, func(b *bench) {
		f = &fuzz{bench: b, draw: draw, told: map[int]int{}}
		why = f.run()
	})
	switch {
	case len(violations(events)) > 0:
		return fmt.Sprint(violations(events)[0])
	case why != "":
		return why
	case porcupine.CheckOperationsTimeout(registers(), f.ops, 10*time.Second) != porcupine.Ok:
		return "not linearizable"
	default:
		return ""
	}
}

// fuzz is a run's state.
type fuzz struct {
	*bench
	draw  *rand.Rand
	told  map[int]int // server → leader epoch that it was told last
	ops   []porcupine.Operation
	value int
	stop  bool
	busy  int
	seq   int64
}

func (f *fuzz) run() string {
	f.elect(accounts, 0, f.servers(), f.servers()...)
	f.admitted(accounts)
	honest := f.adjust
	f.adjust = func(p protocol.IsrProposal) protocol.IsrResult {
		lost := protocol.IsrResult{Bucket: p.Bucket, Code: protocol.CodeUnknownServer}
		switch {
		case f.stop:
			return honest(p)
		case f.draw.IntN(10) == 0:
			return lost
		case slices.ContainsFunc(p.NewISR, func(s int) bool { return f.lives[s] == 0 }):
			return protocol.IsrResult{Bucket: p.Bucket, Code: protocol.CodeIneligibleReplica}
		}
		r := honest(p)
		if f.draw.IntN(10) == 0 {
			return lost
		}
		return r
	}
	for client := range 4 {
		f.busy++
		h := f.c.Endpoint(cluster.NodeID(fmt.Sprint("client-", client)))
		h.Go(f.ctx, "client", func(ctx context.Context) { f.client(ctx, h, client) })
	}
	f.busy++
	f.c.Go(f.ctx, "elections", func(context.Context) { f.coordinate() })
	for end := f.w.Now() + 12*time.Second; f.w.Now() < end; {
		f.sleep(time.Duration(f.draw.IntN(800)) * time.Millisecond)
		f.fault()
	}
	f.w.Network().Heal()
	for i := range f.size {
		if !f.nodes[i].Up() {
			f.start(i)
		}
	}
	f.sleep(6 * time.Second)
	f.stop = true
	f.until("all stopped", func() bool { return f.busy == 0 })
	f.sleep(time.Second) // the last high watermark travels alone
	return f.converged()
}

// fault does one thing to the cluster; the clients and elections go on.
func (f *fuzz) fault() {
	server := f.draw.IntN(f.size)
	node := []cluster.NodeID{tablet.NodeOf(server)}
	other := []cluster.NodeID{tablet.NodeOf(f.draw.IntN(f.size))}
	lease := time.Duration(f.draw.IntN(3000)) * time.Millisecond
	net := f.w.Network()
	switch f.draw.IntN(9) {
	case 0, 1:
		f.bounce(server, f.draw.IntN(2) == 0)
	case 2:
		net.Apply(host.Rule{Match: host.Match{From: node, To: other, Both: true}, Drop: 1}, lease)
	case 3:
		net.Apply(host.Rule{Match: host.Match{From: node, Both: true}, Hold: true}, lease)
	case 4:
		net.Apply(host.Rule{Match: host.Match{To: node, Both: true}, Delay: lease, Reorder: 0.5}, lease)
	case 5:
		net.Apply(host.Rule{Match: host.Match{From: node, Both: true}, Jitter: lease, Duplicate: 0.3, Reorder: 1}, lease)
	case 6:
		f.w.Disk(node[0]).Slow(50*time.Millisecond, lease)
	case 7:
		f.w.Disk(node[0]).Fail(0.5, false, lease)
	case 8:
		f.suspect()
	}
}

func (f *fuzz) bounce(server int, power bool) {
	if !f.nodes[server].Up() {
		return
	}
	if power {
		f.powerLoss(server)
	} else {
		f.kill(server)
	}
	f.c.Go(f.ctx, "restart", func(ctx context.Context) {
		if f.c.Sleep(ctx, time.Duration(f.draw.IntN(1500))*time.Millisecond) == nil && !f.nodes[server].Up() {
			f.lives[server] = 0
			_ = f.nodes[server].Start(ctx)
		}
	})
}

// suspect elects another leader although the present one lives.
func (f *fuzz) suspect() {
	now := f.lai[accounts]
	now.CoordinatorEpoch = -1 // marks: move
	f.move(now)
}

func (f *fuzz) move(now protocol.LeaderAndIsr) {
	var live []int
	for _, s := range now.ISR {
		if f.lives[s] != 0 {
			live = append(live, s)
		}
	}
	if len(live) == 0 {
		return
	}
	leader := live[f.draw.IntN(len(live))]
	isr := slices.Clone(now.ISR)
	if f.draw.IntN(2) == 0 {
		isr = live
	}
	f.lai[accounts] = protocol.LeaderAndIsr{
		Leader: leader, LeaderEpoch: now.LeaderEpoch + 1, BucketEpoch: now.BucketEpoch + 1, ISR: isr, CoordinatorEpoch: f.epoch,
	}
}

// coordinate elects when the leader's incarnation is gone, and sends everyone
// its order again and again.
func (f *fuzz) coordinate() {
	leads := f.lives[f.lai[accounts].Leader]
	epoch := f.lai[accounts].LeaderEpoch
	for !f.stop {
		now := f.lai[accounts]
		switch {
		case now.LeaderEpoch != epoch:
			epoch, leads = now.LeaderEpoch, f.lives[now.Leader]
		case f.lives[now.Leader] != leads || leads == 0:
			f.move(now)
			epoch, leads = f.lai[accounts].LeaderEpoch, f.lives[f.lai[accounts].Leader]
		}
		for server := range f.size {
			if f.lives[server] == 0 {
				continue
			}
			m := f.order(server, accounts)
			f.c.Go(f.ctx, "order", func(ctx context.Context) {
				ctx, cancel := f.c.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				_, _ = f.c.Call(ctx, boss, relay{tablet.NodeOf(server), m})
			})
		}
		f.sleep(time.Duration(50+f.draw.IntN(200)) * time.Millisecond)
	}
	f.busy--
}

// client does operations on three keys until the run ends.
func (f *fuzz) client(ctx context.Context, h host.Host, id int) {
	f.seq++
	writer, seq := f.seq, 0
	for !f.stop {
		_ = h.Sleep(ctx, time.Duration(f.draw.IntN(120))*time.Millisecond)
		key := fmt.Sprint("k", f.draw.IntN(3))
		begin := int64(f.w.Now())
		if f.draw.IntN(2) == 0 {
			if value, ok := f.read(ctx, h, key); ok {
				f.ops = append(f.ops, porcupine.Operation{ClientId: id, Input: op{key: key}, Call: begin, Output: value, Return: int64(f.w.Now())})
			}
			continue
		}
		f.value++
		value := fmt.Sprint(f.value)
		done := porcupine.Operation{ClientId: id, Input: op{key, value, true}, Call: begin, Return: int64(time.Hour)}
		switch f.write(ctx, h, writer, seq, key, value) {
		case "ok":
			done.Return = int64(f.w.Now())
			seq++
		case "fail":
			continue
		case "unknown":
			f.seq++
			writer, seq = f.seq, 0
		}
		f.ops = append(f.ops, done)
	}
	f.busy--
}

// target is where a client believes the leader to be.
func (f *fuzz) target() cluster.NodeID {
	if f.draw.IntN(4) == 0 {
		return tablet.NodeOf(f.draw.IntN(f.size))
	}
	return tablet.NodeOf(f.lai[accounts].Leader)
}

func (f *fuzz) read(ctx context.Context, h host.Host, key string) (string, bool) {
	ctx, cancel := h.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := h.Call(ctx, f.target(), &protocol.Lookup{Bucket: accounts, TimeoutMillis: 900, Keys: []string{key}})
	if err != nil || answer.(*protocol.LookupReply).Code != protocol.CodeNone {
		return "", false
	}
	return string(answer.(*protocol.LookupReply).Values[0]), true
}

// write tries up to four times with the same sequence.
func (f *fuzz) write(ctx context.Context, h host.Host, writer int64, seq int, key, value string) string {
	outcome := "fail"
	for range 1 + f.draw.IntN(4) {
		call, cancel := h.WithTimeout(ctx, time.Second)
		answer, err := h.Call(call, f.target(), &protocol.PutKv{
			Bucket: accounts, Writer: writer, Seq: seq, Acks: protocol.AcksAll, TimeoutMillis: 900,
			Rows: []protocol.Row{{Key: key, Value: []byte(value)}},
		})
		cancel()
		if err == nil {
			err = answer.(*protocol.WriteReply).Code.Err()
		}
		if err == nil {
			return "ok"
		}
		if !cluster.IsDefinite(err) {
			outcome = "unknown"
		}
		_ = h.Sleep(ctx, time.Duration(f.draw.IntN(200))*time.Millisecond)
	}
	return outcome
}

// converged says what is not well at the end.
func (f *fuzz) converged() string {
	now := f.lai[accounts]
	if len(now.ISR) != f.size {
		return fmt.Sprintf("isr %v at the end, leader %+v", now.ISR, f.replica(now.Leader, accounts))
	}
	leader := f.replica(now.Leader, accounts)
	for s := range f.size {
		r := f.replica(s, accounts)
		if r.HW != leader.HW || r.Digest != leader.Digest || r.LogEnd != leader.LogEnd {
			return fmt.Sprintf("replica %d at the end: %+v, leader %+v", s, r, leader)
		}
	}
	if !leader.Admitted {
		return fmt.Sprintf("leader not admitted: %+v", leader)
	}
	return ""
}

type op struct {
	key, value string
	write      bool
}

func registers() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, o := range history {
				parts[o.Input.(op).key] = append(parts[o.Input.(op).key], o)
			}
			var out [][]porcupine.Operation
			for _, p := range parts {
				out = append(out, p)
			}
			return out
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			if in := input.(op); in.write {
				return true, in.value
			}
			return output.(string) == state.(string), state
		},
	}
}
