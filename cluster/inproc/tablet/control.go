package tablet

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// fence compares a request's coordinator epoch with the highest processed; a
// higher one is on disk before it is acted on, so that a restart does not let an
// old coordinator in. The control mutex is held (p).
func (s *server) fence(ctx context.Context, epoch int64) protocol.Code {
	switch {
	case !s.policy.CheckCoordinatorEpoch:
		return protocol.CodeNone
	case epoch < s.coordEpoch:
		return protocol.CodeInvalidCoordinator
	case epoch > s.coordEpoch:
		if err := s.writeCoordinatorEpoch(ctx, epoch); err != nil {
			s.log.Info("write coordinator epoch", zap.Error(err))
			return protocol.CodeStorage
		}
		s.coordEpoch = epoch
	}
	return protocol.CodeNone
}

// obeyed reports that an order of a term was acted on: that it changed something
// here, or is the first that was processed of its term.
func (s *server) obeyed(api string, term protocol.TermRef, epoch int64, buckets []cluster.BucketID) {
	if len(buckets) == 0 && term == s.lastTerm {
		return
	}
	s.lastTerm = term
	e := history.Obeyed{
		Server: s.cfg.Server, API: api, Coordinator: term.Coordinator, TermZxid: term.Zxid, Epoch: epoch,
	}
	if len(buckets) == 1 {
		e.Bucket = string(buckets[0])
	}
	s.observe(e)
}

// decision is what a notification means for one bucket.
type decision struct {
	code  protocol.Code // not CodeNone: refused
	fresh bool          // the role is taken; else it is held already
	write bool          // the disk must know before
}

// notifyLeaderAndIsr takes roles. Nothing in it waits for an activation, except
// the answer, for as long as the request allows.
func (s *server) notifyLeaderAndIsr(
	ctx context.Context, from cluster.NodeID, m *protocol.NotifyLeaderAndIsr,
) *protocol.NotifyLeaderAndIsrReply {
	wait := time.Duration(m.MaxWaitMillis) * time.Millisecond
	s.awaitRegistration(ctx, m, wait)
	reply := &protocol.NotifyLeaderAndIsrReply{}
	if s.control.Lock(ctx) != nil {
		reply.Code = protocol.CodeNotAttempted
		return reply
	}
	if reply.Code = s.fence(ctx, m.CoordinatorEpoch); reply.Code != protocol.CodeNone {
		s.control.Unlock()
		return reply
	}
	s.meet(from, m.CoordinatorEpoch)
	decisions := s.takeRoles(ctx, m)
	s.control.Unlock()
	s.isr.kick() // a new coordinator may accept what the old one did not
	s.awaitAdmission(ctx, m, decisions, wait)
	for i := range m.Buckets {
		result := s.status(&m.Buckets[i])
		switch {
		case decisions[i].code != protocol.CodeNone:
			result.Status, result.Code = protocol.NotifyFailed, decisions[i].code
		case !decisions[i].fresh && result.Status == protocol.NotifyInProgress && !s.policy.AckWhenServing:
			result.Status = protocol.NotifySuccess
		}
		reply.Buckets = append(reply.Buckets, result)
	}
	return reply
}

// meet remembers who is in office, for proposals.
func (s *server) meet(node cluster.NodeID, epoch int64) {
	if node != "" && (epoch >= s.metEpoch || !s.policy.CheckCoordinatorEpoch) {
		s.metEpoch = epoch
		s.coordinator = protocol.ServerNode{Server: -1, Node: node}
	}
}

