package real

import "github.com/fencepost-dev/fencepost/cluster/host/node"

// SessionProvider makes the ZooKeeper sessions of a world: Config.Sessions is
// called once by NewWorld. The contract is the comment at node.Sessions. In
// real time every node has a goroutine of its own:
//
//   - Sessions.Dial and all methods of a host.Session are called by tasks on the
//     node's goroutine. They must never block natively: each library call runs
//     on a goroutine of its own and completes a kernel.Await:
//     v, err := kernel.Await(ctx, "zookeeper create", func(complete func(any)) {
//     go func() { complete(result) }() })
//   - Callbacks of the library (state changes, watch events) come on its
//     goroutines: p.Kernel().Post(kernel.Func(func() { …; cond.Broadcast() })).
//     Posts of one goroutine keep their order.
//   - Kill: p.Group.OnDead(f), before the first park of Dial; f runs on the
//     node's goroutine and must not block (shut the gate; Close elsewhere).
//   - SessionControl methods are called on the control node's goroutine, Hold
//     and its Undo on the paused node's: they need a lock. Leases are kept by
//     the gate (time.AfterFunc), not by who asked.
//   - p.Emit and Env.Observe may be called from any goroutine.
//   - Sessions.Close waits for all goroutines.
type SessionProvider func(env node.Env) node.Sessions
