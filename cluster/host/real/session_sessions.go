package real

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/node"
	"github.com/fencepost-dev/fencepost/history"
)

// ZooKeeper provides sessions over go-zookeeper to real servers, given by
// host:port, behind a gate for each node. It is for Config.Sessions.
func ZooKeeper(servers ...string) SessionProvider {
	return func(env node.Env) node.Sessions {
		return &zkSessions{env: env, servers: servers, gates: map[cluster.NodeID]*zkGate{}}
	}
}

// zkSessions is a world's sessions: one gate a node, kept over its incarnations.
type zkSessions struct {
	env     node.Env
	servers []string

	mu    sync.Mutex
	gates map[cluster.NodeID]*zkGate
}

func (z *zkSessions) gate(id cluster.NodeID) *zkGate {
	z.mu.Lock()
	defer z.mu.Unlock()
	g := z.gates[id]
	if g == nil {
		log := z.env.Log
		if log == nil {
			log = zap.NewNop()
		}
		observe := func(e history.Event) { z.env.Observe(id, e) }
		g = newZKGate(id, observe, log.Named(string(id)))
		z.gates[id] = g
	}
	return g
}

// Dial opens a session of a process.
func (z *zkSessions) Dial(ctx context.Context, p *node.Process, o host.SessionOptions) (host.Session, error) {
	return dialZK(ctx, z.gate(p.ID()), z.servers, o)
}

// Control is the harness's hand on the sessions of a node.
func (z *zkSessions) Control(id cluster.NodeID) host.SessionControl {
	return zkControl{gate: z.gate(id), servers: z.servers}
}

// closeTimeout bounds Close: the library takes a second at most for each of
// its endings, a dial in flight another.
const closeTimeout = 10 * time.Second

// Close ends every session and waits for every goroutine.
func (z *zkSessions) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	z.mu.Lock()
	defer z.mu.Unlock()
	var errs []error
	for _, g := range z.gates {
		g.shut()
	}
	for _, g := range z.gates {
		if err := g.await(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
