package coordinator

import (
	"context"
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// handle answers one call; each is a task of its own. A coordinator that is not
// in office executes nothing and says so (65).
func (c *coordinator) handle(ctx context.Context, _ cluster.NodeID, m host.Message) (host.Message, error) {
	t := c.term
	_, asks := m.(*protocol.GetMetadata)
	if t == nil && !c.policy.StandbyRefuses && !asks {
		// Who is in office can still be found out by asking for metadata.
		var err error
		if t, err = c.standbyTerm(ctx); err != nil {
			t = nil
		} else {
			defer t.discard()
		}
	}
	if t == nil || (!asks && t.cutOff()) {
		return refuseStandby(m)
	}
	switch m := m.(type) {
	case *protocol.AdjustIsr:
		return t.adjustISR(ctx, m), nil
	case *protocol.GetMetadata:
		return t.answerMetadata(m), nil
	case *protocol.InitWriter:
		return t.initWriter(ctx), nil
	case *protocol.ControlledShutdown:
		return t.controlledShutdown(ctx, m), nil
	case *protocol.MoveLeader:
		return t.moveLeader(ctx, m), nil
	case *protocol.CreateTable:
		return t.createTable(ctx, m.Spec), nil
	case *protocol.DropTable:
		return t.dropTable(ctx, m.Name), nil
	case *protocol.CreatePartition:
		return t.createPartition(ctx, m.Table, m.Partition), nil
	case *protocol.DropPartition:
		return t.dropPartition(ctx, m.Table, m.Partition), nil
	default:
		return nil, unserved(m)
	}
}

// cutOff reports whether nothing can be written now. Such requests are better
// refused at once, as never begun, than left to wait: another coordinator may be
// in office. Without guards they wait, as with a client library that goes on
// trying by itself.
func (t *term) cutOff() bool {
	return t.policy.GuardWrites && t.z.s.State() != host.Connected
}

// refuseStandby is the answer of a coordinator that is not in office.
func refuseStandby(m host.Message) (host.Message, error) {
	const code = protocol.CodeNotCoordinatorLeader
	switch m.(type) {
	case *protocol.AdjustIsr:
		return &protocol.AdjustIsrReply{Code: code}, nil
	case *protocol.GetMetadata:
		return &protocol.GetMetadataReply{Code: code}, nil
	case *protocol.InitWriter:
		return &protocol.InitWriterReply{Code: code}, nil
	case *protocol.ControlledShutdown:
		return &protocol.ControlledShutdownReply{Code: code}, nil
	case *protocol.MoveLeader, *protocol.CreateTable, *protocol.DropTable, *protocol.CreatePartition, *protocol.DropPartition:
		return refuse(code, "not in office"), nil
	default:
		return nil, unserved(m)
	}
}

func unserved(m host.Message) error {
	return cluster.Definite(fmt.Errorf("serve %s: coordinators do not", m.API()))
}
