package minizk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// compactAt is the size of a journal at which it is replaced by a snapshot.
const compactAt = 64 << 20

// journal keeps the state in a directory: a snapshot, and the transitions since,
// one checked record each. They are handed to the operating system before
// anybody hears of the outcome, so the state survives the end of the process,
// however it ends; it is not forced to the disk.
//
// Generation n is snapshot-n, if there is one, and journal-n. The next
// generation counts from the moment that its snapshot has its name, so a crash
// at any point leaves one that is whole.
//
// A nil journal keeps nothing.
type journal struct {
	dir   string
	gen   uint64
	file  *os.File
	size  int
	limit int // of size
	buf   []byte
	err   error // the first failure; nothing is written after it
}

func (j *journal) path(kind string, gen uint64) string {
	return filepath.Join(j.dir, fmt.Sprintf("%s-%020d", kind, gen))
}

// load finds the state in the directory, or begins a new one there.
func (s *Server) load() error {
	options, err := s.options()
	if err != nil {
		return err
	}
	now := s.clock.millis()
	if s.cfg.Dir == "" {
		s.tree = tree.New(options, now)
		return nil
	}
	if err := os.MkdirAll(s.cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("make directory of the state: %w", err)
	}
	j := &journal{dir: s.cfg.Dir, limit: compactAt}
	if s.tree, err = j.read(options, now); err != nil {
		return fmt.Errorf("read state in %s: %w", s.cfg.Dir, err)
	}
	s.tree.Restart(now)
	s.journal = j
	if err := j.compact(s.tree); err != nil {
		return fmt.Errorf("write state in %s: %w", s.cfg.Dir, err)
	}
	return nil
}

// read loads the newest generation.
func (j *journal) read(options tree.Options, now int64) (*tree.Tree, error) {
	snapshots, err := filepath.Glob(filepath.Join(j.dir, "snapshot-*[0-9]"))
	if err != nil {
		return nil, err
	}
	t := tree.New(options, now)
	if len(snapshots) > 0 {
		newest := snapshots[len(snapshots)-1] // sorted, and the numbers have one width
		if _, err := fmt.Sscanf(filepath.Base(newest), "snapshot-%d", &j.gen); err != nil {
			return nil, fmt.Errorf("name of %s: %w", newest, err)
		}
		b, err := os.ReadFile(newest)
		if err != nil {
			return nil, err
		}
		if t, err = tree.Load(options, now, b); err != nil {
			return nil, err
		}
	}
	return t, j.redo(t)
}

// redo replays the journal of the generation. A record that is cut short at the
// end is one that nobody was told of.
func (j *journal) redo(t *tree.Tree) error {
	b, err := os.ReadFile(j.path("journal", j.gen))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for len(b) >= 8 {
		n, sum := int(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:])
		if n > len(b)-8 {
			return nil
		}
		body := b[8 : 8+n]
		if crc32.ChecksumIEEE(body) != sum {
			return errors.New("journal is damaged: a checksum does not fit")
		}
		var e tree.Entry
		d := jute.NewDecoderLimit(body, math.MaxInt32)
		e.Decode(d)
		if d.Err() != nil {
			return fmt.Errorf("journal is damaged: %w", d.Err())
		}
		if err := t.Redo(e, decodeBytes); err != nil {
			return err
		}
		b = b[8+n:]
	}
	return nil
}

func decodeBytes(op jute.OpCode, b []byte) jute.Record {
	return decode(op, jute.NewDecoderLimit(b, math.MaxInt32))
}

// compact begins a new generation with a snapshot of the tree.
func (j *journal) compact(t *tree.Tree) error {
	var e jute.Encoder
	t.Save(&e)
	next := j.gen + 1
	file, err := os.OpenFile(j.path("journal", next), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	temporary := j.path("writing", next)
	err = os.WriteFile(temporary, e.Bytes(), 0o640)
	if err == nil {
		err = os.Rename(temporary, j.path("snapshot", next))
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	old, oldGen := j.file, j.gen
	j.file, j.gen, j.size = file, next, 0
	if old != nil {
		err = old.Close()
	}
	for _, kind := range []string{"snapshot", "journal"} {
		if e := os.Remove(j.path(kind, oldGen)); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// keep writes a transition down. Server.mu is held. A failure takes the server
// down, before anybody is told of what is not kept.
func (s *Server) keep(e tree.Entry) {
	j := s.journal
	if j == nil || j.err != nil {
		return
	}
	j.buf = append(j.buf[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	x := jute.NewEncoder(j.buf)
	e.Encode(x)
	j.buf = x.Bytes()
	binary.BigEndian.PutUint32(j.buf, uint32(len(j.buf)-8))
	binary.BigEndian.PutUint32(j.buf[4:], crc32.ChecksumIEEE(j.buf[8:]))
	_, j.err = j.file.Write(j.buf)
	j.size += len(j.buf)
	s.checkJournal()
}

// checkJournal stops the server if its state can no longer be kept.
func (s *Server) checkJournal() {
	if s.journal.err != nil {
		s.log.Error("state cannot be kept, the server stops", zap.Error(s.journal.err))
		_ = s.hangUpAll() // Close gives the reason
	}
}

// keepRequest writes a client's transaction down.
func (s *Server) keepRequest(c *conn, op jute.OpCode, txn tree.Txn, auth []jute.ID, body []byte) {
	j := s.journal
	if j == nil || txn.Zxid == 0 {
		return
	}
	s.keep(tree.Entry{
		Kind: tree.EntryRequest, Now: txn.Time, Session: c.session, Auth: auth, Op: op, Body: body, Zxid: txn.Zxid,
	})
	// Here the state and the journal agree; inside an expiry of many they do not.
	if j.err == nil && j.size > j.limit {
		j.err = j.compact(s.tree)
		s.checkJournal()
	}
}

// close ends the journal and gives its first failure.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	err := j.file.Close()
	if j.err != nil {
		return fmt.Errorf("keep state in %s: %w", j.dir, j.err)
	}
	return err
}
