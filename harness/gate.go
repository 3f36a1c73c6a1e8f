package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

const gateZooKeeper = "zookeeper/"

func (g Gate) zookeeper() bool { return strings.HasPrefix(g.API, gateZooKeeper) }

// AwaitGate parks until something that g matches comes to a gate, before it goes
// on. In real time it may be a little further when the caller runs.
func (e Env) AwaitGate(ctx context.Context, g Gate) error {
	if e.World == nil {
		return fmt.Errorf("await %s at a gate: %w", g.API, cluster.ErrUnsupported)
	}
	var undos []host.Undo
	_, err := e.Host.Await(ctx, "gate "+g.API, func(complete func(any)) {
		if !g.zookeeper() {
			undos = append(undos, e.World.Network().Tap(func(p host.Passing) {
				if g.matches(p) {
					complete(nil)
				}
			}))
			return
		}
		for _, node := range e.Cluster.Nodes() {
			if node.Role == cluster.RoleZooKeeper || g.From != "" && g.From != node.ID {
				continue
			}
			undos = append(undos, e.World.ZooKeeper(node.ID).Tap(func(p host.ZKPassing) {
				if g.matchesZooKeeper(p) {
					complete(nil)
				}
			}))
		}
	})
	for _, undo := range undos {
		undo()
	}
	return err
}

func (g Gate) matches(p host.Passing) bool {
	return p.API == g.API && p.Reply == g.Reply && (g.From == "" || g.From == p.From) && (g.To == "" || g.To == p.To)
}

func (g Gate) matchesZooKeeper(p host.ZKPassing) bool {
	op := strings.TrimPrefix(g.API, gateZooKeeper)
	return p.Reply == g.Reply && (op == "*" || op == p.Op) && (g.Path == "" || slices.ContainsFunc(p.Paths, func(path string) bool {
		return strings.Contains(path, g.Path)
	}))
}
