package checker

import (
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// cause is why a refusal happened.
type cause uint8

const (
	noLeader cause = iota
	premature
	stale
	lost
)

var causeNames = [...]string{noLeader: "no leader", premature: "premature", stale: "stale", lost: "lost"}

func (c cause) String() string { return causeNames[c] }

// place names a server's leadership of a bucket at a leader epoch.
type place struct {
	bucket string
	server int
	epoch  int
}

// causes follows a history line by line and says of a refusal, at its moment,
// why it happened (section 5 of the protocol, "Refusals and storms").
type causes struct {
	advertised map[place]time.Duration // when first
	newestAd   map[place]int           // epoch 0 in the key: newest leader epoch advertised for (bucket, server)
	admitted   map[place]seating       // the newest admission
	newest     map[string]place        // by bucket: the admission with the highest leader epoch
	restarts   map[int]int             // by server: how often its process ended
	down       map[int]time.Duration   // by server: when last
	session    time.Duration           // how long a session outlives its process, 0 for ever
}

// seating is an admission, with the life of the process that it belonged to.
type seating struct {
	incarnation int64
	life        int
}

func newCauses(session time.Duration) *causes {
	return &causes{
		advertised: map[place]time.Duration{}, newestAd: map[place]int{}, admitted: map[place]seating{},
		newest: map[string]place{}, restarts: map[int]int{}, down: map[int]time.Duration{}, session: session,
	}
}

// see takes an event that is no refusal.
func (c *causes) see(op history.Op) error {
	switch op.F {
	case history.KindAdvertised:
		e, err := history.Decode[history.Advertised](op)
		if err != nil || e.Leader < 0 {
			return err
		}
		p := place{e.Bucket, e.Leader, e.LeaderEpoch}
		if _, known := c.advertised[p]; !known {
			c.advertised[p] = op.Time
		}
		any := place{bucket: e.Bucket, server: e.Leader}
		c.newestAd[any] = max(c.newestAd[any], e.LeaderEpoch)
	case history.KindRole:
		e, err := history.Decode[history.Role](op)
		if err != nil || e.State != history.RoleAdmitted {
			return err
		}
		p := place{e.Bucket, e.Server, e.LeaderEpoch}
		c.admitted[p] = seating{e.Incarnation, c.restarts[e.Server]}
		if best, ok := c.newest[e.Bucket]; !ok || e.LeaderEpoch >= best.epoch {
			c.newest[e.Bucket] = p
		}
	case history.KindNode:
		e, err := history.Decode[history.Node](op)
		if err != nil {
			return err
		}
		server, ok := serverOf(e.Node)
		if ok && (e.State == history.NodeDown || e.State == history.NodePanicked) {
			c.restarts[server]++
			c.down[server] = op.Time
		}
	}
	return nil
}

// of gives a refusal's cause and the leadership that the client meant.
func (c *causes) of(at time.Duration, e history.Refused) (cause, place) {
	p := place{e.Bucket, e.Server, e.ClientEpoch}
	if p.epoch < 0 { // the client does not know epochs: take the newest that it could have been told
		p.epoch = c.newestAd[place{bucket: e.Bucket, server: e.Server}]
	}
	_, advertised := c.advertised[p]
	seat, admitted := c.admitted[p]
	newest, any := c.newest[e.Bucket]
	switch {
	case advertised && !admitted:
		return premature, p
	case any && newest.epoch > p.epoch:
		return stale, p
	case admitted && c.restarts[e.Server] > seat.life && (c.session == 0 || at <= c.down[e.Server]+c.session):
		return lost, p
	default:
		return noLeader, p
	}
}
