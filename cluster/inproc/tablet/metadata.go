package tablet

import (
	"context"
	"slices"
	"strings"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// metadata is what this server tells clients: who leads which bucket, as
// coordinators said last. It is apart from the replicas: what a server does and
// what it says are told to it by different messages, and the distance between the
// two is what retry storms are made of.
type metadata struct {
	coordinator protocol.ServerNode
	tablets     []protocol.ServerNode
	nodes       map[int]cluster.NodeID
	listed      bool                  // a list of live tablets has come
	tables      map[int64]*tableEntry // by id
	byID        []*tableEntry         // sorted by id
	buckets     map[cluster.BucketID]*bucketEntry
	deleted     map[cluster.BucketID]bool // ids are never used again, so a late entry must not come back
}

type tableEntry struct {
	id      int64
	info    protocol.TableInfo
	known   bool // info has come; entries of buckets may come first
	buckets []*bucketEntry
}

type bucketEntry struct {
	protocol.BucketMetadata
	table int64
}

func newMetadata() metadata {
	return metadata{
		nodes: map[int]cluster.NodeID{}, tables: map[int64]*tableEntry{},
		buckets: map[cluster.BucketID]*bucketEntry{}, deleted: map[cluster.BucketID]bool{},
	}
}

// nodeOf is a tablet's address, by the list of live ones or by convention.
func (c *metadata) nodeOf(server int) cluster.NodeID {
	if node, ok := c.nodes[server]; ok {
		return node
	}
	return NodeOf(server)
}

// alive reports whether a tablet is in the list of live ones; before there is a
// list all are.
func (c *metadata) alive(server int) bool {
	_, ok := c.nodes[server]
	return ok || !c.listed
}

// updateMetadata takes in what a coordinator says.
func (s *server) updateMetadata(ctx context.Context, m *protocol.UpdateMetadata) *protocol.CodeReply {
	if s.control.Lock(ctx) != nil {
		return &protocol.CodeReply{Code: protocol.CodeNotAttempted}
	}
	defer s.control.Unlock()
	if code := s.fence(ctx, m.CoordinatorEpoch); code != protocol.CodeNone {
		return &protocol.CodeReply{Code: code}
	}
	s.meet(m.Coordinator.Node, m.CoordinatorEpoch)
	if m.Coordinator.Node != "" {
		s.meta.coordinator = m.Coordinator
	}
	if m.Tablets != nil {
		s.meta.setTablets(m.Tablets)
		s.isr.kick()
	}
	for _, t := range m.Tables {
		e := s.meta.table(t.ID)
		e.info, e.known = t, true
	}
	var changed []cluster.BucketID
	for _, b := range m.Buckets {
		if s.meta.set(b, s.policy.CompareMetadata && !m.Force) {
			changed = append(changed, b.Bucket)
			s.advertise(b.Bucket, b.Leader, b.LeaderEpoch)
		}
	}
	for _, b := range m.Deleted {
		if epoch, was := s.meta.remove(b); was {
			changed = append(changed, b)
			s.advertise(b, protocol.NoLeader, epoch)
		}
	}
	for _, id := range m.DeletedTables {
		s.meta.removeTable(id)
	}
	s.obeyed(protocol.APIUpdateMetadata, m.Term, m.CoordinatorEpoch, changed)
	return &protocol.CodeReply{}
}

func (s *server) advertise(bucket cluster.BucketID, leader, epoch int) {
	s.observe(history.Advertised{Bucket: string(bucket), Leader: leader, LeaderEpoch: epoch, By: s.cfg.Server})
}

func (c *metadata) setTablets(live []protocol.ServerNode) {
	c.tablets, c.listed = live, true
	c.nodes = make(map[int]cluster.NodeID, len(live))
	for _, t := range live {
		c.nodes[t.Server] = t.Node
	}
}

// table finds or makes a table's entry.
func (c *metadata) table(id int64) *tableEntry {
	e := c.tables[id]
	if e == nil {
		e = &tableEntry{id: id}
		c.tables[id] = e
		at, _ := slices.BinarySearchFunc(c.byID, id, func(e *tableEntry, id int64) int { return int(e.id - id) })
		c.byID = slices.Insert(c.byID, at, e)
	}
	return e
}

// set takes one bucket's entry in and reports whether the answer to clients is
// another one now. The higher leader epoch wins, and at the same epoch a leader
// beats none: entries may come late and from more than one coordinator.
func (c *metadata) set(b protocol.BucketMetadata, compare bool) bool {
	if c.deleted[b.Bucket] {
		return false
	}
	e := c.buckets[b.Bucket]
	if e == nil {
		parts, err := b.Bucket.Parts()
		if err != nil {
			return false
		}
		e = &bucketEntry{BucketMetadata: b, table: parts.TableID}
		c.buckets[b.Bucket] = e
		t := c.table(e.table)
		at, _ := slices.BinarySearchFunc(t.buckets, b.Bucket, func(e *bucketEntry, id cluster.BucketID) int {
			return strings.Compare(string(e.Bucket), string(id))
		})
		t.buckets = slices.Insert(t.buckets, at, e)
		return true
	}
	if compare {
		older := b.LeaderEpoch < e.LeaderEpoch
		contradicts := b.LeaderEpoch == e.LeaderEpoch && e.Leader != protocol.NoLeader && b.Leader != e.Leader
		if older || contradicts {
			return false
		}
	}
	changed := e.Leader != b.Leader || e.LeaderEpoch != b.LeaderEpoch
	e.BucketMetadata = b
	return changed
}

// remove forgets a bucket for good.
func (c *metadata) remove(id cluster.BucketID) (epoch int, was bool) {
	c.deleted[id] = true
	e := c.buckets[id]
	if e == nil {
		return 0, false
	}
	delete(c.buckets, id)
	t := c.tables[e.table]
	t.buckets = slices.DeleteFunc(t.buckets, func(o *bucketEntry) bool { return o == e })
	if len(t.buckets) == 0 && !t.info.Partitioned {
		c.removeTable(t.id)
	}
	return e.LeaderEpoch, true
}

func (c *metadata) removeTable(id int64) {
	delete(c.tables, id)
	c.byID = slices.DeleteFunc(c.byID, func(e *tableEntry) bool { return e.id == id })
}

// answer is what a client is told now.
func (c *metadata) answer(m *protocol.GetMetadata) *protocol.GetMetadataReply {
	reply := &protocol.GetMetadataReply{Coordinator: c.coordinator, Tablets: c.tablets}
	for _, t := range c.byID {
		if !t.known || (len(m.Tables) > 0 && !slices.Contains(m.Tables, t.info.Name)) {
			continue
		}
		reply.Tables = append(reply.Tables, t.info)
		for _, b := range t.buckets {
			reply.Buckets = append(reply.Buckets, b.BucketMetadata)
		}
	}
	return reply
}

// all lists every bucket's entry, in order.
func (c *metadata) all() []protocol.BucketMetadata {
	var out []protocol.BucketMetadata
	for _, t := range c.byID {
		for _, b := range t.buckets {
			out = append(out, b.BucketMetadata)
		}
	}
	return out
}
