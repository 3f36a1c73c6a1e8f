package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// External is servers that somebody else runs. They are used and left alone:
// nothing is started, and only what runs write is changed.
type External struct {
	Addresses []string
}

// externalTimeout is how long an external server may take to answer.
const externalTimeout = 10 * time.Second

// Start checks that a session can write.
func (e External) Start(ctx context.Context, c Config) (Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, externalTimeout)
	defer cancel()
	for _, address := range e.Addresses {
		if err := awaitWritable(ctx, address); err != nil {
			return nil, fmt.Errorf("use zookeeper at %s: %w; check the address, or leave --zookeeper out", address, err)
		}
	}
	return external{e.Addresses, version(ctx, e.Addresses[0])}, nil
}

type external struct {
	addresses []string
	version   string
}

func (e external) Addresses() []string { return slices.Clone(e.addresses) }

func (e external) Info() Info {
	return Info{Kind: "external", Version: e.version, Addresses: e.Addresses()}
}

func (e external) Close(context.Context) error { return nil }
