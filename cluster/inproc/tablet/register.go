package tablet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// keepSession opens a session, registers, and does it again when the session has
// expired. A suspended session changes nothing: rule S7 keeps reads safe and
// rule S4 writes, whether or not another leads meanwhile.
func (s *server) keepSession(ctx context.Context) {
	for ctx.Err() == nil {
		session, err := s.h.Dial(ctx, host.SessionOptions{Timeout: s.cfg.SessionTimeout})
		if err != nil {
			s.log.Info("open session", zap.Error(err))
			s.pause(ctx)
			continue
		}
		s.session = session
		if err := s.register(ctx, session); err != nil {
			s.log.Info("register", zap.Error(err))
		} else if !s.awaitEnd(ctx, session) {
			return
		}
		s.registered = false
		if err := session.Close(ctx); err != nil {
			s.log.Debug("close session", zap.Error(err))
		}
		s.pause(ctx)
	}
}

func (s *server) pause(ctx context.Context) { _ = s.h.Sleep(ctx, s.timing.Retry) } // callers look at ctx

// awaitEnd waits until the session has expired (p); false says that it was
// closed, or this process ends.
func (s *server) awaitEnd(ctx context.Context, session host.Session) bool {
	for state := session.State(); state != host.Expired; {
		var err error
		if state, err = session.Changed(ctx, state); err != nil || state == host.Closed {
			return false
		}
	}
	return true
}

// register creates the registration. A node of this name is either ours, made
// by a try whose answer was lost, or that of a former life, which must vanish
// first: two lives under one name would be taken for one.
func (s *server) register(ctx context.Context, session host.Session) error {
	data := protocol.NewTabletNode(s.h.ID(), int64(s.h.Now()/time.Millisecond)).Encode()
	path := protocol.TabletPath(s.cfg.Server)
	for session.State() != host.Expired && session.State() != host.Closed {
		czxid, err := s.tryRegister(ctx, session, path, data)
		switch {
		case err == nil:
			s.registered, s.incarnation = true, czxid
			s.changed.Broadcast()
			s.observe(history.Ready{Server: s.cfg.Server, Incarnation: czxid})
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("register %s: %w", path, err)
		}
		s.log.Debug("register again", zap.Error(err))
		s.pause(ctx)
	}
	return fmt.Errorf("register %s: %w", path, host.ErrExpired)
}

// errFormerLife says that the registration of a former life is still there.
var errFormerLife = errors.New("registration of a former life")

func (s *server) tryRegister(ctx context.Context, session host.Session, path string, data []byte) (int64, error) {
	_, zxid, err := session.Create(ctx, path, data, host.Ephemeral)
	switch {
	case err == nil:
		return zxid, nil
	case errors.Is(err, host.ErrNoNode):
		if err := ensure(ctx, session, protocol.TabletIDsPath); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("create %s: %w", path, host.ErrNoNode)
	case !errors.Is(err, host.ErrNodeExists):
		return 0, fmt.Errorf("create %s: %w", path, err)
	}
	stat, watch, err := session.ExistsW(ctx, path)
	if errors.Is(err, host.ErrNoNode) {
		return 0, errFormerLife // just gone: again
	}
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", path, err)
	}
	if stat.EphemeralOwner == session.ID() {
		return stat.Czxid, nil
	}
	if _, err := watch.Wait(ctx); err != nil {
		return 0, fmt.Errorf("watch %s: %w", path, err)
	}
	return 0, errFormerLife
}

// ensure creates a path of persistent nodes.
func ensure(ctx context.Context, session host.Session, path string) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		at := path[:i]
		_, _, err := session.Create(ctx, at, nil, host.Persistent)
		if err != nil && !errors.Is(err, host.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", at, err)
		}
	}
	return nil
}
