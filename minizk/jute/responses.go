package jute

// StatResponse answers exists, setData and setACL.
type StatResponse struct{ Stat Stat }

// Encode writes the record.
func (r *StatResponse) Encode(e *Encoder) { r.Stat.Encode(e) }

// Decode reads the record.
func (r *StatResponse) Decode(d *Decoder) { r.Stat.Decode(d) }

// PathResponse answers create (the name given) and sync.
type PathResponse struct{ Path string }

// Encode writes the record.
func (r *PathResponse) Encode(e *Encoder) { e.String(r.Path) }

// Decode reads the record.
func (r *PathResponse) Decode(d *Decoder) { r.Path = d.String() }

// Create2Response answers create2, createContainer and createTTL.
type Create2Response struct {
	Path string
	Stat Stat
}

// Encode writes the record.
func (r *Create2Response) Encode(e *Encoder) {
	e.String(r.Path)
	r.Stat.Encode(e)
}

// Decode reads the record.
func (r *Create2Response) Decode(d *Decoder) {
	r.Path = d.String()
	r.Stat.Decode(d)
}

// GetDataResponse answers getData.
type GetDataResponse struct {
	Data []byte
	Stat Stat
}

// Encode writes the record.
func (r *GetDataResponse) Encode(e *Encoder) {
	e.Buffer(r.Data)
	r.Stat.Encode(e)
}

// Decode reads the record.
func (r *GetDataResponse) Decode(d *Decoder) {
	r.Data = d.Buffer()
	r.Stat.Decode(d)
}

// GetACLResponse answers getACL.
type GetACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Encode writes the record.
func (r *GetACLResponse) Encode(e *Encoder) {
	EncodeACLs(e, r.ACL)
	r.Stat.Encode(e)
}

// Decode reads the record.
func (r *GetACLResponse) Decode(d *Decoder) {
	r.ACL = DecodeACLs(d)
	r.Stat.Decode(d)
}

// ChildrenResponse answers getChildren. The real server's order is that of a
// hash table; ours is by name.
type ChildrenResponse struct{ Children []string }

// Encode writes the record.
func (r *ChildrenResponse) Encode(e *Encoder) { e.Strings(r.Children) }

// Decode reads the record.
func (r *ChildrenResponse) Decode(d *Decoder) { r.Children = d.Strings() }

// Children2Response answers getChildren2.
type Children2Response struct {
	Children []string
	Stat     Stat
}

// Encode writes the record.
func (r *Children2Response) Encode(e *Encoder) {
	e.Strings(r.Children)
	r.Stat.Encode(e)
}

// Decode reads the record.
func (r *Children2Response) Decode(d *Decoder) {
	r.Children = d.Strings()
	r.Stat.Decode(d)
}

// NumberResponse answers getAllChildrenNumber.
type NumberResponse struct{ Number int32 }

// Encode writes the record.
func (r *NumberResponse) Encode(e *Encoder) { e.Int32(r.Number) }

// Decode reads the record.
func (r *NumberResponse) Decode(d *Decoder) { r.Number = d.Int32() }

// EphemeralsResponse answers getEphemerals.
type EphemeralsResponse struct{ Ephemerals []string }

// Encode writes the record.
func (r *EphemeralsResponse) Encode(e *Encoder) { e.Strings(r.Ephemerals) }

// Decode reads the record.
func (r *EphemeralsResponse) Decode(d *Decoder) { r.Ephemerals = d.Strings() }

// ClientInfo is one identity of a connection: its scheme and user.
type ClientInfo struct{ Scheme, User string }

// WhoAmIResponse answers whoAmI.
type WhoAmIResponse struct{ Clients []ClientInfo }

// Encode writes the record.
func (r *WhoAmIResponse) Encode(e *Encoder) {
	e.Int32(int32(len(r.Clients)))
	for _, c := range r.Clients {
		e.String(c.Scheme)
		e.String(c.User)
	}
}

// Decode reads the record.
func (r *WhoAmIResponse) Decode(d *Decoder) {
	n := d.Count(8)
	if n < 0 {
		r.Clients = nil
		return
	}
	r.Clients = make([]ClientInfo, 0, n)
	for range n {
		r.Clients = append(r.Clients, ClientInfo{Scheme: d.String(), User: d.String()})
	}
}

// ErrorResponse is the result of an operation of a multi that was not done.
type ErrorResponse struct{ Err Code }

// Encode writes the record.
func (r *ErrorResponse) Encode(e *Encoder) { e.Int32(int32(r.Err)) }

// Decode reads the record.
func (r *ErrorResponse) Decode(d *Decoder) { r.Err = Code(d.Int32()) }

// NewResponse returns an empty record to decode the answer to that operation
// into; NoBody where a header says it all.
func NewResponse(op OpCode) Record {
	switch op {
	case OpCreate, OpSync:
		return &PathResponse{}
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return &Create2Response{}
	case OpExists, OpSetData, OpSetACL:
		return &StatResponse{}
	case OpGetData, OpReconfig:
		return &GetDataResponse{}
	case OpGetACL:
		return &GetACLResponse{}
	case OpGetChildren:
		return &ChildrenResponse{}
	case OpGetChildren2:
		return &Children2Response{}
	case OpGetAllChildrenNumber:
		return &NumberResponse{}
	case OpGetEphemerals:
		return &EphemeralsResponse{}
	case OpWhoAmI:
		return &WhoAmIResponse{}
	case OpMulti, OpMultiRead:
		return &MultiResponse{}
	case OpError, OpAddWatch:
		return &ErrorResponse{}
	case OpSASL:
		return &SASLRequest{}
	case OpNotification:
		return &WatcherEvent{}
	case OpDelete, OpDeleteContainer, OpCheck, OpPing, OpAuth, OpSetWatches, OpSetWatches2,
		OpCheckWatches, OpRemoveWatches, OpCreateSession, OpCloseSession:
		return &NoBody{}
	default:
		return &NoBody{}
	}
}
