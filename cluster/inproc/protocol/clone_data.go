package protocol

import (
	"slices"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// API names the message.
func (m *CreateTable) API() string { return APICreateTable }

// Clone shares nothing with m.
func (m *CreateTable) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *DropTable) API() string { return APIDropTable }

// Clone shares nothing with m.
func (m *DropTable) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *CreatePartition) API() string { return APICreatePartition }

// Clone shares nothing with m.
func (m *CreatePartition) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *DropPartition) API() string { return APIDropPartition }

// Clone shares nothing with m.
func (m *DropPartition) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *InitWriter) API() string { return APIInitWriter }

// Clone shares nothing with m.
func (m *InitWriter) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *InitWriterReply) API() string { return APIInitWriter + "Reply" }

// Clone shares nothing with m.
func (m *InitWriterReply) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *PutKv) API() string { return APIPutKv }

// Clone shares nothing with m.
func (m *PutKv) Clone() host.Message {
	c := *m
	c.Rows = clonePart(m.Rows, func(r Row) Row {
		r.Value = slices.Clone(r.Value)
		return r
	})
	return &c
}

// API names the message.
func (m *WriteReply) API() string { return APIWriteReply }

// Clone shares nothing with m.
func (m *WriteReply) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *Lookup) API() string { return APILookup }

// Clone shares nothing with m.
func (m *Lookup) Clone() host.Message {
	c := *m
	c.Keys = slices.Clone(m.Keys)
	return &c
}

// API names the message.
func (m *LookupReply) API() string { return APILookup + "Reply" }

// Clone shares nothing with m.
func (m *LookupReply) Clone() host.Message {
	c := *m
	c.Values = cloneBytes(m.Values)
	return &c
}

// API names the message.
func (m *ProduceLog) API() string { return APIProduceLog }

// Clone shares nothing with m.
func (m *ProduceLog) Clone() host.Message {
	c := *m
	c.Records = cloneBytes(m.Records)
	return &c
}

// API names the message.
func (m *FetchLog) API() string { return APIFetchLog }

// Clone shares nothing with m.
func (m *FetchLog) Clone() host.Message {
	c := *m
	c.Buckets = slices.Clone(m.Buckets)
	return &c
}

// API names the message.
func (m *FetchLogReply) API() string { return APIFetchLog + "Reply" }

// Clone shares nothing with m.
func (m *FetchLogReply) Clone() host.Message {
	c := *m
	c.Buckets = clonePart(m.Buckets, func(b FetchedBucket) FetchedBucket {
		b.Records = CloneRecords(b.Records)
		return b
	})
	return &c
}

// API names the message.
func (m *ListOffsets) API() string { return APIListOffsets }

// Clone shares nothing with m.
func (m *ListOffsets) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *ListOffsetsReply) API() string { return APIListOffsets + "Reply" }

// Clone shares nothing with m.
func (m *ListOffsetsReply) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *Probe) API() string { return APIProbe }

// Clone shares nothing with m.
func (m *Probe) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *ProbeReply) API() string { return APIProbe + "Reply" }

// Clone shares nothing with m.
func (m *ProbeReply) Clone() host.Message {
	c := *m
	c.Replicas = clonePart(m.Replicas, func(r ReplicaState) ReplicaState {
		r.ISR = slices.Clone(r.ISR)
		return r
	})
	c.Metadata = clonePart(m.Metadata, cloneBucketMetadata)
	return &c
}
