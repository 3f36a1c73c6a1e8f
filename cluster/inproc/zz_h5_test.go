package inproc

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

func zzS9(ctx context.Context, l *lab) {
	// The ISR shrinks, its write is cut before it reaches ZooKeeper, and then both
	// the coordinator and the leader go.
	leader, followers := l.leader(ctx)
	id, err := l.cl.Coordinator(ctx)
	if leader == "" || len(followers) < 2 || err != nil || id == "" {
		return
	}
	l.w.ZooKeeper(id).CutBefore("multi", 6*time.Second)
	slowOne := followers[0]
	l.cut(slowOne, l.others(slowOne), 4*time.Second) // out of the ISR, its session lives
	l.rest(ctx, 3200*time.Millisecond, 3800*time.Millisecond)
	_ = l.cl.Kill(ctx, id)
	_ = l.cl.Kill(ctx, leader)
	_ = l.cl.Kill(ctx, followers[1])
	l.rest(ctx, 5*time.Second, 6*time.Second)
	l.revive(ctx, id, leader, followers[1])
	l.rest(ctx, 2*time.Second, 3*time.Second)
}

func zzKept(ctx context.Context, l *lab) {
	id, err := l.cl.Coordinator(ctx)
	leader, _ := l.leader(ctx)
	if err != nil || id == "" || leader == "" {
		return
	}
	_, _ = l.cl.HoldZooKeeper(ctx, id, l.between(500*time.Millisecond, time.Second))
	_ = l.cl.ExpireSession(ctx, leader)
	_ = l.cl.Kill(ctx, leader)
	l.revive(ctx, leader)
	l.rest(ctx, time.Second, 3*time.Second)
}

func TestZZ(t *testing.T) {
	for name, f := range map[string]func(context.Context, *lab){"s9-no-compare-and-set": zzS9, "restarted-leader-kept": zzKept} {
		if !strings.Contains(os.Getenv("ZZ"), name) {
			continue
		}
		for seed := uint64(1); seed <= 6; seed++ {
			for _, bugs := range [][]string{{name}, nil} {
				policy, _ := Plan(bugs)
				e := experiment{seed: seed, policy: policy, faults: again(f)}
				l, err := perform(t, e)
				if err != nil {
					fmt.Println(seed, bugs, err)
					continue
				}
				w := l.judge(t.Context())
				for i := range w {
					if len(w[i]) > 150 {
						w[i] = w[i][:150]
					}
				}
				fmt.Println(seed, bugs, strings.Join(w, "\n    "))
			}
		}
	}
}

var _ = host.Rule{}
var _ = protocol.NoLeader

func TestZZKept(t *testing.T) {
	policy, _ := Plan([]string{"restarted-leader-kept"})
	l, err := perform(t, experiment{seed: 1, policy: policy, faults: again(zzKept), length: 15 * time.Second})
	fmt.Println(err)
	for _, op := range l.ops {
		switch op.F {
		case "lai", "session", "node", "term", "ready", "role", "notify":
			fmt.Printf("%8.3f %s %s %s\n", op.Time.Seconds(), op.F, op.Node, op.Value)
		}
	}
}
