package tablet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// The files of a server.
const (
	coordinatorEpochFile = "coordinator_epoch"
	replicasFile         = "replicas.json"
	highWatermarksFile   = "high_watermarks.json"
	logPrefix            = "log/"
)

func logFileName(id cluster.BucketID) string { return logPrefix + string(id) }

// storedReplica is what must outlive a restart of one replica, beside its log.
type storedReplica struct {
	Bucket      cluster.BucketID   `json:"bucket"`
	Table       protocol.TableInfo `json:"table"`
	Replicas    []int              `json:"replicas"`
	LeaderEpoch int                `json:"leader_epoch"`
	Deleted     bool               `json:"deleted,omitempty"`
}

// replace writes a small file and makes it durable (p).
func (s *server) replace(ctx context.Context, name string, b []byte) error {
	if err := s.h.Disk().WriteFile(ctx, name, b); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := s.h.Disk().Sync(ctx, name); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	return nil
}

func (s *server) writeCoordinatorEpoch(ctx context.Context, epoch int64) error {
	return s.replace(ctx, coordinatorEpochFile, strconv.AppendInt(nil, epoch, 10))
}

// writeReplicas writes all replicas and tombstones down, those of raised as they
// will be (p). Only the caller, who holds the control mutex, changes them.
func (s *server) writeReplicas(ctx context.Context, raised map[cluster.BucketID]storedReplica) error {
	all := map[cluster.BucketID]storedReplica{}
	for id, epoch := range s.tombstones {
		all[id] = storedReplica{Bucket: id, LeaderEpoch: epoch, Deleted: true}
	}
	for _, r := range s.order {
		all[r.id] = storedReplica{Bucket: r.id, Table: r.table, Replicas: r.replicas, LeaderEpoch: r.leaderEpoch}
	}
	maps.Copy(all, raised)
	list := make([]storedReplica, 0, len(all))
	for _, r := range all {
		if !s.policy.SyncLeaderEpoch && !r.Deleted {
			r.LeaderEpoch = unknownEpoch // the bug keeps them in memory
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b storedReplica) int { return strings.Compare(string(a.Bucket), string(b.Bucket)) })
	b, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode replicas: %w", err)
	}
	return s.replace(ctx, replicasFile, b)
}

// writeHWs writes the high watermarks down. They only ever say what is committed,
// so an old one is true for ever, and need no sync.
func (s *server) writeHWs(ctx context.Context) {
	hws := make(map[string]int64, len(s.order)) // encoded sorted by key
	for _, r := range s.order {
		hws[string(r.id)] = r.hw
	}
	b, err := json.Marshal(hws)
	if err == nil {
		err = s.replace(ctx, highWatermarksFile, b)
	}
	if err != nil {
		s.log.Info("write high watermarks", zap.Error(err))
	}
}

func (s *server) checkpointHWs(ctx context.Context) {
	written := int64(-1)
	for s.h.Sleep(ctx, s.timing.Checkpoint) == nil {
		sum := int64(len(s.order))
		for _, r := range s.order {
			sum += r.hw
		}
		if sum != written {
			written = sum
			s.writeHWs(ctx)
		}
	}
}

// read reads a file, durable from now on, until the disk lets it (p). What
// survived a kill unsynced must not be counted on before it is synced.
func (s *server) read(ctx context.Context, name string) ([]byte, error) {
	for {
		b, err := s.h.Disk().ReadFile(ctx, name)
		if errors.Is(err, host.ErrNoFile) {
			return nil, nil
		}
		if err == nil && s.policy.CountSyncedOnly {
			err = s.h.Disk().Sync(ctx, name)
		}
		if err == nil {
			return b, nil
		}
		if err := s.h.Sleep(ctx, s.timing.Retry); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
}

// load reads the disk: epochs, replicas, and every log, which it recovers (p).
func (s *server) load(ctx context.Context) error {
	b, err := s.read(ctx, coordinatorEpochFile)
	if err != nil {
		return err
	}
	if len(b) > 0 {
		if s.coordEpoch, err = strconv.ParseInt(string(b), 10, 64); err != nil {
			return fmt.Errorf("parse coordinator epoch: %w", err)
		}
	}
	if b, err = s.read(ctx, replicasFile); err != nil {
		return err
	}
	var list []storedReplica
	if len(b) > 0 {
		if err := json.Unmarshal(b, &list); err != nil {
			return fmt.Errorf("parse replicas: %w", err)
		}
	}
	hws := map[string]int64{}
	if b, err = s.read(ctx, highWatermarksFile); err != nil {
		return err
	}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &hws); err != nil {
			return fmt.Errorf("parse high watermarks: %w", err)
		}
	}
	return s.recoverLogs(ctx, list, hws)
}

