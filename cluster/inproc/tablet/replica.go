package tablet

import (
	"fmt"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// unknownEpoch is a leader epoch below all.
const unknownEpoch = -1

// replica is this server's copy of one bucket. Its role is leader (lead is not
// nil), follower of another server (leader ≥ 0), or none.
type replica struct {
	s        *server
	id       cluster.BucketID
	table    protocol.TableInfo
	replicas []int

	// leaderEpoch is the newest one accepted; it is on disk before it is acted on.
	// Who does not lead at it already never will (rule S1).
	leaderEpoch int
	lai         protocol.LeaderAndIsr // the newest known; its ISR counts only while leading
	leader      int                   // whom to follow, or NoLeader
	lead        *leadership

	records changelog
	writers writers
	file    logFile
	digest  digest
	differs int // the leader epoch at which it was found to differ from the leader's log
	hw      int64

	snapshotAt int64 // the offset of the newest snapshot that this process wrote

	// As a follower: the newest read token of this leadership, and when to ask
	// again after a refusal.
	token      protocol.ReadToken
	fetchAfter time.Duration
	backOff    time.Duration

	// The high watermark as last reported, and when.
	hwTold   int64
	hwToldAt time.Duration
}

func (s *server) newReplica(id cluster.BucketID, table protocol.TableInfo, replicas []int) *replica {
	r := &replica{
		s: s, id: id, table: table, replicas: replicas,
		leaderEpoch: unknownEpoch, leader: protocol.NoLeader,
		lai:     protocol.LeaderAndIsr{Leader: protocol.NoLeader, LeaderEpoch: unknownEpoch, BucketEpoch: unknownEpoch},
		writers: writers{}, differs: unknownEpoch,
	}
	r.file.cond = s.h.NewCond()
	r.file.name = logFileName(id)
	return r
}

func (r *replica) minISR() int { return max(1, r.table.MinISR) }

func (r *replica) isKV() bool { return r.table.Kind == cluster.KVTable }

// counted is the end that counts as replicated: what is synced (rule S2).
func (r *replica) counted() int64 {
	if r.s.policy.CountSyncedOnly {
		return r.file.synced
	}
	return r.records.end
}

// follow makes the replica a follower, or idle if there is no leader. The leader
// epoch is on disk already. No park.
func (r *replica) follow(lai protocol.LeaderAndIsr) {
	r.resign()
	r.lai, r.leader = lai, lai.Leader
	r.fetchAfter, r.backOff = 0, 0
	if r.s.policy.TokenNamesLeadership {
		r.token = protocol.ReadToken{}
	}
	if !r.s.policy.TruncateByEpoch {
		r.truncate(r.hw) // what Fluss does: by high watermark, whatever the leader holds
	}
	if lai.Leader == protocol.NoLeader {
		return
	}
	r.role(history.RoleFollowing, r.s.incarnation)
	r.s.fetcherOf(lai.Leader).add(r)
}

// idle gives up the replica's role and keeps its log.
func (r *replica) idle() {
	if r.lead != nil {
		r.resign()
	} else {
		r.role(history.RoleResigned, r.s.incarnation)
	}
	r.leader = protocol.NoLeader
}

// resign ends a leadership, if there is one: whoever waits is told. No park.
func (r *replica) resign() {
	lead := r.lead
	if lead == nil {
		return
	}
	r.reportHW(true)
	r.lead = nil
	lead.end()
	r.role(history.RoleResigned, lead.incarnation)
}

// append adds a batch at the end under the present leader epoch and returns its
// first offset and end. No park.
func (r *replica) append(epoch int, writer int64, seq int, batch []protocol.LogRecord) (base, end int64) {
	base = r.records.end
	for i := range batch {
		rec := &batch[i]
		rec.Offset, rec.Epoch = base+int64(i), epoch
		rec.Writer, rec.Seq, rec.Batch, rec.Index = writer, seq, len(batch), i
		r.records.append(*rec)
	}
	r.writers.add(writer, seq, base, r.records.end)
	r.flush()
	return base, r.records.end
}

// take adds records that the leader sent; they begin at the end. No park.
func (r *replica) take(records []protocol.LogRecord) {
	for i := range records {
		r.records.append(records[i])
		r.writers.note(&records[i])
	}
	r.flush()
}

// truncate drops the log from to on. Dropping what is below the own high
// watermark is an invariant violation: it is done as ordered and reported.
func (r *replica) truncate(to int64) {
	from := r.records.end
	if to >= from {
		return
	}
	r.s.observe(history.Truncate{
		Bucket: string(r.id), Server: r.s.cfg.Server, LeaderEpoch: r.leaderEpoch, From: from, To: to, HW: r.hw,
	})
	r.file.cut(r, to)
	r.records.truncate(to)
	r.digest.truncate(to)
	if r.s.policy.DedupeFromLog {
		r.writers = writersOf(&r.records)
	}
	if to < r.hw {
		r.violation("truncated-below-high-watermark",
			fmt.Sprintf("from %d to %d, high watermark %d, leader epoch %d", from, to, r.hw, r.leaderEpoch))
		r.setHW(to)
	}
	r.flush()
}

// followHW takes in the leader's high watermark (rule S4).
func (r *replica) followHW(leaders int64) {
	hw := min(leaders, r.records.end)
	if !r.s.policy.FollowerHWFromLeader {
		hw = r.records.end
	}
	if hw > r.hw {
		r.setHW(hw)
	}
}

// setHW moves the high watermark and reports it: at once when it goes back,
// else at most every Timing.HWEvents.
func (r *replica) setHW(to int64) {
	back := to < r.hw
	if back {
		r.reportHW(false)
	}
	r.hw = to
	r.reportHW(back)
}

// reportHW emits the moves since the last report, now if it must or may, later
// else.
func (r *replica) reportHW(now bool) {
	if r.hw == r.hwTold {
		return
	}
	at := r.s.h.Now()
	if !now && r.hwTold != 0 && at-r.hwToldAt < r.s.timing.HWEvents {
		r.s.reportHWsLater()
		return
	}
	e := history.HW{
		Bucket: string(r.id), Server: r.s.cfg.Server, Incarnation: r.s.incarnation, LeaderEpoch: r.leaderEpoch,
		From: r.hwTold, To: r.hw, Leading: r.lead != nil && r.lead.admitted,
	}
	if r.lead != nil {
		e.LeaderEpoch, e.Incarnation = r.lead.epoch, r.lead.incarnation
	}
	r.s.observe(e)
	r.hwTold, r.hwToldAt = r.hw, at
}

// role reports a change of role. High watermarks are reported with it.
func (r *replica) role(state string, incarnation int64) {
	r.reportHW(true)
	r.s.observe(history.Role{
		Bucket: string(r.id), LeaderEpoch: r.leaderEpoch, Server: r.s.cfg.Server, Incarnation: incarnation, State: state,
	})
	r.s.changed.Broadcast()
}

func (r *replica) violation(invariant, detail string) {
	r.s.observe(history.Violation{Invariant: invariant, Bucket: string(r.id), Server: r.s.cfg.Server, Detail: detail})
}
