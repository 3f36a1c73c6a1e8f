package coordinator

import (
	"cmp"
	"slices"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// bucketState is where a bucket stands, as its LAI has it.
type bucketState uint8

const (
	bucketNew     bucketState = iota // no LAI was ever written
	bucketOffline                    // nobody leads
	bucketOnline                     // somebody leads, or is about to
)

// bucket is a bucket as ZooKeeper is known to hold it, and how far its leader is.
type bucket struct {
	id       cluster.BucketID
	table    *table
	replicas []int  // by preference
	path     string // of leader_isr
	stored   bool   // leader_isr exists
	lai      protocol.LeaderAndIsr
	version  int32 // of the znode
	zxid     int64 // that wrote it
	act      activation
	failures int   // activations failed in a row
	changed  int64 // the change number of its metadata
}

func (b *bucket) state() bucketState {
	switch {
	case !b.stored:
		return bucketNew
	case b.lai.Leader == protocol.NoLeader:
		return bucketOffline
	default:
		return bucketOnline
	}
}

// key names one activation: of one leader epoch, by one incarnation of a server.
type key struct {
	leaderEpoch int
	incarnation int64
}

// stage is how far the leader of a bucket is, as this term knows.
type stage uint8

const (
	unconfirmed stage = iota // stands since an earlier term, which may have named it to clients
	pending                  // elected in this term, and named to nobody
	confirmed                // serves
)

// activation is a bucket's pending activation (section 2 of the protocol). It is
// set by an election, in the same event, and ends by a success with the same key
// or by the next election.
type activation struct {
	key   key
	stage stage
}

// elected begins an activation that nobody has been told of.
func elected(k key) activation { return activation{key: k, stage: pending} }

// standing begins the confirmation of a leader that an earlier term elected.
func standing(k key) activation { return activation{key: k, stage: unconfirmed} }

// succeeded takes in that a leader serves, and reports whether that confirmed
// it. Match asks for the same key; without it any success of the leader counts.
func (a *activation) succeeded(k key, match bool) bool {
	if a.stage == confirmed || (match && k != a.key) {
		return false
	}
	a.stage = confirmed
	return true
}

// dropped is what happens to the mark when a notification gets no answer.
func (a *activation) dropped(keep bool) bool {
	if keep || a.stage == confirmed {
		return false
	}
	a.stage = confirmed
	return true
}

// advertised is what clients may be told of a bucket; false means nothing yet.
func (b *bucket) advertised(p protocol.CoordinatorPolicy) (protocol.BucketMetadata, bool) {
	m := protocol.BucketMetadata{
		Bucket: b.id, Leader: protocol.NoLeader, LeaderEpoch: b.lai.LeaderEpoch, Replicas: slices.Clone(b.replicas),
	}
	switch {
	case !b.stored:
		return m, false
	case b.lai.Leader == protocol.NoLeader:
		return m, true // written as such, so never named at this leader epoch
	case b.act.stage == confirmed || !p.WithholdPending:
		m.Leader = b.lai.Leader
		return m, true
	case b.act.stage == unconfirmed && p.SilentUntilConfirmed:
		return m, false // an earlier term may have named it: "no leader" would unsay that
	default:
		return m, true
	}
}

// table is a table and its buckets, those of all partitions.
type table struct {
	info    protocol.TableInfo
	auto    int                   // partitions kept by the clock
	parts   map[string]*partition // by name; "" for a table without partitions
	version int32                 // of the table's znode
	changed int64
}

// partition is a partition, or all of a table that has none.
type partition struct {
	name       string
	id         int64
	assignment string // path
	buckets    []*bucket
}

// state is what the term knows of ZooKeeper, and a journal of changes, from
// which each tablet is told what it has not acknowledged.
type state struct {
	tables  map[string]*table // by name
	order   []*bucket         // all buckets, sorted by id
	buckets map[cluster.BucketID]*bucket
	clock   int64 // numbers changes
	servers int64 // change number of the list of live tablets
	deleted []deletedEntry
}

type deletedEntry struct {
	bucket  cluster.BucketID
	table   int64 // if the table went: its id; else -1
	changed int64
}

func newState() state {
	return state{tables: map[string]*table{}, buckets: map[cluster.BucketID]*bucket{}}
}

func (s *state) tick() int64 {
	s.clock++
	return s.clock
}

// addPartition makes buckets known.
func (s *state) addPartition(tb *table, p *partition) {
	tb.parts[p.name] = p
	for _, b := range p.buckets {
		b.changed = s.tick()
		s.buckets[b.id] = b
		at, _ := slices.BinarySearchFunc(s.order, b, func(a, b *bucket) int { return cmp.Compare(a.id, b.id) })
		s.order = slices.Insert(s.order, at, b)
	}
}

// removePartition forgets buckets.
func (s *state) removePartition(tb *table, p *partition) {
	delete(tb.parts, p.name)
	for _, b := range p.buckets {
		delete(s.buckets, b.id)
		s.deleted = append(s.deleted, deletedEntry{bucket: b.id, table: -1, changed: s.tick()})
	}
	s.order = slices.DeleteFunc(s.order, func(b *bucket) bool { return s.buckets[b.id] != b })
}

// sortedTables lists tables by name.
func (s *state) sortedTables() []*table {
	all := make([]*table, 0, len(s.tables))
	for _, t := range s.tables { // sorted below
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *table) int { return cmp.Compare(a.info.Name, b.info.Name) })
	return all
}

// sortedParts lists partitions by id.
func (t *table) sortedParts() []*partition {
	all := make([]*partition, 0, len(t.parts))
	for _, p := range t.parts { // sorted below
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *partition) int { return cmp.Compare(a.id, b.id) })
	return all
}

// newPartition makes the buckets of a partition; none has an LAI yet.
func newPartition(tb *table, name string, id int64, assignment string, replicas [][]int) *partition {
	p := &partition{name: name, id: id, assignment: assignment}
	for i, r := range replicas {
		p.buckets = append(p.buckets, &bucket{
			id:    cluster.NewBucket(tb.info.Name, tb.info.ID, name, id, i),
			table: tb, replicas: r, path: protocol.LeaderIsrPath(assignment, i),
			lai: protocol.LeaderAndIsr{Leader: protocol.NoLeader, LeaderEpoch: -1, BucketEpoch: -1},
		})
	}
	return p
}
