package tablet

import (
	"context"
	"time"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// request is who asks for what, for refusals.
type request struct {
	client  string
	process int
	api     string
	id      cluster.BucketID
	epoch   int // the leader epoch that the client went by
}

// refuse reports a refusal and returns its code.
func (s *server) refuse(q *request, code protocol.Code) protocol.Code {
	s.observe(history.Refused{
		Bucket: string(q.id), Server: s.cfg.Server, Client: q.client, API: apiName(q.api), Code: int(code),
		ClientEpoch: q.epoch, ServerEpoch: s.epochOf(q.id), Process: q.process,
	})
	return code
}

// apiName is the API's name in refusals.
func apiName(api string) string {
	switch api {
	case protocol.APIPutKv, protocol.APIProduceLog:
		return "put"
	case protocol.APILookup:
		return "lookup"
	case protocol.APIFetchLog, protocol.APIListOffsets:
		return "fetch"
	default:
		return api
	}
}

func (s *server) epochOf(id cluster.BucketID) int {
	if r := s.replicas[id]; r != nil {
		return r.leaderEpoch
	}
	return unknownEpoch
}

// leading finds the leadership that is to serve a request. A bucket that waits
// for its restore refuses at once, as one that does not lead does; one that is
// being restored blocks its callers until it is done or their time is up (p). It
// returns a leadership that serves: writes once the table is restored, reads once
// it is admitted.
func (s *server) leading(ctx context.Context, q *request, deadline time.Duration, reads bool) (*leadership, protocol.Code) {
	r := s.replicas[q.id]
	if r == nil {
		return nil, s.refuse(q, protocol.CodeUnknownTableOrBucket)
	}
	l := r.lead
	if l == nil || l.stage == queued || l.stage == failed {
		return nil, s.refuse(q, protocol.CodeNotLeaderOrFollower)
	}
	if l.serves(reads) {
		return l, protocol.CodeNone
	}
	if deadline <= s.h.Now() {
		return nil, protocol.CodeRequestTimedOut
	}
	ctx, cancel := s.h.WithTimeout(ctx, deadline-s.h.Now())
	defer cancel()
	for !l.over && l.stage != failed {
		if l.serves(reads) {
			return l, protocol.CodeNone
		}
		if l.changed.Wait(ctx) != nil {
			return nil, protocol.CodeRequestTimedOut
		}
	}
	return nil, s.refuse(q, protocol.CodeNotLeaderOrFollower)
}

func (l *leadership) serves(reads bool) bool { return l.stage == restored && (l.admitted || !reads) }
