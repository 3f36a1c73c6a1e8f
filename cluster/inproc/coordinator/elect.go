package coordinator

import (
	"slices"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// noServer is a server id that no server has.
const noServer = -1

// view is what elections know of servers.
type view struct {
	live    func(server int) bool // registered
	leaving func(server int) bool // registered, and about to stop
	epoch   int64                 // of the coordinator
}

// first is the first LAI of a bucket: every live replica is in sync with a log
// that is empty. False if no replica lives.
func first(replicas []int, v view) (protocol.LeaderAndIsr, bool) {
	lai := protocol.LeaderAndIsr{Leader: noServer, CoordinatorEpoch: v.epoch}
	for _, r := range replicas {
		if !v.live(r) {
			continue
		}
		if lai.Leader == noServer {
			lai.Leader = r
		}
		lai.ISR = append(lai.ISR, r)
	}
	return lai, lai.Leader != noServer
}

// elect is the next LAI with a new leader, at a higher leader epoch: the first
// replica by preference that lives and is in the ISR; one to avoid, or about to
// stop, only if there is no other. Preferred, if it is a candidate, comes first.
//
// The new ISR is what lives of the old one. Each of its members holds, synced,
// all that was acknowledged, because the high watermark counts every member of
// the maximal ISR, which includes the committed one (rules S2 to S4). Without a
// candidate the ISR stays as it is, whoever of it returns first may lead, and the
// higher epoch alone fences the old leader.
func elect(replicas []int, old protocol.LeaderAndIsr, v view, avoid, preferred int) protocol.LeaderAndIsr {
	next := protocol.LeaderAndIsr{
		Leader: protocol.NoLeader, LeaderEpoch: old.LeaderEpoch + 1, BucketEpoch: old.BucketEpoch + 1,
		CoordinatorEpoch: v.epoch, ISR: slices.Clone(old.ISR),
	}
	rank := func(server int) int {
		switch {
		case server == preferred:
			return 0
		case v.leaving(server):
			return 3
		case server == avoid:
			return 2
		default:
			return 1
		}
	}
	best := -1
	for _, r := range replicas {
		if v.live(r) && slices.Contains(old.ISR, r) && (best < 0 || rank(r) < best) {
			best, next.Leader = rank(r), r
		}
	}
	if next.Leader != protocol.NoLeader {
		next.ISR = slices.DeleteFunc(next.ISR, func(s int) bool {
			return s != next.Leader && (!v.live(s) || v.leaving(s))
		})
	}
	return next
}

// shrink is the next LAI without the servers of the ISR that are dead or about
// to stop, under the same leader; false if there are none. The leader stays.
func shrink(old protocol.LeaderAndIsr, v view) (protocol.LeaderAndIsr, bool) {
	next := old.Clone()
	next.ISR = slices.DeleteFunc(next.ISR, func(s int) bool {
		return s != old.Leader && (!v.live(s) || v.leaving(s))
	})
	next.BucketEpoch++
	next.CoordinatorEpoch = v.epoch
	return next, len(next.ISR) < len(old.ISR)
}

// plan is what a bucket needs after servers came or went: its first LAI, an
// election, a smaller ISR, or nothing. Restarted says that its leader is another
// incarnation than the one that was elected, which never leads on (rule S1).
func plan(b *bucket, v view, restarted bool) (next protocol.LeaderAndIsr, change bool) {
	switch b.state() {
	case bucketNew:
		return first(b.replicas, v)
	case bucketOffline:
		next = elect(b.replicas, b.lai, v, noServer, noServer)
		return next, next.Leader != protocol.NoLeader
	default:
		if restarted || !v.live(b.lai.Leader) {
			return elect(b.replicas, b.lai, v, noServer, noServer), true
		}
		return shrink(b.lai, v)
	}
}

// checkProposal says whether an AdjustIsr may be accepted (as Fluss checks it, and
// rule S9): from the present leader's present incarnation, at the same leader
// epoch and the same bucket epoch, with the leader and only live replicas in it.
// Compare is dropped by a bug: then neither bucket epoch nor age counts.
func checkProposal(b *bucket, from tabletKey, p protocol.IsrProposal, v view, compare bool) protocol.Code {
	lai := b.lai
	switch {
	case b.state() == bucketNew:
		return protocol.CodeUnknownTableOrBucket
	case p.LeaderEpoch > lai.LeaderEpoch || p.CoordinatorEpoch > v.epoch || (compare && p.BucketEpoch > lai.BucketEpoch):
		return protocol.CodeInvalidCoordinator
	case p.LeaderEpoch < lai.LeaderEpoch || from.server != lai.Leader || from.incarnation != b.act.key.incarnation:
		return protocol.CodeFencedLeaderEpoch
	case compare && p.BucketEpoch < lai.BucketEpoch:
		return protocol.CodeInvalidUpdateVersion
	case compare && p.CoordinatorEpoch != lai.CoordinatorEpoch:
		return protocol.CodeInvalidCoordinator // not the LAI that is known here
	case !slices.Contains(p.NewISR, lai.Leader):
		return protocol.CodeIneligibleReplica
	}
	for _, s := range p.NewISR {
		switch {
		case !slices.Contains(b.replicas, s):
			return protocol.CodeFencedLeaderEpoch
		case s != lai.Leader && (!v.live(s) || v.leaving(s)):
			return protocol.CodeIneligibleReplica
		}
	}
	return protocol.CodeNone
}

// accepted is the LAI that a proposal makes.
func accepted(old protocol.LeaderAndIsr, p protocol.IsrProposal, epoch int64) protocol.LeaderAndIsr {
	next := old.Clone()
	next.ISR = slices.Compact(slices.Sorted(slices.Values(p.NewISR)))
	next.BucketEpoch++
	next.CoordinatorEpoch = epoch
	return next
}

// tabletKey is one incarnation of a tablet.
type tabletKey struct {
	server      int
	incarnation int64
}
