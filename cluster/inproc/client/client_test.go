package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
	"github.com/fencepost-dev/fencepost/sim"
)

// script plays tablet-0 and tablet-1 (and coordinator-0 and -1) for a client.
type script struct {
	t       *testing.T
	c       host.Control
	meta    protocol.GetMetadataReply
	replies map[cluster.NodeID]func(ctx context.Context, h host.Host, m host.Message) (host.Message, error)
	seen    []host.Message // requests other than for metadata, in order of arrival
	asked   int            // requests for metadata
	writer  int64
	hung    []history.Hung
}

var ordersInfo = protocol.TableInfo{Name: "orders", ID: 7, Kind: cluster.KVTable, Buckets: 1, Replication: 3, MinISR: 2}

const orders0 = cluster.BucketID("orders#7/0")

func lead(leader, epoch int) []protocol.BucketMetadata {
	return []protocol.BucketMetadata{{Bucket: orders0, Leader: leader, LeaderEpoch: epoch, Replicas: []int{0, 1}}}
}

// run plays f against scripted servers, in simulation.
func run(t *testing.T, policy func(*protocol.ClientPolicy), f func(ctx context.Context, s *script, c *Client)) {
	t.Helper()
	s := &script{t: t, replies: map[cluster.NodeID]func(context.Context, host.Host, host.Message) (host.Message, error){}}
	s.meta = protocol.GetMetadataReply{
		Coordinator: protocol.ServerNode{Server: -1, Node: "coordinator-0"},
		Tablets:     []protocol.ServerNode{{Server: 0, Node: "tablet-0"}, {Server: 1, Node: "tablet-1"}},
		Tables:      []protocol.TableInfo{ordersInfo},
		Buckets:     lead(0, 1),
	}
	w := sim.NewWorld(sim.Config{Seed: 1, NoZooKeeper: true, Observe: func(_ cluster.NodeID, _ time.Duration, e history.Event) {
		if hung, ok := e.(history.Hung); ok {
			s.hung = append(s.hung, hung)
		}
	}})
	t.Cleanup(w.Close)
	nodes := []cluster.NodeID{"tablet-0", "tablet-1", "coordinator-0", "coordinator-1"}
	started := make([]host.Node, 0, len(nodes))
	for _, id := range nodes {
		started = append(started, w.NewNode(id, func(_ context.Context, h host.Host) {
			h.Serve(func(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
				return s.serve(ctx, h, m)
			})
		}))
	}
	require.NoError(t, w.Run(t.Context(), func(ctx context.Context, c host.Control) error {
		s.c = c
		for _, n := range started {
			if err := n.Start(ctx); err != nil {
				return err
			}
		}
		if err := c.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
		p := protocol.Sound().Client
		if policy != nil {
			policy(&p)
		}
		client := New(c.Endpoint("client-3"), Config{
			Policy: p, Process: 3, Tablets: []cluster.NodeInfo{{ID: "tablet-0", Server: 0}, {ID: "tablet-1", Server: 1}},
		})
		f(ctx, s, client)
		return client.Close(ctx)
	}))
}

func (s *script) serve(ctx context.Context, h host.Host, m host.Message) (host.Message, error) {
	switch m.(type) {
	case *protocol.GetMetadata:
		s.asked++
		return s.meta.Clone(), nil
	case *protocol.InitWriter:
		s.writer++
		return &protocol.InitWriterReply{Writer: s.writer}, nil
	}
	s.seen = append(s.seen, m)
	if reply := s.replies[h.ID()]; reply != nil {
		return reply(ctx, h, m)
	}
	switch m.(type) {
	case *protocol.PutKv, *protocol.ProduceLog:
		return &protocol.WriteReply{Base: 4}, nil
	case *protocol.Lookup:
		return &protocol.LookupReply{Values: [][]byte{[]byte("v")}}, nil
	default:
		return &protocol.CodeReply{}, nil
	}
}