// takeRoles decides on every bucket, writes the new leader epochs down in one
// go, and then acts (rule S1). The control mutex is held (p).
func (s *server) takeRoles(ctx context.Context, m *protocol.NotifyLeaderAndIsr) []decision {
	decisions := make([]decision, len(m.Buckets))
	raised := map[cluster.BucketID]storedReplica{}
	for i := range m.Buckets {
		b := &m.Buckets[i]
		decisions[i] = s.decide(b)
		if decisions[i].write {
			raised[b.Bucket] = storedReplica{Bucket: b.Bucket, Table: b.Table, Replicas: b.Replicas, LeaderEpoch: b.LAI.LeaderEpoch}
		}
	}
	if len(raised) > 0 {
		if err := s.writeReplicas(ctx, raised); err != nil {
			s.log.Info("write leader epochs", zap.Error(err))
			for i := range decisions {
				if decisions[i].write {
					decisions[i] = decision{code: protocol.CodeStorage}
				}
			}
		}
	}
	var changed []cluster.BucketID
	for i := range m.Buckets {
		if decisions[i].code == protocol.CodeNone && s.act(&m.Buckets[i], decisions[i].fresh) {
			changed = append(changed, m.Buckets[i].Bucket)
		}
	}
	s.obeyed(protocol.APINotifyLeaderAndIsr, m.Term, m.CoordinatorEpoch, changed)
	return decisions
}

// decide says what a notification means, and changes nothing. No park.
func (s *server) decide(b *protocol.BucketState) decision {
	self := s.cfg.Server
	switch {
	case b.Incarnation != 0 && b.Incarnation != s.incarnation:
		return decision{code: protocol.CodeNotAttempted} // meant for another life
	case !slices.Contains(b.Replicas, self):
		return decision{code: protocol.CodeUnknownTableOrBucket}
	}
	if dead, ok := s.tombstones[b.Bucket]; ok && b.LAI.LeaderEpoch <= dead {
		return decision{code: protocol.CodeUnknownTableOrBucket}
	}
	r := s.replicas[b.Bucket]
	switch {
	case r == nil || b.LAI.LeaderEpoch > r.leaderEpoch:
		return decision{fresh: true, write: true}
	case b.LAI.LeaderEpoch < r.leaderEpoch:
		return decision{code: protocol.CodeFencedLeaderEpoch}
	default:
		return s.decideAgain(r, b.LAI)
	}
}

// decideAgain is decide at a leader epoch that is known already.
func (s *server) decideAgain(r *replica, lai protocol.LeaderAndIsr) decision {
	leads := lai.Leader == s.cfg.Server
	switch {
	case leads && r.lead != nil:
		if r.lead.incarnation != s.incarnation && s.policy.RefuseOldLeadership {
			return decision{code: protocol.CodeFencedLeaderEpoch}
		}
		return decision{}
	case leads:
		// Known before a restart, or given up: never to be led at again (rule S1).
		if s.policy.RefuseOldLeadership {
			return decision{code: protocol.CodeFencedLeaderEpoch}
		}
		return decision{fresh: true}
	case r.lead != nil || (r.leader != protocol.NoLeader && r.leader != lai.Leader):
		return decision{code: protocol.CodeInvalidUpdateVersion} // a leader epoch has one leader
	case r.leader == lai.Leader:
		return decision{}
	default:
		return decision{fresh: true}
	}
}

// act takes the role, or takes in the newer ISR of the role held. It reports
// whether anything changed. No park.
func (s *server) act(b *protocol.BucketState, fresh bool) bool {
	r := s.replicas[b.Bucket]
	if r == nil {
		r = s.newReplica(b.Bucket, b.Table, b.Replicas)
		s.addReplica(r)
	}
	if b.LAI.LeaderEpoch < r.leaderEpoch {
		return false // a second entry of the same request was newer
	}
	if !fresh {
		newer := b.LAI.BucketEpoch > r.lai.BucketEpoch
		switch {
		case r.lead == nil && newer:
			r.lai = b.LAI
		case r.lead != nil:
			r.lead.adopt(b.LAI)
			if r.lead.stage == failed {
				r.lead.stage = queued
				s.activation.Put(r.lead)
			}
		}
		return newer
	}
	r.table, r.replicas = b.Table, b.Replicas
	r.leaderEpoch = b.LAI.LeaderEpoch
	if b.LAI.Leader == s.cfg.Server {
		r.takeLead(b.LAI)
	} else {
		r.follow(b.LAI)
	}
	return true
}

// awaitRegistration waits a little for a registration that the coordinator has
// seen before its own answer arrived here (p).
func (s *server) awaitRegistration(ctx context.Context, m *protocol.NotifyLeaderAndIsr, wait time.Duration) {
	known := func() bool {
		return s.registered || !slices.ContainsFunc(m.Buckets, func(b protocol.BucketState) bool {
			return b.Incarnation != 0 && b.Incarnation != s.incarnation
		})
	}
	if known() || wait <= 0 {
		return
	}
	ctx, cancel := s.h.WithTimeout(ctx, wait)
	defer cancel()
	for !known() {
		if s.changed.Wait(ctx) != nil {
			return
		}
	}
}

