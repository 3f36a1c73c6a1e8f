package minizk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

const (
	// readBuffer is what a connection holds while nothing comes: with ten thousand
	// of them it counts.
	readBuffer = 2048
	// greetWithin is how long a connection may stay without a session.
	greetWithin = 10 * time.Second
	// keepFrame is the largest frame buffer that a connection keeps.
	keepFrame = 16 << 10
)

// conn is one connection.
type conn struct {
	srv     *Server
	id      tree.Conn
	raw     net.Conn
	ip      string
	in      *bufio.Reader
	frame   []byte
	since   time.Time
	session int64 // guarded by srv.mu
	traffic traffic

	mu      sync.Mutex
	queue   []chunk
	writing bool          // somebody is at it, and will look again
	ending  bool          // close when all is written
	killed  bool          // nothing is written any more
	stalled chan struct{} // closed when the stall ends; nil if there is none
	timer   *time.Timer   // of the first chunk
}

// chunk is bytes to be written from a time on. The zero time means at once.
type chunk struct {
	due   time.Time
	bytes []byte
}

func newConn(s *Server, id tree.Conn, raw net.Conn, ip string) *conn {
	return &conn{srv: s, id: id, raw: raw, ip: ip, in: bufio.NewReaderSize(raw, readBuffer), since: time.Now()}
}

// serve reads until the connection ends.
func (c *conn) serve() {
	defer c.srv.forget(c)
	defer c.kill()
	err := c.readAll()
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, errDone) {
		c.srv.log.Debug("connection ends", zap.Int64("conn", int64(c.id)), zap.Error(err))
	}
	c.drain()
}

// readAll takes one frame after the other until an error ends it. The replies to frames that came
// together leave together.
func (c *conn) readAll() error {
	if err := c.raw.SetReadDeadline(time.Now().Add(greetWithin)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	greeted := false
	for {
		frame, err := c.next(!greeted)
		if err != nil {
			return err
		}
		if err := c.awaitStall(); err != nil {
			return err
		}
		if !greeted {
			greeted = true
			if err := c.srv.greet(c, frame); err != nil {
				return err
			}
			if err := c.raw.SetReadDeadline(time.Time{}); err != nil {
				return fmt.Errorf("set deadline: %w", err)
			}
		} else if err := c.srv.request(c, frame); err != nil {
			return err
		}
		if c.in.Buffered() == 0 {
			c.flush()
		}
	}
}

// errDone ends a connection that has said what it came for.
var errDone = errors.New("done")

// next reads a frame. Instead of the first one a four-letter word may come.
func (c *conn) next(first bool) ([]byte, error) {
	head, err := c.in.Peek(4)
	if err != nil {
		return nil, err //nolint:wrapcheck // io.EOF must stay bare
	}
	if first && c.srv.word(c, string(head)) {
		return nil, errDone
	}
	frame, err := jute.ReadFrame(c.in, c.frame, c.srv.cfg.MaxFrame)
	if err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	if cap(frame) <= keepFrame {
		c.frame = frame[:0]
	}
	return frame, nil
}

// put queues bytes; the caller holds srv.mu, which orders them. Append writes
// a frame to the end of a buffer.
func (c *conn) put(due time.Time, appendTo func([]byte) []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed || c.ending {
		return
	}
	n := len(c.queue)
	if n > 0 && c.queue[n-1].due.After(due) {
		due = c.queue[n-1].due // nothing overtakes what is delayed
	}
	if n == 0 || !c.queue[n-1].due.Equal(due) {
		c.queue = append(c.queue, chunk{due: due, bytes: getBuffer()})
		n++
	}
	c.queue[n-1].bytes = appendTo(c.queue[n-1].bytes)
}

// flush writes what is due, unless somebody is writing already: that one looks
// again before it stops.
func (c *conn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing {
		return
	}
	c.writing = true
	defer func() { c.writing = false }()
	for !c.killed && c.stalled == nil {
		if len(c.queue) == 0 {
			if c.ending {
				c.close()
			}
			return
		}
		first := c.queue[0]
		if wait := time.Until(first.due); !first.due.IsZero() && wait > 0 {
			c.later(wait)
			return
		}
		c.queue = c.queue[1:]
		if len(c.queue) == 0 {
			c.queue = nil
		}
		c.mu.Unlock()
		_, err := c.raw.Write(first.bytes)
		putBuffer(first.bytes)
		c.mu.Lock()
		if err != nil {
			c.close()
			return
		}
	}
}

// later has the queue looked at again. C.mu is held.
func (c *conn) later(wait time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.flush)
		return
	}
	c.timer.Reset(wait)
}

// kick has another goroutine write. Srv.mu is held.
func (c *conn) kick() {
	if !c.srv.closed {
		c.srv.wg.Go(c.flush)
	}
}

// closeAfter closes when all that is queued has been written. Srv.mu is held.
func (c *conn) closeAfter() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.kick()
}

// kill closes at once.
func (c *conn) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
}

// close ends the stream. C.mu is held.
func (c *conn) close() {
	if c.killed {
		return
	}
	c.killed = true
	c.queue = nil
	if c.timer != nil {
		c.timer.Stop()
	}
	c.unstall()
	_ = c.raw.Close() // nobody is left to be told
}

// drain waits for what is still to be written before the reader's end closes
// the connection: the reply that told the client that it is over.
func (c *conn) drain() {
	c.mu.Lock()
	ending := c.ending && !c.killed
	c.mu.Unlock()
	if !ending {
		return
	}
	c.flush()
	// The client hangs up, or the writer closes; both end the read.
	if err := c.raw.SetReadDeadline(time.Now().Add(greetWithin)); err == nil {
		_, _ = io.Copy(io.Discard, c.raw)
	}
}

// stall freezes the connection both ways.
func (c *conn) stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stalled == nil && !c.killed {
		c.stalled = make(chan struct{})
	}
}

// unstall lets it go on. C.mu is held.
func (c *conn) unstall() {
	if c.stalled != nil {
		close(c.stalled)
		c.stalled = nil
	}
}

func (c *conn) goOn() {
	c.mu.Lock()
	c.unstall()
	c.mu.Unlock()
	c.kick()
}

// awaitStall blocks the reader while the connection is stalled.
func (c *conn) awaitStall() error {
	for {
		c.mu.Lock()
		stalled, killed := c.stalled, c.killed
		c.mu.Unlock()
		if killed {
			return net.ErrClosed
		}
		if stalled == nil {
			return nil
		}
		<-stalled
	}
}