// answer has a node answer writes with the codes one after the other, and then well.
func (s *script) answer(node cluster.NodeID, codes ...protocol.Code) {
	s.replies[node] = func(_ context.Context, _ host.Host, _ host.Message) (host.Message, error) {
		code := protocol.CodeNone
		if len(codes) > 0 {
			code, codes = codes[0], codes[1:]
		}
		return &protocol.WriteReply{Code: code}, nil
	}
}

func (s *script) within(ctx context.Context, d time.Duration, f func(ctx context.Context)) {
	ctx, cancel := s.c.WithTimeout(ctx, d)
	defer cancel()
	f(ctx)
}

func (s *script) puts() []*protocol.PutKv {
	var all []*protocol.PutKv
	for _, m := range s.seen {
		if put, ok := m.(*protocol.PutKv); ok {
			all = append(all, put)
		}
	}
	return all
}

func TestPutAndGet(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		a, err := c.Put(ctx, "orders", "k1", []byte("1"))
		require.NoError(t, err)
		assert.Equal(t, cluster.Attempts{Node: "tablet-0", Tries: 3, Metadata: 1}, a, "metadata, writer id, put")
		_, err = c.Put(ctx, "orders", "k1", []byte("2"))
		require.NoError(t, err)
		value, a, err := c.Get(ctx, "orders", "k1")
		require.NoError(t, err)
		assert.Equal(t, "v", string(value))
		assert.Equal(t, 1, a.Tries)
		require.Len(t, s.puts(), 2)
		assert.Equal(t, []int64{1, 1}, []int64{s.puts()[0].Writer, s.puts()[1].Writer})
		assert.Equal(t, []int{0, 1}, []int{s.puts()[0].Seq, s.puts()[1].Seq})
		assert.Equal(t, 3, s.puts()[0].Process)
	})
}

func TestKeysGoToBucketsByTheirHash(t *testing.T) {
	table := &table{buckets: make([]*bucket, 12)}
	// FNV-1a of "foobar" is 0xbf9cf968, of "" 0x811c9dc5.
	assert.Equal(t, int(uint32(0xbf9cf968)%12), keyBucket("foobar")(table))
	assert.Equal(t, int(uint32(0x811c9dc5)%12), keyBucket("")(table))
}

func TestRetriesCarryTheSameSequence(t *testing.T) {
	for code, definite := range map[protocol.Code]bool{
		protocol.CodeNotLeaderOrFollower: true, protocol.CodeNotEnoughReplicas: true, protocol.CodeRequestTimedOut: false,
		protocol.CodeLeadershipLostAfterAppend: false, protocol.CodeNotEnoughReplicasAfterAppend: false,
	} {
		t.Run(fmt.Sprint(code, definite), func(t *testing.T) {
			run(t, nil, func(ctx context.Context, s *script, c *Client) {
				s.answer("tablet-0", code)
				s.within(ctx, 5*time.Second, func(ctx context.Context) {
					_, err := c.Put(ctx, "orders", "k1", nil)
					require.NoError(t, err)
				})
				require.Len(t, s.puts(), 2)
				assert.Equal(t, s.puts()[0].Seq, s.puts()[1].Seq)
				assert.Equal(t, s.puts()[0].Writer, s.puts()[1].Writer)
			})
		})
	}
}

func TestOutcomeIsDefiniteOnlyIfEveryAttemptWasRefused(t *testing.T) {
	never := func(code protocol.Code) []protocol.Code {
		all := make([]protocol.Code, 1000)
		for i := range all {
			all[i] = code
		}
		return all
	}
	cases := map[string]struct {
		codes    []protocol.Code
		definite bool
	}{
		"refused for ever":              {never(protocol.CodeNotLeaderOrFollower), true},
		"too few replicas for ever":     {never(protocol.CodeNotEnoughReplicas), true},
		"refused after a time-out":      {append([]protocol.Code{protocol.CodeRequestTimedOut}, never(protocol.CodeNotLeaderOrFollower)...), false},
		"time-outs for ever":            {never(protocol.CodeRequestTimedOut), false},
		"rejected":                      {never(protocol.CodeInvalidTable), true},
		"out of order after a time-out": {append([]protocol.Code{protocol.CodeRequestTimedOut}, never(protocol.CodeOutOfOrderSequence)...), false},
		"out of order at once":          {never(protocol.CodeOutOfOrderSequence), true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(ctx context.Context, s *script, c *Client) {
				s.answer("tablet-0", test.codes...)
				s.within(ctx, 4*time.Second, func(ctx context.Context) {
					_, err := c.Put(ctx, "orders", "k1", nil)
					require.Error(t, err)
					assert.Equal(t, test.definite, cluster.IsDefinite(err), err)
					var code protocol.CodeError
					assert.ErrorAs(t, err, &code, "the code stays visible")
				})
				last := s.puts()[len(s.puts())-1]
				s.answer("tablet-0")
				s.within(ctx, 4*time.Second, func(ctx context.Context) {
					_, err := c.Put(ctx, "orders", "k1", nil)
					require.NoError(t, err)
				})
				next := s.puts()[len(s.puts())-1]
				assert.NotEqual(t, last.Writer, next.Writer, "a pair that was not acknowledged is never used again")
				assert.Zero(t, next.Seq)
			})
		})
	}
}

