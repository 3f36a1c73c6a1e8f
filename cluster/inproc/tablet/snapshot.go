package tablet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
)

const snapshotPrefix = "snapshot/"

func snapshotName(id cluster.BucketID) string { return snapshotPrefix + string(id) }

// snapshot is the committed view of a table at an offset. It shortens the next
// restore on this server. Epoch is that of the record before the offset: if the
// log at hand has it there, it has the same records below, as S8 keeps logs.
type snapshot struct {
	offset int64
	epoch  int
	rows   map[string][]byte
}

// of reports whether the snapshot is one of this log.
func (s *snapshot) of(l *changelog) bool {
	return s.offset <= l.end && (s.offset == 0 || l.at(s.offset-1).Epoch == s.epoch)
}

// encodeSnapshot makes the file: offset, epoch, rows by key, and a CRC of it all.
func encodeSnapshot(l *changelog, t *table) []byte {
	epoch := unknownEpoch
	if t.applied > 0 {
		epoch = l.at(t.applied - 1).Epoch
	}
	b := binary.AppendVarint(appendUint(nil, uint64(t.applied)), int64(epoch))
	b = appendUint(b, uint64(len(t.committed)))
	for _, key := range slices.Sorted(maps.Keys(t.committed)) {
		b = appendBytes(append(appendUint(b, uint64(len(key))), key...), t.committed[key])
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// errBadSnapshot says that a snapshot file is not whole.
var errBadSnapshot = errors.New("snapshot is not whole")

func decodeSnapshot(b []byte) (*snapshot, error) {
	if len(b) < 4 || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, errBadSnapshot
	}
	d := decoder{b: b[:len(b)-4]}
	s := &snapshot{offset: int64(d.uint()), epoch: int(d.int()), rows: map[string][]byte{}}
	for n := d.uint(); n > 0 && !d.bad; n-- {
		key := string(d.bytes())
		s.rows[key] = append([]byte{}, d.bytes()...)
	}
	if d.bad || len(d.b) != 0 {
		return nil, errBadSnapshot
	}
	return s, nil
}

// takeSnapshots writes the tables that this server leads down from time to time,
// each when its changelog has grown by as much as the snapshot will hold.
func (s *server) takeSnapshots(ctx context.Context) {
	for s.h.Sleep(ctx, s.timing.Snapshot) == nil {
		for _, r := range slices.Clone(s.order) {
			if r.snapshotDue() {
				s.takeSnapshot(ctx, r)
			}
		}
	}
}

func (r *replica) snapshotDue() bool {
	if r.lead == nil || r.lead.table == nil || r.file.dropped {
		return false
	}
	t := r.lead.table
	return t.applied-r.snapshotAt >= int64(max(r.s.cfg.SnapshotRecords, len(t.committed)))
}

// takeSnapshot writes one table down (p). What fails is tried again next time.
func (s *server) takeSnapshot(ctx context.Context, r *replica) {
	at := r.lead.table.applied
	if err := s.replace(ctx, snapshotName(r.id), encodeSnapshot(&r.records, r.lead.table)); err != nil {
		s.log.Info("write snapshot", zap.String("bucket", string(r.id)), zap.Error(err))
		return
	}
	r.snapshotAt = at
}

// readSnapshot reads the newest snapshot that belongs to the log at hand, nil if
// there is none (p). One that is not whole, or of another log, is not used: the
// changelog holds everything.
func (s *server) readSnapshot(ctx context.Context, r *replica) (*snapshot, error) {
	b, err := s.h.Disk().ReadFile(ctx, snapshotName(r.id))
	switch {
	case errors.Is(err, host.ErrNoFile):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	snap, err := decodeSnapshot(b)
	if err != nil || !snap.of(&r.records) {
		s.log.Info("snapshot not used", zap.String("bucket", string(r.id)), zap.Error(err))
		return nil, nil
	}
	return snap, nil
}
