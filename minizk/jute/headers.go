package jute

// ConnectRequest is the first frame of a connection. SessionID 0 asks for a new
// session, any other with its password for that one. TimeOut is in
// milliseconds. Old clients leave ReadOnly out: HasReadOnly tells.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	TimeOut         int32
	SessionID       int64
	Passwd          []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Encode writes the record.
func (r *ConnectRequest) Encode(e *Encoder) {
	e.Int32(r.ProtocolVersion)
	e.Int64(r.LastZxidSeen)
	e.Int32(r.TimeOut)
	e.Int64(r.SessionID)
	e.Buffer(r.Passwd)
	if r.HasReadOnly {
		e.Bool(r.ReadOnly)
	}
}

// Decode reads the record.
func (r *ConnectRequest) Decode(d *Decoder) {
	r.ProtocolVersion = d.Int32()
	r.LastZxidSeen = d.Int64()
	r.TimeOut = d.Int32()
	r.SessionID = d.Int64()
	r.Passwd = d.Buffer()
	r.HasReadOnly = d.Err() == nil && d.Left() > 0
	if r.HasReadOnly {
		r.ReadOnly = d.Bool()
	}
}

// ConnectResponse answers a ConnectRequest. TimeOut 0 with SessionID 0 says
// that the session is no more. ReadOnly is sent to those clients that sent it.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeOut         int32
	SessionID       int64
	Passwd          []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Encode writes the record.
func (r *ConnectResponse) Encode(e *Encoder) {
	e.Int32(r.ProtocolVersion)
	e.Int32(r.TimeOut)
	e.Int64(r.SessionID)
	e.Buffer(r.Passwd)
	if r.HasReadOnly {
		e.Bool(r.ReadOnly)
	}
}

// Decode reads the record.
func (r *ConnectResponse) Decode(d *Decoder) {
	r.ProtocolVersion = d.Int32()
	r.TimeOut = d.Int32()
	r.SessionID = d.Int64()
	r.Passwd = d.Buffer()
	r.HasReadOnly = d.Err() == nil && d.Left() > 0
	if r.HasReadOnly {
		r.ReadOnly = d.Bool()
	}
}

// RequestHeader begins every frame of a client after the first.
type RequestHeader struct {
	Xid int32
	Op  OpCode
}

// Encode writes the record.
func (r *RequestHeader) Encode(e *Encoder) {
	e.Int32(r.Xid)
	e.Int32(int32(r.Op))
}

// Decode reads the record.
func (r *RequestHeader) Decode(d *Decoder) {
	r.Xid = d.Int32()
	r.Op = OpCode(d.Int32())
}

// ReplyHeader begins every frame of the server after the first. Zxid is the
// transaction's for a write, the last one applied for a read. No record
// follows when Err is not OK, except for multi.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Err  Code
}

// Encode writes the record.
func (r *ReplyHeader) Encode(e *Encoder) {
	e.Int32(r.Xid)
	e.Int64(r.Zxid)
	e.Int32(int32(r.Err))
}

// Decode reads the record.
func (r *ReplyHeader) Decode(d *Decoder) {
	r.Xid = d.Int32()
	r.Zxid = d.Int64()
	r.Err = Code(d.Int32())
}

// AuthPacket adds an identity to a connection.
type AuthPacket struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// Encode writes the record.
func (r *AuthPacket) Encode(e *Encoder) {
	e.Int32(r.Type)
	e.String(r.Scheme)
	e.Buffer(r.Auth)
}

// Decode reads the record.
func (r *AuthPacket) Decode(d *Decoder) {
	r.Type = d.Int32()
	r.Scheme = d.String()
	r.Auth = d.Buffer()
}

// WatcherEvent tells a client what one of its watches saw.
type WatcherEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Encode writes the record.
func (r *WatcherEvent) Encode(e *Encoder) {
	e.Int32(int32(r.Type))
	e.Int32(r.State)
	e.String(r.Path)
}

// Decode reads the record.
func (r *WatcherEvent) Decode(d *Decoder) {
	r.Type = EventType(d.Int32())
	r.State = d.Int32()
	r.Path = d.String()
}
