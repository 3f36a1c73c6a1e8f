package zookeeper

import (
	"context"
	"fmt"
	"sync"

	"github.com/fencepost-dev/fencepost/minizk"
)

// Embedded is a server inside this process: no Docker, no Java, ready at once.
// It is one server, whatever the size of the ensemble asked for.
type Embedded struct{}

// Start starts the server on a free port of the loopback.
func (Embedded) Start(ctx context.Context, c Config) (Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	if c.Servers > 1 {
		return nil, fmt.Errorf("%w: the embedded zookeeper is one server, not %d; use docker", ErrUnavailable, c.Servers)
	}
	server, err := minizk.Start(minizk.Config{
		Log: c.Log.Named("minizk"), Tick: c.Tick, MinSessionTimeout: 2 * c.Tick, MaxSessionTimeout: c.MaxSession,
	})
	if err != nil {
		return nil, fmt.Errorf("start embedded zookeeper: %w", err)
	}
	e := &embedded{server: server}
	if err := awaitWritable(ctx, server.Addr()); err != nil {
		_ = e.Close(ctx) // the other error says more
		return nil, fmt.Errorf("start embedded zookeeper: %w", err)
	}
	return e, nil
}

// embedded is a minizk.
type embedded struct {
	server *minizk.Server

	mu     sync.Mutex
	resume func() // ends a pause
}

var _ Members = (*embedded)(nil)

// Addresses is the one address.
func (e *embedded) Addresses() []string { return []string{e.server.Addr()} }

// Info describes the server.
func (e *embedded) Info() Info {
	return Info{Kind: "embedded", Addresses: e.Addresses(), Detail: "minizk, in this process"}
}

// Close stops the server.
func (e *embedded) Close(context.Context) error { return e.server.Close() }

func (e *embedded) only(server int) error {
	if server != 0 {
		return fmt.Errorf("%w: number %d", ErrUnavailable, server)
	}
	return nil
}

// Kill breaks every connection; the data stay, as with a real server's disk.
func (e *embedded) Kill(_ context.Context, server int) error {
	if err := e.only(server); err != nil {
		return err
	}
	return e.server.Stop()
}

// Restart listens again.
func (e *embedded) Restart(ctx context.Context, server int) error {
	if err := e.only(server); err != nil {
		return err
	}
	if err := e.server.Restart(); err != nil {
		return err
	}
	return awaitWritable(ctx, e.server.Addr())
}

// Pause lets every connection hang. Unlike a stopped process the server goes on
// counting: sessions may expire during the pause, not after it.
func (e *embedded) Pause(_ context.Context, server int) error {
	if err := e.only(server); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.resume == nil {
		e.resume = e.server.Stall(minizk.Match{})
	}
	return nil
}

// Resume ends a pause.
func (e *embedded) Resume(_ context.Context, server int) error {
	if err := e.only(server); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.resume != nil {
		e.resume()
		e.resume = nil
	}
	return nil
}

// Leader is the one server.
func (e *embedded) Leader(context.Context) (int, error) { return 0, nil }
