package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
)

// ErrNoTarget says that nobody has the role that an entry aims at. It is no
// problem of the harness: coverage will miss the fault's effect.
var ErrNoTarget = errors.New("no node has the role")

// Resolve chooses the nodes that a target means now, drawing from the entry's
// own stream. While nobody leads, or nobody answers, it asks again until ctx
// ends. The nodes come in a drawn order.
func (e Env) Resolve(ctx context.Context, entry Entry) ([]cluster.NodeID, error) {
	r := Stream(e.Options.Seed, fmt.Sprintf("target/%d", entry.ID))
	for {
		nodes, err := e.candidates(ctx, entry)
		switch {
		case err == nil && len(nodes) > 0:
			return draw(entry.Target, nodes, r), nil
		case err == nil:
			err = ErrNoTarget
		case cluster.IsDefinite(err):
			return nil, fmt.Errorf("resolve target %s: %w", entry.Target.Who, err)
		}
		if e.Host.Sleep(ctx, 50*time.Millisecond) != nil {
			return nil, fmt.Errorf("resolve target %s: %w", entry.Target.Who, err)
		}
	}
}

// candidates are all nodes that have the role now, in the cluster's order.
func (e Env) candidates(ctx context.Context, entry Entry) ([]cluster.NodeID, error) {
	t := entry.Target
	switch t.Who {
	case WhoConcerned:
		return entry.concerned, nil
	case WhoNode:
		return t.Nodes, e.known(t.Nodes)
	case WhoTablet, WhoMinority, WhoMajority:
		return e.role(cluster.RoleTablet), nil
	case WhoCoordinator:
		return e.role(cluster.RoleCoordinator), nil
	case WhoAny:
		return e.role(""), nil
	}
	leaders, ok := e.Cluster.(cluster.Leaders)
	if !ok {
		return nil, fmt.Errorf("ask who leads: %w", cluster.ErrUnsupported)
	}
	switch t.Who {
	case WhoBucketLeader, WhoBucketFollower:
		leader, followers, err := leaders.Bucket(ctx, cmp.Or(t.Table, e.Table), t.Bucket)
		if err != nil || t.Who == WhoBucketFollower {
			return followers, err
		}
		return nonEmpty(leader), nil
	case WhoCoordinatorLeader, WhoStandby:
		leader, err := leaders.Coordinator(ctx)
		if err != nil || t.Who == WhoCoordinatorLeader {
			return nonEmpty(leader), err
		}
		if leader == "" {
			return nil, nil
		}
		return slices.DeleteFunc(e.role(cluster.RoleCoordinator), func(id cluster.NodeID) bool { return id == leader }), nil
	}
	return nil, cluster.Definite(fmt.Errorf("unknown who %q", t.Who))
}

func nonEmpty(id cluster.NodeID) []cluster.NodeID {
	if id == "" {
		return nil
	}
	return []cluster.NodeID{id}
}

// role lists the nodes with a role, or all.
func (e Env) role(role cluster.Role) []cluster.NodeID {
	var out []cluster.NodeID
	for _, n := range e.Cluster.Nodes() {
		if role == "" || n.Role == role {
			out = append(out, n.ID)
		}
	}
	return out
}

func (e Env) known(nodes []cluster.NodeID) error {
	all := e.role("")
	for _, id := range nodes {
		if !slices.Contains(all, id) {
			return cluster.Definite(fmt.Errorf("the cluster has no node %q", id))
		}
	}
	return nil
}

// draw takes as many of the candidates as the target asks for.
func draw(t Target, nodes []cluster.NodeID, r *rand.Rand) []cluster.NodeID {
	count := max(t.Count, 1)
	switch {
	case t.Who == WhoMinority:
		count = (len(nodes) - 1) / 2
	case t.Who == WhoMajority:
		count = len(nodes)/2 + 1
	case t.Count < 0 || t.Who == WhoNode && t.Count == 0:
		count = len(nodes)
	}
	nodes = slices.Clone(nodes)
	if t.Who == WhoNode {
		return nodes[:min(count, len(nodes))] // the order that somebody wrote down
	}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes[:min(count, len(nodes))]
}
