package minizk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// greet answers a connect request. An error ends the connection.
func (s *Server) greet(c *conn, frame []byte) error {
	var req jute.ConnectRequest
	if err := jute.Unmarshal(frame, &req); err != nil {
		return fmt.Errorf("decode connect request: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.id] != c || s.listener == nil {
		return ErrClosed
	}
	now := s.clock.millis()
	res := s.tree.Connect(now, c.id, c.ip, &req)
	if old := s.conns[res.Displaced]; old != nil && old != c {
		old.closeAfter()
	}
	if res.Refused {
		return errors.New("client has seen a zxid that is not reached here")
	}
	if res.OK {
		c.session = res.Response.SessionID
		kind := tree.EntryResume
		if res.Txn.Zxid != 0 {
			kind = tree.EntryOpen
		}
		s.keep(tree.Entry{
			Kind: kind, Now: now, Session: c.session, Timeout: int64(res.Response.TimeOut), Zxid: s.tree.Zxid(),
		})
		s.log.Debug("session established", zap.Int64("session", c.session), zap.Int64("conn", int64(c.id)),
			zap.Bool("new", res.Txn.Zxid != 0))
	}
	c.put(time.Time{}, func(b []byte) []byte { return jute.AppendFrame(b, &res.Response) })
	s.stall(c)
	if !res.OK {
		c.closeAfter()
		return errDone
	}
	return nil
}

// request carries out one frame. An error ends the connection.
func (s *Server) request(c *conn, frame []byte) error {
	d := jute.NewDecoderLimit(frame, 2*s.cfg.MaxFrame)
	var h jute.RequestHeader
	h.Decode(d)
	if d.Err() != nil {
		return fmt.Errorf("decode request header: %w", d.Err())
	}
	body := d.Rest()
	req := decode(h.Op, d)

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.id] != c || s.listener == nil {
		return ErrClosed
	}
	f := s.faultsFor(c, h.Op, req)
	switch {
	case f.closeBefore:
		return errFault
	case f.holdPing:
		return nil
	}
	c.traffic.received++
	s.stats.received++
	rep := s.tree.Do(s.clock.millis(), c.id, h.Xid, h.Op, req)
	s.keepRequest(c, h.Op, rep.Txn, s.tree.Identities(c.id), body)
	c.traffic.last(h, rep)
	s.deliver(rep.Events, c)
	if f.dropReply {
		return errFault
	}
	if !rep.Silent {
		c.traffic.sent++
		s.stats.sent++
		c.put(dueIn(f.delay), func(b []byte) []byte { return appendReply(b, &rep) })
	}
	if rep.Close {
		s.tree.Disconnect(c.id)
		c.closeAfter()
		return errDone
	}
	return nil
}

var errFault = errors.New("connection closed by a fault")

// decode gives the request, or nil if its bytes are not one. As in the real
// server, a null path is not a path.
func decode(op jute.OpCode, d *jute.Decoder) jute.Record {
	req := jute.NewRequest(op)
	if req == nil {
		return nil
	}
	if rest := d.Rest(); beginsWithPath(req) && len(rest) >= 4 && int32(binary.BigEndian.Uint32(rest)) == -1 {
		return nil
	}
	req.Decode(d)
	switch err := d.Err(); {
	case errors.Is(err, jute.ErrNullACL):
		return &tree.NoRecord{}
	case err != nil:
		return nil
	}
	return req
}

func beginsWithPath(req jute.Record) bool {
	switch req.(type) {
	case *jute.PathRequest, *jute.PathWatchRequest, *jute.PathVersionRequest, *jute.PathTypeRequest,
		*jute.CreateRequest, *jute.SetDataRequest, *jute.SetACLRequest:
		return true
	default:
		return false
	}
}

func appendReply(b []byte, rep *tree.Reply) []byte {
	if rep.Body == nil {
		return jute.AppendFrame(b, &rep.Header)
	}
	return jute.AppendFrame(b, &rep.Header, rep.Body)
}

func dueIn(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// deliver puts watch events into the queues of their connections. S.mu is held.
// The reader of connection own writes what is queued for it anyway.
func (s *Server) deliver(events []tree.Event, own *conn) {
	for _, e := range events {
		c := s.conns[e.Conn]
		if c == nil {
			continue
		}
		c.traffic.sent++
		s.stats.sent++
		c.put(dueIn(s.watchDelay(c, e.Path)), func(b []byte) []byte {
			h := jute.ReplyHeader{Xid: jute.XidNotification, Zxid: e.Zxid}
			return jute.AppendFrame(b, &h, e.Record())
		})
		if c != own {
			c.kick()
		}
	}
}
