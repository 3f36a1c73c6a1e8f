package client

import (
	"slices"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// cache is what a client knows of the cluster. Tables are kept by path: a
// table's name, or "name[partition]".
type cache struct {
	compare     bool // ignore lower leader epochs
	tables      map[string]*table
	buckets     map[cluster.BucketID]*bucket // those of tables
	bootstrap   []cluster.NodeID
	servers     map[int]cluster.NodeID
	live        []cluster.NodeID // tablets, as last told
	coordinator cluster.NodeID
}

// table is a table, or a partition of one, and its buckets by number.
type table struct {
	info      protocol.TableInfo
	partition int64 // -1 for none
	buckets   []*bucket
	asked     time.Duration // when its metadata was last asked for
}

// bucket is a bucket's metadata and what this client went through with it.
type bucket struct {
	id    cluster.BucketID
	known bool // metadata named it
	meta  protocol.BucketMetadata
	// Refusals since the last success: by which leader at which epoch, how many,
	// and until when it is not asked again.
	refusedBy    int
	refusedEpoch int
	refusals     int
	suspectUntil time.Duration
	writes       writes
}

func newCache(compare bool, tablets []cluster.NodeInfo) *cache {
	c := &cache{
		compare: compare, tables: map[string]*table{}, buckets: map[cluster.BucketID]*bucket{},
		servers: map[int]cluster.NodeID{},
	}
	for _, t := range tablets {
		c.bootstrap = append(c.bootstrap, t.ID)
		c.servers[t.Server] = t.ID
	}
	return c
}

// tableOf is the table's name in a path.
func tableOf(path string) string {
	body, ok := strings.CutSuffix(path, "]")
	name, _, found := strings.Cut(body, "[")
	if !ok || !found {
		return path
	}
	return name
}

func joinPath(name, partition string) string {
	if partition == "" {
		return name
	}
	return name + "[" + partition + "]"
}

// learn takes an answer in.
func (c *cache) learn(r *protocol.GetMetadataReply) {
	if r.Coordinator.Node != "" {
		c.coordinator = r.Coordinator.Node
	}
	if len(r.Tablets) > 0 {
		c.live = c.live[:0]
		for _, t := range r.Tablets {
			c.servers[t.Server] = t.Node
			c.live = append(c.live, t.Node)
		}
	}
	for _, info := range r.Tables {
		if info.Partitioned {
			continue // its partitions are known by their buckets
		}
		if have := c.tables[info.Name]; have == nil || info.ID > have.info.ID {
			c.addTable(info.Name, info, "", -1)
		}
	}
	for _, m := range r.Buckets {
		b := c.buckets[m.Bucket]
		if b == nil {
			if b = c.addBucket(r, m.Bucket); b == nil {
				continue
			}
		}
		if c.newer(b, m) {
			b.meta, b.known = m, true
		}
	}
}

// newer reports whether m replaces what is known: the higher leader epoch wins,
// and at the same epoch a leader beats none (section 2 of the protocol).
func (c *cache) newer(b *bucket, m protocol.BucketMetadata) bool {
	if !b.known || !c.compare {
		return true
	}
	if m.LeaderEpoch != b.meta.LeaderEpoch {
		return m.LeaderEpoch > b.meta.LeaderEpoch
	}
	return m.Leader != protocol.NoLeader || b.meta.Leader == protocol.NoLeader
}

// addBucket makes room for a bucket seen for the first time: one of a partition,
// or nil if it belongs to an older life of its table.
func (c *cache) addBucket(r *protocol.GetMetadataReply, id cluster.BucketID) *bucket {
	parts, err := id.Parts()
	if err != nil || parts.Partition == "" {
		return nil
	}
	at := slices.IndexFunc(r.Tables, func(t protocol.TableInfo) bool { return t.ID == parts.TableID })
	if at < 0 {
		return nil
	}
	path := joinPath(parts.Table, parts.Partition)
	if have := c.tables[path]; have == nil || parts.PartitionID > have.partition {
		c.addTable(path, r.Tables[at], parts.Partition, parts.PartitionID)
	}
	return c.buckets[id]
}

// addTable puts a table in place of its former life.
func (c *cache) addTable(path string, info protocol.TableInfo, partition string, partitionID int64) {
	t := &table{info: info, partition: partitionID}
	if old := c.tables[path]; old != nil {
		t.asked = old.asked
		for _, b := range old.buckets {
			delete(c.buckets, b.id)
		}
	}
	for i := range info.Buckets {
		id := cluster.NewBucket(info.Name, info.ID, partition, partitionID, i)
		b := &bucket{id: id, meta: protocol.BucketMetadata{Bucket: id, Leader: protocol.NoLeader}, writes: writes{id: noWriter}}
		t.buckets = append(t.buckets, b)
		c.buckets[id] = b
	}
	c.tables[path] = t
}

// leader is where to reach a bucket's leader, if one is known.
func (c *cache) leader(b *bucket) (cluster.NodeID, bool) {
	if !b.known || b.meta.Leader == protocol.NoLeader {
		return "", false
	}
	node, ok := c.servers[b.meta.Leader]
	return node, ok
}
