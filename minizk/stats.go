package minizk

import (
	"github.com/fencepost-dev/fencepost/minizk/jute"
	"github.com/fencepost-dev/fencepost/minizk/tree"
)

// stats count packets of the whole server. Guarded by Server.mu.
type stats struct{ received, sent int64 }

// traffic is what cons shows of a connection. Guarded by Server.mu.
type traffic struct {
	received, sent int64
	lastOp         jute.OpCode
	lastXid        int32
	lastZxid       int64
}

func (t *traffic) last(h jute.RequestHeader, rep tree.Reply) {
	t.lastOp, t.lastXid, t.lastZxid = h.Op, h.Xid, rep.Header.Zxid
}
