package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// errSessionOver says that the session has expired or was closed.
var errSessionOver = errors.New("zookeeper session is over")

// zk is a session whose reads wait for the connection and are repeated.
type zk struct {
	h     host.Host
	s     host.Session
	retry time.Duration
}

// connected waits until the session is connected (p), or over.
func (z zk) connected(ctx context.Context) error {
	for {
		state := z.s.State()
		switch state {
		case host.Connected:
			return ctx.Err()
		case host.Expired, host.Closed:
			return errSessionOver
		default:
		}
		if _, err := z.s.Changed(ctx, state); err != nil {
			return err
		}
	}
}

// repeat says whether a call that returned err did nothing, or may be made again
// because it reads only; it waits until there is a point in that (p).
func (z zk) repeat(ctx context.Context, err error) bool {
	if !errors.Is(err, host.ErrNotSent) && !errors.Is(err, host.ErrConnectionLoss) {
		return false
	}
	// The session may not have noticed yet what the call did.
	return z.h.Sleep(ctx, z.retry/4) == nil && z.connected(ctx) == nil
}

// over turns the errors of a session that has ended into one.
func over(err error) error {
	if errors.Is(err, host.ErrExpired) || errors.Is(err, host.ErrClosed) {
		return errSessionOver
	}
	return err
}

func (z zk) get(ctx context.Context, path string) ([]byte, host.Stat, error) {
	for {
		data, stat, err := z.s.Get(ctx, path)
		if z.repeat(ctx, err) {
			continue
		}
		return data, stat, named("get", path, over(err))
	}
}

func (z zk) exists(ctx context.Context, path string) (host.Stat, error) {
	for {
		stat, err := z.s.Exists(ctx, path)
		if z.repeat(ctx, err) {
			continue
		}
		return stat, named("look at", path, over(err))
	}
}

func (z zk) existsW(ctx context.Context, path string) (host.Stat, host.Watch, error) {
	for {
		stat, watch, err := z.s.ExistsW(ctx, path)
		if z.repeat(ctx, err) {
			continue
		}
		return stat, watch, named("watch", path, over(err))
	}
}

func (z zk) children(ctx context.Context, path string) ([]string, error) {
	for {
		names, _, err := z.s.Children(ctx, path)
		if z.repeat(ctx, err) {
			continue
		}
		return names, named("list", path, over(err))
	}
}

func (z zk) childrenW(ctx context.Context, path string) ([]string, host.Watch, error) {
	for {
		names, _, watch, err := z.s.ChildrenW(ctx, path)
		if z.repeat(ctx, err) {
			continue
		}
		return names, watch, named("watch children of", path, over(err))
	}
}

// sync waits for the connection and until the server that it leads to has all
// that this session did (p): what is read afterwards decides unknown outcomes.
func (z zk) sync(ctx context.Context, path string) error {
	if err := z.connected(ctx); err != nil {
		return err
	}
	for {
		err := z.s.Sync(ctx, path)
		if z.repeat(ctx, err) {
			continue
		}
		return named("sync", path, over(err))
	}
}

// ensure creates a directory of everybody's, unless it is there. Its parent must
// exist.
func (z zk) ensure(ctx context.Context, path string, data []byte) error {
	if _, err := z.exists(ctx, path); !errors.Is(err, host.ErrNoNode) {
		return err
	}
	for {
		_, _, err := z.s.Create(ctx, path, data, host.Persistent)
		if z.repeat(ctx, err) {
			continue
		}
		if errors.Is(err, host.ErrNodeExists) {
			return nil // by another, or by the try before
		}
		return named("create", path, over(err))
	}
}

func named(verb, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, path, err)
}
