package inproc

import (
	"context"
	"fmt"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// The named predicates of a healthy cluster.
const (
	everyBucketServes = "every-bucket-serves"
	metadataAgrees    = "metadata-agrees"
	nothingPending    = "nothing-pending"
	isrFull           = "isr-full"
	oneCoordinator    = "one-coordinator"
)

// view is ZooKeeper's truth beside what tablets say of themselves.
type view struct {
	buckets []truth
	probes  map[cluster.NodeID]*protocol.ProbeReply
}

// look takes a view of the tablets named.
func (o *observer) look(ctx context.Context, tablets ...cluster.NodeID) (view, error) {
	s, err := o.zookeeper(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{probes: map[cluster.NodeID]*protocol.ProbeReply{}}
	if v.buckets, err = readBuckets(ctx, s); err != nil {
		return view{}, err
	}
	for _, id := range tablets {
		if v.probes[id], err = o.probe(ctx, id); err != nil {
			return view{}, err
		}
	}
	return v, nil
}

// unserved says which bucket a server leads without serving it, "" if none.
func (v view) unserved(server int) string {
	for _, b := range v.buckets {
		if b.lai.Leader == server {
			if reason := v.serves(b); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// serves says why a bucket is not served by its leader.
func (v view) serves(b truth) string {
	if b.lai.Leader == protocol.NoLeader {
		return fmt.Sprintf("%s has no leader (epoch %d, isr %v)", b.id, b.lai.LeaderEpoch, b.lai.ISR)
	}
	for _, p := range v.probes { // one of them at most is the leader
		if p.Server != b.lai.Leader {
			continue
		}
		for _, r := range p.Replicas {
			if r.Bucket == b.id && r.Leader == b.lai.Leader && r.LeaderEpoch == b.lai.LeaderEpoch && r.Admitted {
				return ""
			}
		}
		return fmt.Sprintf("%s: its leader %d has not admitted epoch %d", b.id, b.lai.Leader, b.lai.LeaderEpoch)
	}
	return fmt.Sprintf("%s: its leader %d is not up", b.id, b.lai.Leader)
}

// Unconverged lists what is not as it should be in a cluster whose faults are
// all healed. An error says that the question could not be asked.
func (c *Cluster) Unconverged(ctx context.Context) ([]cluster.Predicate, error) {
	var found []cluster.Predicate
	add := func(name, reason string) {
		if reason != "" {
			found = append(found, cluster.Predicate{Name: name, Reason: reason})
		}
	}
	add(oneCoordinator, c.obs.oneCoordinator(ctx))
	var up []cluster.NodeID
	for _, info := range c.tablets() {
		if c.Up(info.ID) {
			up = append(up, info.ID)
		}
	}
	v, err := c.obs.look(ctx, up...)
	if err != nil {
		// Who does not answer after the last heal is what is wrong.
		add(everyBucketServes, err.Error())
		return found, ctx.Err()
	}
	for _, b := range v.buckets {
		add(everyBucketServes, v.serves(b))
		add(metadataAgrees, v.disagrees(b, up))
		if len(b.lai.ISR) < len(b.replicas) {
			add(isrFull, fmt.Sprintf("%s has isr %v of replicas %v", b.id, b.lai.ISR, b.replicas))
		}
	}
	add(nothingPending, c.obs.pending(ctx, v))
	return found, ctx.Err()
}

// disagrees says which tablet would tell clients anything but ZooKeeper's word.
func (v view) disagrees(b truth, tablets []cluster.NodeID) string {
	for _, id := range tablets {
		told := protocol.BucketMetadata{Leader: protocol.NoLeader, LeaderEpoch: -1}
		for _, m := range v.probes[id].Metadata {
			if m.Bucket == b.id {
				told = m
			}
		}
		if told.Leader != b.lai.Leader || told.LeaderEpoch != b.lai.LeaderEpoch {
			return fmt.Sprintf("%s: %s tells leader %d epoch %d, ZooKeeper has %d epoch %d",
				b.id, id, told.Leader, told.LeaderEpoch, b.lai.Leader, b.lai.LeaderEpoch)
		}
	}
	return ""
}

// pending says which bucket the coordinator in office still withholds.
func (o *observer) pending(ctx context.Context, v view) string {
	leading := o.inOffice(ctx)
	if len(leading) == 0 {
		return "no coordinator in office"
	}
	m, err := o.metadata(ctx, leading[0])
	if err != nil {
		return err.Error()
	}
	for _, b := range v.buckets {
		for _, told := range m.Buckets {
			if told.Bucket == b.id && told.Leader == protocol.NoLeader && b.lai.Leader != protocol.NoLeader {
				return fmt.Sprintf("%s: the coordinator withholds leader %d epoch %d", b.id, b.lai.Leader, b.lai.LeaderEpoch)
			}
		}
	}
	return ""
}
