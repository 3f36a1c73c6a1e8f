//go:build integration

package real

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/zookeeper"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// TestTransactionsAgreeWithTheServersOwnLog has three nodes write under cuts and
// expiries and compares what the gates reported with what the server logged:
// every commit with its zxid, session, operation and paths; none "not sent"
// that was; the log knows no commit that the gates do not.
func TestTransactionsAgreeWithTheServersOwnLog(t *testing.T) {
	server, err := zookeeper.Docker{}.Start(t.Context(), zookeeper.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close(context.Background())) })
	var mu sync.Mutex
	var reported []history.Txn
	w := NewWorld(Config{Seed: 3, Sessions: ZooKeeper(server.Addresses()...), Observe: func(_ cluster.NodeID, _ time.Duration, e history.Event) {
		mu.Lock()
		defer mu.Unlock()
		if txn, ok := e.(history.Txn); ok {
			reported = append(reported, txn)
		}
	}})
	err = w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		var nodes []host.Node
		for i := range 3 {
			n := w.NewNode(cluster.NodeID(fmt.Sprintf("writer-%d", i)), writer)
			nodes = append(nodes, n)
			if err := n.Start(ctx); err != nil {
				return err
			}
		}
		dice := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			if err := c.Sleep(ctx, time.Duration(20+dice.IntN(60))*time.Millisecond); err != nil {
				return err
			}
			z := w.ZooKeeper(nodes[dice.IntN(3)].ID())
			switch dice.IntN(5) {
			case 0:
				z.CutAfter("", time.Second)
			case 1:
				z.CutBefore("", time.Second)
			case 2:
				z.Hold(20 * time.Millisecond)
			case 3:
				_ = z.Expire(ctx, host.ByTakeover) // it may have no session at the moment
			case 4:
				_ = z.Expire(ctx, host.ByInjection) // likewise
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, w.Findings())

	witness, _ := zookeeper.As[zookeeper.Witness](server)
	dir := t.TempDir()
	require.NoError(t, witness.CopyLog(t.Context(), dir))
	logged, err := zookeeper.ReadLog(filepath.Join(dir, "0"))
	require.NoError(t, err)
	compareWithLog(t, reported, logged)
}

// writer makes sessions one after the other and writes as fast as it can.
func writer(ctx context.Context, h host.Host) {
	for {
		s, err := h.Dial(ctx, host.SessionOptions{Timeout: 4 * time.Second})
		if err != nil {
			return
		}
		base := fmt.Sprintf("/%s-%x", h.ID(), uint64(s.ID()))
		_, _, err = s.Create(ctx, base, nil, host.Persistent)
		for i := 0; s.State() != host.Expired; i++ {
			if s.State() != host.Connected {
				_, _ = s.Changed(ctx, s.State())
				continue
			}
			switch i % 4 {
			case 0:
				_, _, err = s.Create(ctx, base+"/n-", nil, host.EphemeralSequential)
			case 1:
				_, err = s.Set(ctx, base, []byte{byte(i)}, -1)
			case 2:
				_, err = s.Multi(ctx, host.Check(base, -1), host.CreateOp(fmt.Sprintf("%s/m-%d", base, i), nil, host.Persistent),
					host.SetOp(base, nil, -1))
			case 3:
				_, err = s.Delete(ctx, fmt.Sprintf("%s/m-%d", base, i-1), -1)
			}
		}
		_ = err // every outcome is welcome
	}
}

func compareWithLog(t *testing.T, reported []history.Txn, logged []zookeeper.Transaction) {
	t.Helper()
	bySession := map[int64]bool{}
	byZxid := map[int64]history.Txn{}
	unknown := map[int64]int{}
	counts := map[string]int{}
	for _, txn := range reported {
		bySession[txn.Session] = true
		counts[txn.Error]++
		switch txn.Error {
		case "":
			byZxid[txn.Zxid] = txn
		case "unknown":
			unknown[txn.Session]++
		}
	}
	matched := 0
	for _, l := range logged {
		if l.Err != jute.OK || l.Op == "createSession" || l.Op == "error" || !bySession[l.Session] {
			continue
		}
		txn, found := byZxid[l.Zxid]
		if !found {
			if l.Op == "closeSession" {
				continue // by time-out: nobody asked for it
			}
			unknown[l.Session]--
			require.GreaterOrEqual(t, unknown[l.Session], 0, "the server committed %+v and no gate knows", l)
			continue
		}
		matched++
		require.Equal(t, l.Session, txn.Session)
		require.Equal(t, l.Op, txn.Op)
		if l.Op != "closeSession" {
			require.Equal(t, l.Paths, txn.Paths)
		}
		delete(byZxid, l.Zxid)
	}
	require.Empty(t, byZxid, "reported as committed, and the server's log does not have them")
	require.Greater(t, matched, 200)
	t.Logf("%d transactions agree; reported by outcome: %v", matched, counts)
}
