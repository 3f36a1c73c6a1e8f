package real

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/host/hosttest"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
)

// conform runs the conformance suite of sessions over servers.
func conform(t *testing.T, servers []string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Run("suite", func(t *testing.T) {
		hosttest.RunSessions(t, func(t *testing.T, o hosttest.Options) hosttest.World {
			t.Helper()
			w := NewWorld(Config{Seed: o.Seed, Observe: o.Observe, Sessions: ZooKeeper(servers...)})
			t.Cleanup(func() {
				w.Close()
				require.Empty(t, w.Findings())
			})
			return w
		})
	})
	goleak.VerifyNone(t, before)
}

func TestSessionsConformOverTheEmbeddedZooKeeper(t *testing.T) {
	s, err := zookeeper.Embedded{}.Start(t.Context(), zookeeper.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	conform(t, s.Addresses())
}

// A kill finds a session in any state: dialing, calling, watching, closing.
// Whatever it was, nothing of it stays.
func TestKillsLeaveNothingBehind(t *testing.T) {
	server, err := zookeeper.Embedded{}.Start(t.Context(), zookeeper.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close(context.Background())) })
	before := goleak.IgnoreCurrent()
	w := NewWorld(Config{Sessions: ZooKeeper(server.Addresses()...)})
	require.NoError(t, w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		n := w.NewNode("victim", func(ctx context.Context, h host.Host) {
			for {
				s, err := h.Dial(ctx, host.SessionOptions{Timeout: 4 * time.Second})
				if err != nil {
					return
				}
				h.Go(ctx, "watch", func(ctx context.Context) {
					for {
						_, watch, err := s.ExistsW(ctx, "/x")
						if err != nil && !errors.Is(err, host.ErrNoNode) {
							return
						}
						if _, err := watch.Wait(ctx); err != nil {
							return
						}
					}
				})
				for range 5 {
					_, _, _ = s.Create(ctx, "/x", nil, host.Ephemeral) // any outcome will do
					_, _ = s.Delete(ctx, "/x", -1)                     // likewise
				}
				_ = s.Close(ctx) // likewise
			}
		})
		z := w.ZooKeeper("victim")
		for range 100 {
			require.NoError(t, n.Start(ctx))
			switch c.Rand().IntN(4) {
			case 0:
				z.Hold(5 * time.Millisecond)
			case 1:
				z.CutAfter("", 10*time.Millisecond)
			}
			require.NoError(t, c.Sleep(ctx, time.Duration(c.Rand().IntN(8000))*time.Microsecond))
			began := time.Now()
			require.NoError(t, n.Kill(ctx))
			require.Less(t, time.Since(began), 500*time.Millisecond, "a kill waits for nothing of the library's")
		}
		return nil
	}))
	require.Empty(t, w.Findings())
	goleak.VerifyNone(t, before)
}

func TestServersThatDoNotAnswerHoldNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts, by its backlog, and says nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, mute.Close()) })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for name, address := range map[string]string{"mute": mute.Addr().String(), "gone": gone.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(Config{Sessions: ZooKeeper(address)})
			require.NoError(t, w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
				short, cancel := c.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				_, err := c.Dial(short, host.SessionOptions{Timeout: 3 * time.Second})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return nil
			}))
			require.Empty(t, w.Findings())
			goleak.VerifyNone(t, before)
		})
	}
}
