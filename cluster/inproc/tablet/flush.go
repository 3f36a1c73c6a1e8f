package tablet

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// logFile is the file behind a replica's log. Appends gather in memory; one task
// a file writes and syncs what has gathered, so that a sync serves all batches
// before it. A disk that fails is tried again until it works: until then
// nothing of this replica counts (rule S2), and nothing is lost.
type logFile struct {
	name     string
	size     int64 // bytes of whole frames that belong to the log
	appended int64 // end offset of what is in the file
	synced   int64 // end offset of what is durable
	broken   bool  // the file may hold bytes beyond size
	unsynced bool  // something was written since the last sync
	cuts     int   // how often the log was cut: a write under way is void then
	running  bool
	stuck    bool // the disk refuses
	dropped  bool // the replica is gone
	ragged   bool // a batch was cut
	cond     host.Cond
	scratch  []byte
}

// settled reports whether the file holds the log as it is, durably.
func (f *logFile) settled(r *replica) bool {
	return !f.broken && !f.unsynced && f.synced == r.records.end
}

// cut takes records from to on out of the file, before the log drops them; the
// flush does it. Batches are cut only where a bug is planted, and then the file
// is written anew.
func (f *logFile) cut(r *replica, to int64) {
	f.cuts++
	f.ragged = f.ragged || r.records.at(to).Index != 0
	switch {
	case f.ragged:
		f.size, f.appended, f.broken = 0, 0, true
	case to < f.appended:
		f.size -= int64(len(appendFrames(nil, &r.records, to, f.appended)))
		f.appended, f.broken = to, true
	}
	f.synced = min(f.synced, to)
}

// flush starts the task that brings the file up to date. No park.
func (r *replica) flush() {
	if !r.file.running {
		r.file.running = true
		r.s.h.Go(r.s.ctx, "flush "+string(r.id), r.runFlush)
	}
}

func (r *replica) runFlush(ctx context.Context) {
	f := &r.file
	for !f.settled(r) && !f.dropped {
		err := r.flushOnce(ctx)
		f.stuck = err != nil
		if err != nil && ctx.Err() != nil {
			break
		}
		if err == nil {
			r.synced()
			continue
		}
		r.s.log.Info("disk refuses", zap.String("bucket", string(r.id)), zap.Error(err))
		f.cond.Broadcast()
		r.wakeFetcher()
		if r.s.h.Sleep(ctx, r.s.timing.Retry) != nil {
			break
		}
	}
	f.running = false
	f.cond.Broadcast()
}

// flushOnce writes what is missing and syncs. A cut meanwhile makes what it wrote
// void: the next turn takes it out again.
func (r *replica) flushOnce(ctx context.Context) error {
	f, disk := &r.file, r.s.h.Disk()
	if f.broken {
		cuts := f.cuts
		if err := disk.Truncate(ctx, f.name, f.size); err != nil && !errors.Is(err, host.ErrNoFile) {
			return err
		}
		f.unsynced = true
		if cuts != f.cuts {
			return nil
		}
		f.broken = false
	}
	if f.appended < r.records.end {
		to, cuts := r.records.end, f.cuts
		f.scratch = appendFrames(f.scratch[:0], &r.records, f.appended, to)
		f.broken, f.unsynced = true, true
		if err := disk.Append(ctx, f.name, f.scratch); err != nil {
			return err
		}
		if cuts != f.cuts {
			return nil
		}
		f.size, f.appended, f.broken = f.size+int64(len(f.scratch)), to, false
	}
	cuts, end := f.cuts, f.appended
	if r.s.policy.CountSyncedOnly { // the bug counts what it appended, and leaves syncing to chance
		if err := disk.Sync(ctx, f.name); err != nil && !errors.Is(err, host.ErrNoFile) {
			return err
		}
	}
	if cuts == f.cuts {
		f.unsynced, f.synced = f.appended != end, end
	}
	return nil
}

// synced tells everyone whom a longer durable log concerns.
func (r *replica) synced() {
	r.file.cond.Broadcast()
	if r.lead != nil {
		r.lead.advance()
	}
	r.wakeFetcher()
}

// wakeFetcher lets the task that fetches for this replica look at it again.
func (r *replica) wakeFetcher() {
	if r.lead == nil && r.leader != protocol.NoLeader {
		if f := r.s.fetchers[r.leader]; f != nil {
			f.kicked = f.kicked || (f.skipped && r.file.settled(r))
			f.cond.Broadcast()
		}
	}
}