// awaitAdmission holds the answer back until one more bucket can be answered
// (p), and then for a moment more, because buckets are admitted in company.
func (s *server) awaitAdmission(ctx context.Context, m *protocol.NotifyLeaderAndIsr, d []decision, wait time.Duration) {
	count := func() int {
		n := 0
		for i := range m.Buckets {
			if d[i].code == protocol.CodeNone && s.status(&m.Buckets[i]).Status == protocol.NotifyInProgress {
				n++
			}
		}
		return n
	}
	before := count()
	if before == 0 || wait <= 0 {
		return
	}
	ctx, cancel := s.h.WithTimeout(ctx, wait)
	defer cancel()
	for count() == before {
		if s.changed.Wait(ctx) != nil {
			return
		}
	}
	if count() > 0 {
		_ = s.h.Sleep(ctx, s.timing.HWDelay) // the wait's end is no error
	}
}

// stopReplica gives replicas up, and with Delete their files too.
func (s *server) stopReplica(ctx context.Context, m *protocol.StopReplica) *protocol.CodeReply {
	if s.control.Lock(ctx) != nil {
		return &protocol.CodeReply{Code: protocol.CodeNotAttempted}
	}
	defer s.control.Unlock()
	if code := s.fence(ctx, m.CoordinatorEpoch); code != protocol.CodeNone {
		return &protocol.CodeReply{Code: code}
	}
	reply := &protocol.CodeReply{}
	var changed []cluster.BucketID
	for _, b := range m.Buckets {
		r := s.replicas[b.Bucket]
		switch {
		case r == nil:
			if code := s.bury(ctx, b); code != protocol.CodeNone {
				reply.Code = code
			}
			continue
		case b.LeaderEpoch < r.leaderEpoch:
			reply.Code = protocol.CodeFencedLeaderEpoch
			continue
		}
		changed = append(changed, b.Bucket)
		if code := s.giveUp(ctx, r, b); code != protocol.CodeNone {
			reply.Code = code
		}
	}
	s.obeyed(protocol.APIStopReplica, m.Term, m.CoordinatorEpoch, changed)
	return reply
}

// giveUp ends one replica's role, writes down what must outlive a restart, and
// removes the files of a deleted one (p).
func (s *server) giveUp(ctx context.Context, r *replica, b protocol.StopBucket) protocol.Code {
	r.idle()
	raised := storedReplica{Bucket: r.id, Table: r.table, Replicas: r.replicas, LeaderEpoch: b.LeaderEpoch, Deleted: b.Delete}
	if b.LeaderEpoch > r.leaderEpoch || b.Delete {
		if err := s.writeReplicas(ctx, map[cluster.BucketID]storedReplica{r.id: raised}); err != nil {
			s.log.Info("write replicas", zap.Error(err))
			return protocol.CodeStorage
		}
	}
	r.leaderEpoch = b.LeaderEpoch
	if b.Delete {
		s.tombstones[r.id] = b.LeaderEpoch
		s.dropReplica(ctx, r)
	}
	return protocol.CodeNone
}

// bury remembers the deletion of a replica that is not here: a notification that
// was overtaken by it must not bring the replica back (p).
func (s *server) bury(ctx context.Context, b protocol.StopBucket) protocol.Code {
	if dead, ok := s.tombstones[b.Bucket]; !b.Delete || (ok && dead >= b.LeaderEpoch) {
		return protocol.CodeNone
	}
	raised := storedReplica{Bucket: b.Bucket, LeaderEpoch: b.LeaderEpoch, Deleted: true}
	if err := s.writeReplicas(ctx, map[cluster.BucketID]storedReplica{b.Bucket: raised}); err != nil {
		s.log.Info("write replicas", zap.Error(err))
		return protocol.CodeStorage
	}
	s.tombstones[b.Bucket] = b.LeaderEpoch
	return protocol.CodeNone
}
