package coordinator

import (
	"context"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// syncMetadata keeps a tablet's metadata up to date: it sends all that changed
// after what the tablet has acknowledged, one request at a time, and a heartbeat
// when there is nothing: who coordinates, and who is alive.
func (ch *channel) syncMetadata(ctx context.Context) {
	t := ch.t
	failures := 0
	for ch.open() && ctx.Err() == nil {
		upTo := t.clock
		m := t.metadataSince(ch.acked)
		reply, err := call[*protocol.CodeReply](ctx, ch, m, t.timing.CallTimeout)
		switch {
		case t.over || ctx.Err() != nil:
			return
		case err == nil && reply.Code == protocol.CodeNone:
			failures = 0
			ch.acked = max(ch.acked, upTo)
			t.finishDeletions()
			for until := t.h.Now() + t.timing.Heartbeat; ch.acked == t.clock && t.h.Now() < until && ctx.Err() == nil; {
				ch.sleep(until - t.h.Now())
			}
			continue
		case err == nil:
			t.refusedAsOld(ch.key.server, reply.Code)
		}
		failures++
		t.log.Debug("metadata not acknowledged", zap.Int("tablet", ch.key.server), zap.Error(err))
		if t.h.Sleep(ctx, t.c.backOff(failures)) != nil {
			return
		}
	}
}

// metadataSince is what changed after a change number; after 0 it is all. No
// leader stands in it that has not admitted its role (section 2).
func (t *term) metadataSince(since int64) *protocol.UpdateMetadata {
	m := &protocol.UpdateMetadata{
		Term: t.ref, CoordinatorEpoch: t.epoch, Coordinator: t.coordinator(), Tablets: t.liveTablets(),
	}
	for _, tb := range t.sortedTables() {
		if tb.changed > since {
			m.Tables = append(m.Tables, tb.info)
		}
	}
	for _, b := range t.order {
		if b.changed <= since {
			continue
		}
		if meta, known := b.advertised(t.policy); known {
			m.Buckets = append(m.Buckets, meta)
			// "No leader" where an earlier term may have named one is what no sound
			// coordinator says, and no cache would believe by itself.
			m.Force = m.Force || (b.act.stage == unconfirmed && meta.Leader != b.lai.Leader)
		}
	}
	for _, d := range t.deleted {
		switch {
		case d.changed <= since:
		case d.table >= 0:
			m.DeletedTables = append(m.DeletedTables, d.table)
		default:
			m.Deleted = append(m.Deleted, d.bucket)
		}
	}
	return m
}

// answerMetadata is what the coordinator itself tells who asks; pending leaders
// are withheld here too.
func (t *term) answerMetadata(m *protocol.GetMetadata) *protocol.GetMetadataReply {
	reply := &protocol.GetMetadataReply{Coordinator: t.coordinator(), Tablets: t.liveTablets()}
	wanted := map[string]bool{}
	for _, name := range m.Tables {
		wanted[name] = true
	}
	for _, tb := range t.sortedTables() {
		if len(wanted) > 0 && !wanted[tb.info.Name] {
			continue
		}
		reply.Tables = append(reply.Tables, tb.info)
		for _, p := range tb.sortedParts() {
			for _, b := range p.buckets {
				if meta, known := b.advertised(t.policy); known {
					reply.Buckets = append(reply.Buckets, meta)
				}
			}
		}
	}
	return reply
}
