package sim

// The simulated ZooKeeper is plugged in here: newSessions (session.go) makes the
// node.Sessions of a world from a node.Env and Config.ZooKeeper. The contract is the comment at node.Sessions; in
// simulation there is one goroutine, so that no locks are needed:
//
//   - A task of process p calls Dial(ctx, p, o). To wait, it uses
//     kernel.Await(ctx, "zookeeper create", start), or embeds a kernel.Slot, or
//     p.Group.MakeCond(); p.Kernel().After(d, kernel.Func(f)) is the only clock.
//   - A request to ZooKeeper is an event: kernel.After(latency, request arrives,
//     is applied to the tree, the reply is another After). Nothing happens at
//     the instant of the call: latency is never 0.
//   - Kill: p.Group.OnDead(f), registered before the first park. The server goes
//     on to hold the session until it times out.
//   - Random draws come from kernel.Stream(env.Seed, "zookeeper/…"), one stream
//     a purpose; never from a process's own.
//   - Events: p.Emit(history.Session{…}) when the client learns of a state,
//     history.Txn when the node gets the answer, or loses it ("unknown").
//   - Pause calls Control(id).Hold(lease) for the node and Undo at resume.
//   - Maps are never ranged over unsorted.
