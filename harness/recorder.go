package harness

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/history"
)

// HistoryFile is the history's name in a run's directory.
const HistoryFile = "history.jsonl"

// Recorder is the one place that makes history: it numbers and stamps every
// line, keeps it in memory and writes it to disk. It is safe for use by all
// nodes at once; times never go back because they are taken under its lock.
type Recorder struct {
	mu    sync.Mutex
	clock func() time.Duration // nil until the run begins
	last  time.Duration
	count int
	// chunks hold the lines; growing one slice would copy a million of them over
	// and over while every node waits for the lock.
	chunks [][]history.Op
	file   sink // nil: memory only
	// unwritten holds whole lines that the operating system has not got yet.
	unwritten []byte
	written   int64 // bytes of the file, whole lines only
	err       error
	closed    bool
	listeners map[string][]*listener // by the kind of event
}

// sink is what the recorder needs of a file.
type sink interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Close() error
}

type listener struct {
	kind string
	f    func(op history.Op)
}

// NewRecorder creates the history file in dir; with an empty dir the history
// stays in memory. An existing file is refused: nothing is overwritten.
func NewRecorder(dir string) (*Recorder, error) {
	r := &Recorder{listeners: map[string][]*listener{}}
	if dir == "" {
		return r, nil
	}
	file, err := os.OpenFile(dir+"/"+HistoryFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create history: %w", err)
	}
	r.file = file
	return r, nil
}

// Begin gives the recorder the run's clock: the control node's, so that the
// lines of clients and the events of nodes stand on one axis.
func (r *Recorder) Begin(clock func() time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = clock
}

// Observe is the sink for what nodes report; a world takes it as its Observe.
// At is the world's time of the event. It never parks.
func (r *Recorder) Observe(node cluster.NodeID, at time.Duration, event history.Event) {
	op, err := history.NewEvent(string(node), event)
	if err != nil {
		op = history.Op{
			Process: history.Observer, Type: history.Info, F: history.KindHarness, Node: string(node),
			Value: []byte(`{"problem":"task","detail":"an event has no JSON form","process":-1}`), Error: err.Error(),
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	op = r.add(op, at)
	for _, l := range r.listeners[op.F] {
		l.f(op)
	}
}

// Event records an event of the harness itself, now.
func (r *Recorder) Event(event history.Event) { r.Observe("", 0, event) }

// Append stamps an operation with the present time and its index and returns
// it as recorded.
func (r *Recorder) Append(op history.Op) history.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(op, 0)
}

// add is called with the lock held. A time before the last line's is moved up
// to it. The clock is read under the lock too, so the stamp of an invocation is
// never later than its dispatch, nor that of a completion earlier than its
// arrival.
func (r *Recorder) add(op history.Op, at time.Duration) history.Op {
	if at == 0 && r.clock != nil {
		at = r.clock()
	}
	r.last = max(r.last, at)
	op.Time, op.Index = r.last, r.count
	if r.closed {
		return op
	}
	r.keep(op)
	if r.file == nil || r.err != nil {
		return op
	}
	line, err := history.AppendJSON(r.unwritten, op)
	if err != nil {
		r.fail(err)
		return op
	}
	r.unwritten = append(line, '\n')
	if len(r.unwritten) >= 1<<16 {
		r.write()
	}
	return op
}

const chunkOps = 4096

func (r *Recorder) keep(op history.Op) {
	n := len(r.chunks)
	if n == 0 || len(r.chunks[n-1]) == chunkOps {
		r.chunks = append(r.chunks, make([]history.Op, 0, chunkOps))
		n++
	}
	r.chunks[n-1] = append(r.chunks[n-1], op)
	r.count++
}

// write hands the lines to the operating system. After a failure nothing more
// is written and a half-written line is cut off, so that the file stays a
// prefix of the history that can be judged.
func (r *Recorder) write() {
	if r.file == nil || r.err != nil || len(r.unwritten) == 0 {
		return
	}
	if _, err := r.file.Write(r.unwritten); err != nil {
		r.fail(err)
		return
	}
	r.written += int64(len(r.unwritten))
	r.unwritten = r.unwritten[:0]
}

func (r *Recorder) fail(err error) {
	r.err = fmt.Errorf("write history: %w", err)
	if cut := r.file.Truncate(r.written); cut != nil {
		r.err = errors.Join(r.err, fmt.Errorf("cut history to its last whole line: %w", cut))
	}
	r.unwritten = nil
}

// Flush hands everything recorded so far to the operating system, so that a
// SIGKILL of the harness loses nothing.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write()
	return r.err
}

// Err is the first failure to write, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// On calls f for every event of a kind from now on, in the order of the
// history, until off is called. F runs under the recorder's lock on whatever
// goroutine reports: it must not park, block, or call the recorder.
func (r *Recorder) On(kind string, f func(op history.Op)) (off func()) {
	l := &listener{kind: kind, f: f}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners[kind] = append(r.listeners[kind], l)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		// A new slice: the old one may be under iteration by this very goroutine.
		var rest []*listener
		for _, x := range r.listeners[kind] {
			if x != l {
				rest = append(rest, x)
			}
		}
		r.listeners[kind] = rest
	}
}

// Ops gives a copy of what was recorded so far.
func (r *Recorder) Ops() []history.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.chunks...)
}

// Close writes the rest and closes the file; whatever is reported later is
// dropped. It may be called more than once; a failure is told the first time.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.write()
	r.closed = true
	if r.file != nil {
		if err := r.file.Close(); err != nil && r.err == nil {
			r.err = fmt.Errorf("close history: %w", err)
		}
	}
	return r.err
}
