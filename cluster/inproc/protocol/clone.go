package protocol

import (
	"slices"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// Only pointers are messages: one form a type keeps the receivers' type
// switches exhaustive. Each Clone copies every slice by hand, because copying by
// reflection costs ten times as much (and the switch copies every message
// twice); the reflection test proves that nothing is shared.

// The names of messages, as gates, triggers and events know them. A reply has
// the request's name followed by "Reply".
const (
	APINotifyLeaderAndIsr = "NotifyLeaderAndIsr"
	APIUpdateMetadata     = "UpdateMetadata"
	APIStopReplica        = "StopReplica"
	APIAdjustIsr          = "AdjustIsr"
	APIControlledShutdown = "ControlledShutdown"
	APIMoveLeader         = "MoveLeader"
	APIGetMetadata        = "GetMetadata"
	APICreateTable        = "CreateTable"
	APIDropTable          = "DropTable"
	APICreatePartition    = "CreatePartition"
	APIDropPartition      = "DropPartition"
	APIInitWriter         = "InitWriter"
	APIPutKv              = "PutKv"
	APILookup             = "Lookup"
	APIProduceLog         = "ProduceLog"
	APIFetchLog           = "FetchLog"
	APIListOffsets        = "ListOffsets"
	APIProbe              = "Probe"
	APIWriteReply         = "WriteReply" // answers PutKv and ProduceLog
	APICodeReply          = "CodeReply"  // answers UpdateMetadata, StopReplica and DDL
)

// clonePart copies a slice whose elements hold slices themselves.
func clonePart[T any](in []T, f func(T) T) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i := range in {
		out[i] = f(in[i])
	}
	return out
}

// cloneBytes copies many byte slices into one allocation; nil stays nil.
func cloneBytes(in [][]byte) [][]byte {
	if in == nil {
		return nil
	}
	size := 0
	for _, b := range in {
		size += len(b)
	}
	arena := make([]byte, 0, size)
	out := make([][]byte, len(in))
	for i, b := range in {
		if b != nil {
			at := len(arena)
			arena = append(arena, b...)
			out[i] = arena[at:len(arena):len(arena)]
		}
	}
	return out
}

// CloneRecords copies records and their values, the values into one allocation.
func CloneRecords(in []LogRecord) []LogRecord {
	if in == nil {
		return nil
	}
	size := 0
	for i := range in {
		size += len(in[i].Value)
	}
	arena := make([]byte, 0, size)
	out := make([]LogRecord, len(in))
	copy(out, in)
	for i := range out {
		if v := out[i].Value; v != nil {
			at := len(arena)
			arena = append(arena, v...)
			out[i].Value = arena[at:len(arena):len(arena)]
		}
	}
	return out
}

func cloneBucketMetadata(b BucketMetadata) BucketMetadata {
	b.Replicas = slices.Clone(b.Replicas)
	return b
}

// API names the message.
func (m *NotifyLeaderAndIsr) API() string { return APINotifyLeaderAndIsr }

// Clone shares nothing with m.
func (m *NotifyLeaderAndIsr) Clone() host.Message {
	c := *m
	c.Buckets = clonePart(m.Buckets, func(b BucketState) BucketState {
		b.Replicas = slices.Clone(b.Replicas)
		b.LAI = b.LAI.Clone()
		return b
	})
	return &c
}

// API names the message.
func (m *NotifyLeaderAndIsrReply) API() string { return APINotifyLeaderAndIsr + "Reply" }

// Clone shares nothing with m.
func (m *NotifyLeaderAndIsrReply) Clone() host.Message {
	c := *m
	c.Buckets = slices.Clone(m.Buckets)
	return &c
}

// API names the message.
func (m *UpdateMetadata) API() string { return APIUpdateMetadata }

// Clone shares nothing with m.
func (m *UpdateMetadata) Clone() host.Message {
	c := *m
	c.Tablets = slices.Clone(m.Tablets)
	c.Tables = slices.Clone(m.Tables)
	c.Buckets = clonePart(m.Buckets, cloneBucketMetadata)
	c.Deleted = slices.Clone(m.Deleted)
	c.DeletedTables = slices.Clone(m.DeletedTables)
	return &c
}

// API names the message.
func (m *StopReplica) API() string { return APIStopReplica }

// Clone shares nothing with m.
func (m *StopReplica) Clone() host.Message {
	c := *m
	c.Buckets = slices.Clone(m.Buckets)
	return &c
}

// API names the message.
func (m *CodeReply) API() string { return APICodeReply }

// Clone shares nothing with m.
func (m *CodeReply) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *AdjustIsr) API() string { return APIAdjustIsr }

// Clone shares nothing with m.
func (m *AdjustIsr) Clone() host.Message {
	c := *m
	c.Buckets = clonePart(m.Buckets, func(b IsrProposal) IsrProposal {
		b.NewISR = slices.Clone(b.NewISR)
		return b
	})
	return &c
}

// API names the message.
func (m *AdjustIsrReply) API() string { return APIAdjustIsr + "Reply" }

// Clone shares nothing with m.
func (m *AdjustIsrReply) Clone() host.Message {
	c := *m
	c.Buckets = clonePart(m.Buckets, func(b IsrResult) IsrResult {
		b.LAI = b.LAI.Clone()
		return b
	})
	return &c
}

// API names the message.
func (m *ControlledShutdown) API() string { return APIControlledShutdown }

// Clone shares nothing with m.
func (m *ControlledShutdown) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *MoveLeader) API() string { return APIMoveLeader }

// Clone shares nothing with m.
func (m *MoveLeader) Clone() host.Message { c := *m; return &c }

// API names the message.
func (m *ControlledShutdownReply) API() string { return APIControlledShutdown + "Reply" }

// Clone shares nothing with m.
func (m *ControlledShutdownReply) Clone() host.Message {
	c := *m
	c.Remaining = slices.Clone(m.Remaining)
	return &c
}

// API names the message.
func (m *GetMetadata) API() string { return APIGetMetadata }

// Clone shares nothing with m.
func (m *GetMetadata) Clone() host.Message {
	c := *m
	c.Tables = slices.Clone(m.Tables)
	return &c
}

// API names the message.
func (m *GetMetadataReply) API() string { return APIGetMetadata + "Reply" }

// Clone shares nothing with m.
func (m *GetMetadataReply) Clone() host.Message {
	c := *m
	c.Tablets = slices.Clone(m.Tablets)
	c.Tables = slices.Clone(m.Tables)
	c.Buckets = clonePart(m.Buckets, cloneBucketMetadata)
	return &c
}
