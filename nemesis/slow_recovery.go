package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/harness"
	"github.com/fencepost-dev/fencepost/history"
)

// slowParams are those of slow recovery.
type slowParams struct {
	PerBucket wait   `json:"per_bucket"` // a KV tablet's restore inside activation
	Log       wait   `json:"log"`        // a tablet's log recovery before it registers
	Mode      string `json:"mode"`       // how the target is restarted, see restart
	Down      wait   `json:"down"`
	Hold      wait   `json:"hold"` // how long recoveries stay slow, from the restart on
}

// slowRecovery is the large table that recovers.
func slowRecovery() harness.Fault {
	return harness.Fault{
		Name: "slow-recovery",
		Doc: "Recoveries take long on every tablet, per bucket and before registration, while a tablet restarts: " +
			"the buckets that it led are restored elsewhere, slowly, and clients wait for their leaders.",
		Supports: func(c cluster.Cluster) error {
			if _, ok := c.(cluster.RecoverySlower); !ok {
				return need("slow recoveries down")
			}
			return restart().Supports(c)
		},
		Draw: drawSlowRecovery,
		New:  func(env harness.Env) harness.Nemesis { return &slower{restarter{env: env}} },
		Effects: func(o harness.Options) []checker.Effect {
			return []checker.Effect{
				{
					Event: history.KindRecovery, Where: map[string]string{"what": "kv", "state": history.StateStart},
					Min: 1, OnTarget: true,
				},
				{Overlap: overlap(o)},
			}
		},
	}
}

func drawSlowRecovery(o harness.Options, r *rand.Rand, slots []harness.Slot) []harness.Entry {
	var out []harness.Entry
	for _, s := range slots {
		length := s.To - s.From
		at := between(r, s.From, s.From+length/10)
		p := slowParams{
			PerBucket: wait(o.Recovery), Log: wait(o.LogRecovery), Mode: modeKill,
			Down: wait(between(r, 100*time.Millisecond, time.Second)),
			// Long enough for the session of a killed tablet to end and its buckets to
			// be given to others, whose restores then start slow.
			Hold: wait(max(length*3/4, sessionEnd(o)+time.Second)),
		}
		if r.IntN(3) == 0 {
			p.Mode = modeGraceful
		}
		out = append(out, harness.Entry{
			ID: len(out), Trigger: harness.Trigger{At: at}, Target: aBucketsLeader(o, r),
			Params: encode(p), Lease: time.Duration(p.Hold) + sessionEnd(o) + 2*o.LogRecovery,
		})
	}
	return out
}

type slower struct{ restarter }

// Invoke slows every tablet, restarts the target, and keeps recoveries slow.
func (n *slower) Invoke(ctx context.Context, e harness.Entry, w *harness.Window) (any, error) {
	p := slowParams{
		PerBucket: wait(n.env.Options.Recovery), Log: wait(n.env.Options.LogRecovery),
		Mode: modeKill, Down: wait(time.Second), Hold: wait(e.Lease),
	}
	if err := decode(e, &p); err != nil {
		return nil, err
	}
	nodes, err := n.env.Resolve(ctx, e)
	if err != nil {
		return nil, err
	}
	// The restores happen wherever the buckets go, so every tablet is a target.
	var tablets []cluster.NodeID
	for _, info := range n.env.Cluster.Nodes() {
		if info.Role == cluster.RoleTablet {
			tablets = append(tablets, info.ID)
		}
	}
	w.Start(tablets...)
	began := n.env.Host.Now()
	end, err := n.slow(ctx, e, p, tablets)
	if err == nil {
		_, err = n.bounce(ctx, e, restartParams{Mode: p.Mode, Down: p.Down}, nodes)
	}
	if left := began + time.Duration(p.Hold) - n.env.Host.Now(); err == nil && left > 0 {
		err = n.env.Host.Sleep(ctx, left)
	}
	err = errors.Join(err, end(ctx))
	w.End(fmt.Sprintf("recoveries took %v a bucket and %v before registration; %s of %s",
		time.Duration(p.PerBucket), time.Duration(p.Log), p.Mode, list(nodes)))
	return restarted{Nodes: nodes, Mode: p.Mode}, err
}

// slow slows the tablets until end is called. The cluster keeps the lease.
func (n *slower) slow(
	ctx context.Context, e harness.Entry, p slowParams, tablets []cluster.NodeID,
) (end func(context.Context) error, err error) {
	slower := n.env.Cluster.(cluster.RecoverySlower) // Supports has seen it
	var releases []cluster.Release
	end = n.env.Leases.Take("slow recovery", e.Lease, func(ctx context.Context) error {
		var all error
		for _, release := range releases {
			all = errors.Join(all, release(ctx))
		}
		return all
	})
	for _, id := range tablets {
		release, err := slower.SlowRecovery(ctx, id, time.Duration(p.PerBucket), time.Duration(p.Log), e.Lease)
		if release != nil {
			releases = append(releases, release)
		}
		if err != nil {
			return end, fmt.Errorf("slow the recovery of %s: %w", id, err)
		}
	}
	return end, nil
}
