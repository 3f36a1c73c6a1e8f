package jute

import "fmt"

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

// Decode reads the record.
func (r *MultiRequest) Decode(d *Decoder) {
	r.Ops = nil
	for {
		op, done, _ := decodeMultiHeader(d)
		if d.Err() != nil || done {
			return
		}
		if !allowedInMulti(op) {
			d.Fail(fmt.Errorf("invalid type of op in a multi: %d", int32(op)))
			return
		}
		req := NewRequest(op)
		req.Decode(d)
		r.Ops = append(r.Ops, MultiOp{Op: op, Request: req})
	}
}

func allowedInMulti(op OpCode) bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateTTL, OpCreateContainer, OpDelete, OpSetData, OpCheck,
		OpGetData, OpGetChildren:
		return true
	default:
		return false
	}
}

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