func TestUnansweredAttemptHangsAndStaysUnknown(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		s.replies["tablet-0"] = func(ctx context.Context, h host.Host, _ host.Message) (host.Message, error) {
			return nil, h.Sleep(ctx, time.Hour)
		}
		s.within(ctx, 2500*time.Millisecond, func(ctx context.Context) {
			_, err := c.Put(ctx, "orders", "k1", nil)
			require.Error(t, err)
			assert.False(t, cluster.IsDefinite(err))
			assert.ErrorContains(t, err, "outcome unknown")
		})
		require.NotEmpty(t, s.hung)
		assert.Equal(t, string(orders0), s.hung[0].Bucket)
		assert.Equal(t, "put", s.hung[0].API)
		assert.Equal(t, time.Second, time.Duration(s.hung[0].To-s.hung[0].From))
		s.within(ctx, 2500*time.Millisecond, func(ctx context.Context) {
			_, _, err := c.Get(ctx, "orders", "k1")
			assert.True(t, cluster.IsDefinite(err), "a read has no effect: %v", err)
		})
	})
}

func TestFollowsTheLeaderByMetadata(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		_, err := c.Put(ctx, "orders", "k1", nil)
		require.NoError(t, err)
		s.answer("tablet-0", protocol.CodeNotLeaderOrFollower)
		s.meta.Buckets = lead(1, 2)
		a, err := c.Put(ctx, "orders", "k1", nil)
		require.NoError(t, err)
		assert.Equal(t, cluster.Attempts{Node: "tablet-1", Tries: 3, Metadata: 1}, a)
	})
}

func TestMetadataNeverGoesBack(t *testing.T) {
	for _, compare := range []bool{true, false} {
		t.Run(fmt.Sprint("compare ", compare), func(t *testing.T) {
			run(t, func(p *protocol.ClientPolicy) { p.CompareMetadata = compare }, func(ctx context.Context, s *script, c *Client) {
				s.meta.Buckets = lead(1, 5)
				_, err := c.Put(ctx, "orders", "k1", nil)
				require.NoError(t, err)
				var a cluster.Attempts
				for _, stale := range [][]protocol.BucketMetadata{lead(0, 4), lead(protocol.NoLeader, 5)} {
					s.meta.Buckets = stale
					require.NoError(t, c.refresh(ctx, "orders", &a))
					if compare {
						assert.Equal(t, 1, c.cache.buckets[orders0].meta.Leader)
					} else {
						assert.Equal(t, stale[0].Leader, c.cache.buckets[orders0].meta.Leader)
					}
				}
				s.meta.Buckets = lead(protocol.NoLeader, 6)
				require.NoError(t, c.refresh(ctx, "orders", &a))
				assert.Equal(t, protocol.NoLeader, c.cache.buckets[orders0].meta.Leader)
			})
		})
	}
}

