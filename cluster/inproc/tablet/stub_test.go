package tablet_test

import (
	"context"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// stubHost replaces the ZooKeeper session by one that always works.
type stubHost struct {
	host.Host
	b *bench
}

type stubSession struct {
	host.Session
	b     *bench
	cond  host.Cond
	state host.SessionState
}

func withStub(b *bench, main host.Main) host.Main {
	return func(ctx context.Context, h host.Host) { main(ctx, &stubHost{h, b}) }
}

func (s *stubHost) Dial(ctx context.Context, _ host.SessionOptions) (host.Session, error) {
	session := &stubSession{b: s.b, cond: s.NewCond(), state: host.Connected}
	s.b.stubs[s.ID()] = session
	return session, nil
}

func (s *stubSession) Create(context.Context, string, []byte, host.CreateMode) (string, int64, error) {
	s.b.zxid++
	return "", s.b.zxid, nil
}

func (s *stubSession) State() host.SessionState { return s.state }

func (s *stubSession) Changed(ctx context.Context, old host.SessionState) (host.SessionState, error) {
	for s.state == old {
		if err := s.cond.Wait(ctx); err != nil {
			return old, err
		}
	}
	return s.state, nil
}

func (s *stubSession) Close(context.Context) error { return nil }
