package jute

// ID is an identity: a scheme (world, digest, ip, …) and a name within it.
type ID struct{ Scheme, ID string }

// ACL gives permissions to an identity.
type ACL struct {
	Perms int32
	ID    ID
}

// OpenACL lets anyone do anything: what clients send by default.
func OpenACL() []ACL { return []ACL{{Perms: PermAll, ID: ID{Scheme: "world", ID: "anyone"}}} }

// EncodeACLs writes a list of ACLs; nil is written as null.
func EncodeACLs(e *Encoder, list []ACL) {
	if list == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(list)))
	for i := range list {
		e.Int32(list[i].Perms)
		e.String(list[i].ID.Scheme)
		e.String(list[i].ID.ID)
	}
}

// DecodeACLs reads a list of ACLs; null gives nil.
func DecodeACLs(d *Decoder) []ACL {
	n := d.Count(12)
	if n < 0 {
		return nil
	}
	list := make([]ACL, 0, n)
	for range n {
		list = append(list, ACL{Perms: d.Int32(), ID: ID{Scheme: d.String(), ID: d.String()}})
	}
	if d.Err() != nil {
		return nil
	}
	return list
}

// Stat is a node's metadata as clients see it. Times are in milliseconds since
// 1970.
type Stat struct {
	Czxid, Mzxid                int64
	Ctime, Mtime                int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Encode writes the record.
func (s *Stat) Encode(e *Encoder) {
	e.Int64(s.Czxid)
	e.Int64(s.Mzxid)
	e.Int64(s.Ctime)
	e.Int64(s.Mtime)
	e.Int32(s.Version)
	e.Int32(s.Cversion)
	e.Int32(s.Aversion)
	e.Int64(s.EphemeralOwner)
	e.Int32(s.DataLength)
	e.Int32(s.NumChildren)
	e.Int64(s.Pzxid)
}

// Decode reads the record.
func (s *Stat) Decode(d *Decoder) {
	s.Czxid = d.Int64()
	s.Mzxid = d.Int64()
	s.Ctime = d.Int64()
	s.Mtime = d.Int64()
	s.Version = d.Int32()
	s.Cversion = d.Int32()
	s.Aversion = d.Int32()
	s.EphemeralOwner = d.Int64()
	s.DataLength = d.Int32()
	s.NumChildren = d.Int32()
	s.Pzxid = d.Int64()
}