// TestRefusingLeader holds the limits of refusals: a leader that the metadata
// keeps naming although it refuses is asked ever less often, and without back-off
// as fast as the link allows.
func TestRefusingLeader(t *testing.T) {
	refuse := func(s *script) {
		s.replies["tablet-0"] = func(context.Context, host.Host, host.Message) (host.Message, error) {
			return &protocol.WriteReply{Code: protocol.CodeNotLeaderOrFollower}, nil
		}
	}
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		refuse(s)
		for range 4 { // the state outlives operations
			s.within(ctx, 5*time.Second, func(ctx context.Context) { _, _ = c.Put(ctx, "orders", "k1", nil) })
		}
		assert.LessOrEqual(t, len(s.puts()), 6, "1, 2, 4, 8 seconds apart")
		assert.LessOrEqual(t, s.asked, 60, "20 s at a pause of about a second")
	})
	run(t, func(p *protocol.ClientPolicy) { p.BackOff = false }, func(ctx context.Context, s *script, c *Client) {
		refuse(s)
		s.within(ctx, time.Second, func(ctx context.Context) { _, _ = c.Put(ctx, "orders", "k1", nil) })
		assert.Greater(t, len(s.puts()), 200)
		assert.InDelta(t, len(s.puts()), s.asked, 2)
	})
}

func TestNoLeaderIsWaitedForWithoutAsking(t *testing.T) {
	for _, backOff := range []bool{true, false} {
		t.Run(fmt.Sprint("back-off ", backOff), func(t *testing.T) {
			run(t, func(p *protocol.ClientPolicy) { p.BackOff = backOff }, func(ctx context.Context, s *script, c *Client) {
				s.meta.Buckets = lead(protocol.NoLeader, 3)
				s.within(ctx, 10*time.Second, func(ctx context.Context) {
					_, err := c.Put(ctx, "orders", "k1", nil)
					assert.True(t, cluster.IsDefinite(err))
					assert.ErrorContains(t, err, "no leader is known")
				})
				assert.Empty(t, s.puts())
				assert.LessOrEqual(t, s.asked, 40)
			})
		})
	}
}

func TestUnreachableServersAreDefinite(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		_, err := c.Put(ctx, "orders", "k1", nil)
		require.NoError(t, err)
		s.meta.Tablets = append(s.meta.Tablets, protocol.ServerNode{Server: 9, Node: "tablet-9"})
		s.meta.Buckets = lead(9, 2)
		var a cluster.Attempts
		require.NoError(t, c.refresh(ctx, "orders", &a))
		s.within(ctx, 3*time.Second, func(ctx context.Context) {
			_, err := c.Put(ctx, "orders", "k1", nil)
			assert.True(t, cluster.IsDefinite(err), err)
		})
	})
}

func TestTableOfANewLife(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		s.answer("tablet-0", protocol.CodeUnknownTableOrBucket)
		s.within(ctx, 3*time.Second, func(ctx context.Context) {
			var a cluster.Attempts
			require.NoError(t, c.refresh(ctx, "orders", &a))
			next := ordersInfo
			next.ID = 8
			s.meta.Tables = []protocol.TableInfo{next}
			s.meta.Buckets = []protocol.BucketMetadata{{Bucket: "orders#8/0", Leader: 1, LeaderEpoch: 0}}
			_, err := c.Put(ctx, "orders", "k1", nil)
			assert.NoError(t, err, "nothing can have happened in the old table")
		})
		assert.Equal(t, cluster.BucketID("orders#8/0"), s.puts()[len(s.puts())-1].Bucket)
	})
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		s.answer("tablet-0", protocol.CodeRequestTimedOut)
		s.within(ctx, 3*time.Second, func(ctx context.Context) {
			var a cluster.Attempts
			require.NoError(t, c.refresh(ctx, "orders", &a))
			next := ordersInfo
			next.ID = 8
			s.meta.Tables = []protocol.TableInfo{next}
			s.meta.Buckets = []protocol.BucketMetadata{{Bucket: "orders#8/0", Leader: 1, LeaderEpoch: 0}}
			_, err := c.Put(ctx, "orders", "k1", nil)
			require.ErrorContains(t, err, "dropped and created again")
			assert.False(t, cluster.IsDefinite(err))
		})
		assert.Len(t, s.puts(), 1, "never sent to the new table")
	})
}

