package jute

import (
	"errors"
	"fmt"
)

// MultiOp is one operation of a multi (create in all its forms, delete,
// setData, check) or of a multi-read (getData, getChildren).
type MultiOp struct {
	Op      OpCode
	Request Record
}

// MultiRequest is a list of operations done all or none (multi) or read at one
// moment (multiRead).
type MultiRequest struct{ Ops []MultiOp }

// Encode writes the record: a header before each operation, and one that says
// done.
func (r *MultiRequest) Encode(e *Encoder) {
	for _, o := range r.Ops {
		encodeMultiHeader(e, o.Op, false, -1)
		o.Request.Encode(e)
	}
	encodeMultiHeader(e, OpError, true, -1)
}

// Decode reads the record. As in the real server, transactions and reads do
// not mix, flags must be known ones, and the flags of a create may change the
// operation that it becomes.
func (r *MultiRequest) Decode(d *Decoder) {
	r.Ops = nil
	for {
		op, done, _ := decodeMultiHeader(d)
		if d.Err() != nil || done {
			return
		}
		if !op.InMulti() && !op.InMultiRead() {
			d.Fail(fmt.Errorf("invalid type of op in a multi: %d", int32(op)))
			return
		}
		req := NewRequest(op)
		req.Decode(d)
		if c, ok := req.(*CreateRequest); ok && d.Err() == nil {
			var err error
			if op, err = createInMulti(op, c); err != nil {
				d.Fail(err)
				return
			}
		}
		if len(r.Ops) > 0 && r.Ops[0].Op.InMulti() != op.InMulti() {
			d.Fail(errMixed)
			return
		}
		r.Ops = append(r.Ops, MultiOp{Op: op, Request: req})
	}
}

// ErrNullACL says that a create in a multi has no list of ACLs at all. The real
// server stumbles over it before it has taken a zxid for the multi.
var ErrNullACL = errors.New("create in a multi without an ACL")

var errMixed = errors.New("mixing different kinds of ops in a multi")

// createInMulti gives the operation that a create in a multi becomes: a
// container by its flag, and a createTTL without a TTL flag a plain create.
func createInMulti(op OpCode, c *CreateRequest) (OpCode, error) {
	ttl := c.Flags == FlagPersistentTTL || c.Flags == FlagPersistentSequentialTTL
	if op != OpCreateTTL {
		known := c.Flags >= FlagPersistent && c.Flags <= FlagPersistentSequentialTTL
		if known && c.ACL == nil {
			return 0, ErrNullACL
		}
		if !known || ttl {
			return 0, fmt.Errorf("invalid flag %d of a create in a multi", c.Flags)
		}
	} else if !ttl {
		op = OpCreate
		c.HasTTL, c.TTL = false, 0
	}
	if c.Flags == FlagContainer {
		op = OpCreateContainer
	}
	return op, nil
}

// InMulti reports whether the operation may stand in a multi.
func (o OpCode) InMulti() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateTTL, OpCreateContainer, OpDelete, OpSetData, OpCheck:
		return true
	default:
		return false
	}
}

// InMultiRead reports whether the operation may stand in a multiRead.
func (o OpCode) InMultiRead() bool { return o == OpGetData || o == OpGetChildren }

// MultiResult is the answer to one operation of a multi. Err is OK, or the
// code in an ErrorResponse; Op is then OpError.
type MultiResult struct {
	Op       OpCode
	Err      Code
	Response Record
}

// MultiResponse answers multi and multiRead: one result an operation.
type MultiResponse struct{ Results []MultiResult }

// Encode writes the record.
func (r *MultiResponse) Encode(e *Encoder) {
	for _, res := range r.Results {
		encodeMultiHeader(e, res.Op, false, int32(res.Err))
		res.Response.Encode(e)
	}
	encodeMultiHeader(e, OpError, true, -1)
}

// Decode reads the record.
func (r *MultiResponse) Decode(d *Decoder) {
	r.Results = nil
	for {
		op, done, err := decodeMultiHeader(d)
		if d.Err() != nil || done {
			return
		}
		res := MultiResult{Op: op, Err: Code(err), Response: NewResponse(op)}
		res.Response.Decode(d)
		r.Results = append(r.Results, res)
	}
}

func encodeMultiHeader(e *Encoder, op OpCode, done bool, err int32) {
	e.Int32(int32(op))
	e.Bool(done)
	e.Int32(err)
}

func decodeMultiHeader(d *Decoder) (op OpCode, done bool, err int32) {
	return OpCode(d.Int32()), d.Bool(), d.Int32()
}
