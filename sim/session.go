package sim

import "github.com/fencepost-dev/fencepost/cluster/host/node"

// ZooKeeperConfig describes the simulated ZooKeeper.
type ZooKeeperConfig struct{}

// newSessions makes the ZooKeeper sessions of a world.
func newSessions(node.Env, ZooKeeperConfig) node.Sessions { return node.NoSessions{} }