func TestPartitions(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		info := ordersInfo
		info.Partitioned = true
		s.meta.Tables = []protocol.TableInfo{info}
		s.meta.Buckets = []protocol.BucketMetadata{{Bucket: "orders#7[mon#4]/0", Leader: 1, LeaderEpoch: 0}}
		_, err := c.Put(ctx, "orders[mon]", "k1", nil)
		require.NoError(t, err)
		assert.Equal(t, cluster.BucketID("orders#7[mon#4]/0"), s.puts()[0].Bucket)
		n, _, err := c.Buckets(ctx, "orders[mon]")
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	})
}

func TestFetchOutOfRangeReadsFromTheStart(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		s.replies["tablet-0"] = func(_ context.Context, _ host.Host, m host.Message) (host.Message, error) {
			f, ok := m.(*protocol.FetchLog)
			require.True(t, ok)
			out := protocol.FetchedBucket{Bucket: orders0, HW: 12, LogStart: 10, LogEnd: 12}
			if f.Buckets[0].Offset < 10 {
				out.Code = protocol.CodeOffsetOutOfRange
			} else {
				out.Records = []protocol.LogRecord{{Offset: 10, Change: protocol.ChangeInsert, Key: "a"}, {Offset: 11, Key: "b"}}
			}
			return &protocol.FetchLogReply{Buckets: []protocol.FetchedBucket{out}}, nil
		}
		records, next, hw, a, err := c.Fetch(ctx, "orders", 0, 3, 100)
		require.NoError(t, err)
		require.Len(t, records, 2)
		assert.Equal(t, int64(10), records[0].Offset)
		assert.Equal(t, "+I", records[0].Change)
		assert.Equal(t, int64(12), next)
		assert.Equal(t, int64(12), hw)
		assert.Equal(t, 3, a.Tries)
	})
}

func TestBatchesAppend(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		base, _, err := c.Append(ctx, "orders", 0, [][]byte{[]byte("a"), []byte("b")})
		require.NoError(t, err)
		assert.Equal(t, int64(4), base)
		_, _, err = c.Append(ctx, "orders", 5, nil)
		require.ErrorIs(t, err, errNoBucket)
		assert.True(t, cluster.IsDefinite(err))
	})
}

func TestDDLFindsTheLeadingCoordinator(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		s.replies["coordinator-0"] = func(context.Context, host.Host, host.Message) (host.Message, error) {
			s.meta.Coordinator.Node = "coordinator-1"
			return &protocol.CodeReply{Code: protocol.CodeNotCoordinatorLeader}, nil
		}
		a, err := c.CreateTable(ctx, cluster.TableSpec{Name: "orders"})
		require.NoError(t, err)
		assert.Equal(t, cluster.NodeID("coordinator-1"), a.Node)
	})
}

func TestDDLThatMayHaveHappenedIsUnknown(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		first := true
		s.replies["coordinator-0"] = func(ctx context.Context, h host.Host, _ host.Message) (host.Message, error) {
			if first {
				first = false
				return nil, h.Sleep(ctx, time.Hour)
			}
			return &protocol.CodeReply{Code: protocol.CodeTableExists}, nil
		}
		_, err := c.CreateTable(ctx, cluster.TableSpec{Name: "orders"})
		require.Error(t, err)
		assert.False(t, cluster.IsDefinite(err), "the table may be ours: %v", err)
		_, err = c.CreateTable(ctx, cluster.TableSpec{Name: "orders"})
		assert.True(t, cluster.IsDefinite(err))
	})
}

func TestTasksShareOneRequestForMetadata(t *testing.T) {
	run(t, nil, func(ctx context.Context, s *script, c *Client) {
		var errs []error
		cond := s.c.NewCond()
		for range 8 {
			s.c.Go(ctx, "reader", func(ctx context.Context) {
				_, _, err := c.Get(ctx, "orders", "k1")
				errs = append(errs, err)
				cond.Broadcast()
			})
		}
		for len(errs) < 8 {
			require.NoError(t, cond.Wait(ctx))
		}
		require.NoError(t, errors.Join(errs...))
		assert.Equal(t, 1, s.asked)
	})
}
