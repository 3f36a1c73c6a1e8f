package jute

// PathRequest is a request that is a path alone: getACL, sync,
// getAllChildrenNumber, getEphemerals (the path is a prefix), deleteContainer.
type PathRequest struct{ Path string }

// Encode writes the record.
func (r *PathRequest) Encode(e *Encoder) { e.String(r.Path) }

// Decode reads the record.
func (r *PathRequest) Decode(d *Decoder) { r.Path = d.String() }

// PathWatchRequest is a read that may leave a watch: exists, getData,
// getChildren, getChildren2.
type PathWatchRequest struct {
	Path  string
	Watch bool
}

// Encode writes the record.
func (r *PathWatchRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Bool(r.Watch)
}

// Decode reads the record.
func (r *PathWatchRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Watch = d.Bool()
}

// PathVersionRequest is a path with the version it must have, -1 for any:
// delete and check.
type PathVersionRequest struct {
	Path    string
	Version int32
}

// Encode writes the record.
func (r *PathVersionRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int32(r.Version)
}

// Decode reads the record.
func (r *PathVersionRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Version = d.Int32()
}

// CreateRequest makes a node: create, create2, createContainer, and with a TTL
// (milliseconds) createTTL. HasTTL chooses the longer form.
type CreateRequest struct {
	Path   string
	Data   []byte
	ACL    []ACL
	Flags  int32
	TTL    int64
	HasTTL bool
}

// Encode writes the record.
func (r *CreateRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Buffer(r.Data)
	EncodeACLs(e, r.ACL)
	e.Int32(r.Flags)
	if r.HasTTL {
		e.Int64(r.TTL)
	}
}

// Decode reads the record; HasTTL must be set before.
func (r *CreateRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Data = d.Buffer()
	r.ACL = DecodeACLs(d)
	r.Flags = d.Int32()
	if r.HasTTL {
		r.TTL = d.Int64()
	}
}

// SetDataRequest writes a node's data if its version fits.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Encode writes the record.
func (r *SetDataRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Buffer(r.Data)
	e.Int32(r.Version)
}

// Decode reads the record.
func (r *SetDataRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Data = d.Buffer()
	r.Version = d.Int32()
}

// SetACLRequest writes a node's ACL if its ACL version fits.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Encode writes the record.
func (r *SetACLRequest) Encode(e *Encoder) {
	e.String(r.Path)
	EncodeACLs(e, r.ACL)
	e.Int32(r.Version)
}

// Decode reads the record.
func (r *SetACLRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.ACL = DecodeACLs(d)
	r.Version = d.Int32()
}

// PathTypeRequest is a path with a number: checkWatches and removeWatches (the
// watcher type), addWatch (the mode).
type PathTypeRequest struct {
	Path string
	Type int32
}

// Encode writes the record.
func (r *PathTypeRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int32(r.Type)
}

// Decode reads the record.
func (r *PathTypeRequest) Decode(d *Decoder) {
	r.Path = d.String()
	r.Type = d.Int32()
}

// SetWatchesRequest re-arms the watches of a client that has reconnected. The
// two persistent lists exist in setWatches2 only; Two chooses that form.
type SetWatchesRequest struct {
	RelativeZxid                    int64
	Data, Exist, Child              []string
	Persistent, PersistentRecursive []string
	Two                             bool
}

// Encode writes the record.
func (r *SetWatchesRequest) Encode(e *Encoder) {
	e.Int64(r.RelativeZxid)
	e.Strings(r.Data)
	e.Strings(r.Exist)
	e.Strings(r.Child)
	if r.Two {
		e.Strings(r.Persistent)
		e.Strings(r.PersistentRecursive)
	}
}

// Decode reads the record; Two must be set before.
func (r *SetWatchesRequest) Decode(d *Decoder) {
	r.RelativeZxid = d.Int64()
	r.Data = d.Strings()
	r.Exist = d.Strings()
	r.Child = d.Strings()
	if r.Two {
		r.Persistent = d.Strings()
		r.PersistentRecursive = d.Strings()
	}
}

// ReconfigRequest changes an ensemble's membership. It is here so that the
// request can be told from rubbish; a standalone server refuses it.
type ReconfigRequest struct {
	Joining, Leaving, NewMembers string
	CurConfigID                  int64
}

// Encode writes the record.
func (r *ReconfigRequest) Encode(e *Encoder) {
	e.String(r.Joining)
	e.String(r.Leaving)
	e.String(r.NewMembers)
	e.Int64(r.CurConfigID)
}

// Decode reads the record.
func (r *ReconfigRequest) Decode(d *Decoder) {
	r.Joining = d.String()
	r.Leaving = d.String()
	r.NewMembers = d.String()
	r.CurConfigID = d.Int64()
}

// SASLRequest carries a token of a SASL exchange, and its answer.
type SASLRequest struct{ Token []byte }

// Encode writes the record.
func (r *SASLRequest) Encode(e *Encoder) { e.Buffer(r.Token) }

// Decode reads the record.
func (r *SASLRequest) Decode(d *Decoder) { r.Token = d.Buffer() }

// NoBody is a request or response without fields: ping, closeSession, whoAmI's
// request, the answers to delete and check.
type NoBody struct{}

// Encode writes nothing.
func (*NoBody) Encode(*Encoder) {}

// Decode reads nothing.
func (*NoBody) Decode(*Decoder) {}

// NewRequest returns an empty record to decode a request of that operation
// into, or nil for an operation that clients cannot send.
func NewRequest(op OpCode) Record {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return &CreateRequest{}
	case OpCreateTTL:
		return &CreateRequest{HasTTL: true}
	case OpDelete, OpCheck:
		return &PathVersionRequest{}
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return &PathWatchRequest{}
	case OpSetData:
		return &SetDataRequest{}
	case OpGetACL, OpSync, OpGetAllChildrenNumber, OpGetEphemerals, OpDeleteContainer:
		return &PathRequest{}
	case OpSetACL:
		return &SetACLRequest{}
	case OpMulti, OpMultiRead:
		return &MultiRequest{}
	case OpReconfig:
		return &ReconfigRequest{}
	case OpCheckWatches, OpRemoveWatches, OpAddWatch:
		return &PathTypeRequest{}
	case OpAuth:
		return &AuthPacket{}
	case OpSASL:
		return &SASLRequest{}
	case OpSetWatches:
		return &SetWatchesRequest{}
	case OpSetWatches2:
		return &SetWatchesRequest{Two: true}
	case OpPing, OpCloseSession, OpWhoAmI:
		return &NoBody{}
	case OpNotification, OpCreateSession, OpError:
		return nil
	default:
		return nil
	}
}

// Paths are the paths that a request reads or writes, in its own order.
func Paths(r Record) []string {
	switch r := r.(type) {
	case *PathRequest:
		return []string{r.Path}
	case *PathWatchRequest:
		return []string{r.Path}
	case *PathVersionRequest:
		return []string{r.Path}
	case *PathTypeRequest:
		return []string{r.Path}
	case *CreateRequest:
		return []string{r.Path}
	case *SetDataRequest:
		return []string{r.Path}
	case *SetACLRequest:
		return []string{r.Path}
	case *MultiRequest:
		paths := make([]string, 0, len(r.Ops))
		for _, o := range r.Ops {
			paths = append(paths, Paths(o.Request)...)
		}
		return paths
	default:
		return nil
	}
}
