package zookeeper

import (
	"context"
	"fmt"
)

// Embedded is a server inside this process.
type Embedded struct{}

// Start starts the server.
func (Embedded) Start(_ context.Context, c Config) (Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: this build has no embedded one", ErrUnavailable)
}