// recoverLogs reads every log and lets the time pass that the harness sets.
func (s *server) recoverLogs(ctx context.Context, list []storedReplica, hws map[string]int64) error {
	event := history.Recovery{Server: s.cfg.Server, What: "log", State: history.StateStart}
	s.observe(event)
	for i := range list {
		stored := &list[i]
		if stored.Deleted {
			s.tombstones[stored.Bucket] = stored.LeaderEpoch
			continue
		}
		r := s.newReplica(stored.Bucket, stored.Table, stored.Replicas)
		if err := s.recoverLog(ctx, r); err != nil {
			return err
		}
		if s.policy.SyncLeaderEpoch {
			r.leaderEpoch = max(stored.LeaderEpoch, r.records.lastEpoch())
		}
		r.hw = min(hws[string(r.id)], r.records.end)
		r.hwTold = r.hw
		s.addReplica(r)
		event.Bytes += r.file.size
	}
	s.removeOrphans(ctx)
	if err := s.h.Sleep(ctx, s.cfg.Knobs.Log.Get()); err != nil {
		return fmt.Errorf("recover logs: %w", err)
	}
	event.State = history.StateEnd
	s.observe(event)
	return nil
}

// recoverLog reads one log; what follows its first bad frame is cut off (p).
func (s *server) recoverLog(ctx context.Context, r *replica) error {
	b, err := s.read(ctx, r.file.name)
	if err != nil {
		return err
	}
	r.file.size = decodeLog(b, &r.records)
	r.file.appended, r.file.synced = r.records.end, r.records.end
	r.writers = writersOf(&r.records)
	if r.file.size < int64(len(b)) {
		r.file.broken = true
		r.flush()
	}
	return nil
}

// removeOrphans removes files of no replica: their removal was cut short (p).
func (s *server) removeOrphans(ctx context.Context) {
	for _, prefix := range []string{logPrefix, snapshotPrefix} {
		names, err := s.h.Disk().List(ctx, prefix)
		if err != nil {
			s.log.Info("list files", zap.String("prefix", prefix), zap.Error(err))
			continue
		}
		for _, name := range names {
			if s.replicas[cluster.BucketID(strings.TrimPrefix(name, prefix))] == nil {
				s.removeFile(ctx, name)
			}
		}
	}
}

// removeFile removes a file (p). A failure leaves an orphan, which the next
// start removes.
func (s *server) removeFile(ctx context.Context, name string) {
	if err := s.h.Disk().Remove(ctx, name); err != nil && !errors.Is(err, host.ErrNoFile) {
		s.log.Info("remove file", zap.String("file", name), zap.Error(err))
	}
}

func (s *server) addReplica(r *replica) {
	s.replicas[r.id] = r
	at, _ := slices.BinarySearchFunc(s.order, r, func(a, b *replica) int { return strings.Compare(string(a.id), string(b.id)) })
	s.order = slices.Insert(s.order, at, r)
}

// dropReplica forgets a replica and removes its files (p).
func (s *server) dropReplica(ctx context.Context, r *replica) {
	delete(s.replicas, r.id)
	s.order = slices.DeleteFunc(s.order, func(o *replica) bool { return o == r })
	r.file.dropped = true
	for r.file.running {
		if r.file.cond.Wait(ctx) != nil {
			return
		}
	}
	s.removeFile(ctx, r.file.name)
	s.removeFile(ctx, snapshotName(r.id))
}
