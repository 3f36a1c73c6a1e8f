// Package tablet is the in-process tablet server: the replicas of buckets, their
// logs and tables, replication, and the metadata that clients ask for. It is
// modelled on Apache Fluss, and follows rules S1 to S10 of the protocol, each of
// which is a field of protocol.TabletPolicy.
//
// It is node code: straight-line code against one host.Host. Its tasks interleave
// only inside Host calls, so everything between two of them is atomic, and that
// is relied upon throughout. Comments say "no park" where it matters most.
//
//	register.go   the ZooKeeper session and the registration
//	control.go    what coordinators order: roles, replicas to give up
//	metadata.go   the cache that answers clients, apart from the replicas
//	replica.go    one replica: its log, role, high watermark
//	lead.go       leadership: followers, maximal ISR, waiting writes and reads
//	activate.go   the restore of tables, one after the other
//	serve_*.go    the clients' requests
//	fetch.go      answers to fetches; follow.go sends them
//	isr.go        proposals of new ISRs
//	flush.go      log files, by group commit; store.go the small files; snapshot.go
package tablet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// Config is what a tablet server is made with.
type Config struct {
	// Server is the integer id; the node is named tablet-<id>.
	Server int
	Policy protocol.TabletPolicy
	// SessionTimeout is that of the ZooKeeper session.
	SessionTimeout time.Duration
	// Knobs are the lengths of recoveries; nil means none.
	Knobs *Knobs
	// SnapshotRecords is how many records a KV tablet's changelog must have grown by
	// for a new snapshot; 0 takes 1,000.
	SnapshotRecords int
	// Timing has the other durations; zero fields take DefaultTiming's.
	Timing Timing
}

// Knobs are the lengths of recoveries, which the harness turns while the server
// runs. Each is read when a recovery begins.
type Knobs struct {
	// PerBucket is the extra time of a KV tablet's restore, inside activation.
	PerBucket host.Knob
	// PerRecord adds to it for every record of the changelog above the snapshot.
	PerRecord host.Knob
	// Log is the extra time of a server's log recovery, before it registers.
	Log host.Knob
}

// Timing has the durations that a server works by.
type Timing struct {
	// MaxLag is how long a follower may stay behind before it is put out of the
	// ISR; twice as often followers are looked at.
	MaxLag time.Duration
	// FetchWait is how long a follower's fetch is parked, FetchTimeout how long its
	// answer is waited for, FetchBackOff the first pause after a failure; pauses
	// double, up to maxBackOff times the first.
	FetchWait, FetchTimeout, FetchBackOff time.Duration
	// HWDelay is how long news of the high watermark alone waits for company.
	HWDelay time.Duration
	// HWEvents is the least time between two hw events of a replica.
	HWEvents time.Duration
	// AdjustTimeout bounds an AdjustIsr, AdjustBackOff is the first pause after a
	// failure.
	AdjustTimeout, AdjustBackOff time.Duration
	// Checkpoint is how often high watermarks are written down.
	Checkpoint time.Duration
	// Snapshot is how often tables are looked at for a snapshot.
	Snapshot time.Duration
	// Expiry is how often the deadlines of waiting requests are looked at.
	Expiry time.Duration
	// Retry is the pause between tries of what ZooKeeper or a disk refused.
	Retry time.Duration
	// ReadWait bounds requests that name no time-out of their own.
	ReadWait time.Duration
}

// maxBackOff is how many times its first pause a growing back-off may become.
const maxBackOff = 20

// maxPatience is how many times its first length a time-out may become behind
// slow links.
const maxPatience = 8

// grown is the pause after the given one.
func grown(pause, first time.Duration) time.Duration {
	return min(max(2*pause, first), maxBackOff*first)
}

// DefaultTiming suits clusters whose links take under some milliseconds.
func DefaultTiming() Timing {
	return Timing{
		MaxLag:    2 * time.Second,
		FetchWait: 500 * time.Millisecond, FetchTimeout: 2 * time.Second, FetchBackOff: 10 * time.Millisecond,
		HWDelay: 5 * time.Millisecond, HWEvents: 20 * time.Millisecond,
		AdjustTimeout: time.Second, AdjustBackOff: 20 * time.Millisecond,
		Checkpoint: time.Second, Snapshot: 10 * time.Second, Expiry: 50 * time.Millisecond, Retry: 100 * time.Millisecond,
		ReadWait: 2 * time.Second,
	}
}

func (t Timing) withDefaults() Timing {
	d := DefaultTiming()
	fill := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&t.MaxLag, d.MaxLag)
	fill(&t.FetchWait, d.FetchWait)
	fill(&t.FetchTimeout, d.FetchTimeout)
	fill(&t.FetchBackOff, d.FetchBackOff)
	fill(&t.HWDelay, d.HWDelay)
	fill(&t.HWEvents, d.HWEvents)
	fill(&t.AdjustTimeout, d.AdjustTimeout)
	fill(&t.AdjustBackOff, d.AdjustBackOff)
	fill(&t.Checkpoint, d.Checkpoint)
	fill(&t.Snapshot, d.Snapshot)
	fill(&t.Expiry, d.Expiry)
	fill(&t.Retry, d.Retry)
	fill(&t.ReadWait, d.ReadWait)
	return t
}

// NodeOf is the node of a tablet server's id, by the naming convention.
func NodeOf(server int) cluster.NodeID { return cluster.NodeID("tablet-" + strconv.Itoa(server)) }

// New is the program of a tablet server. It reads its disk, recovers its logs,
// serves, registers in ZooKeeper, and stays until it is stopped or killed.
func New(cfg Config) host.Main {
	return func(ctx context.Context, h host.Host) {
		s := newServer(cfg, h)
		if err := s.load(ctx); err != nil {
			h.Exit(fmt.Errorf("load disk of tablet %d: %w", cfg.Server, err))
		}
		h.Serve(s.handle)
		h.Go(ctx, "session", s.keepSession)
		h.Go(ctx, "activation", s.activateAll)
		h.Go(ctx, "isr", s.adjustISRs)
		h.Go(ctx, "checkpoint", s.checkpointHWs)
		h.Go(ctx, "snapshots", s.takeSnapshots)
		s.stopInGoodOrder(ctx)
	}
}

// server is one incarnation of one tablet server's process.
type server struct {
	cfg    Config
	policy protocol.TabletPolicy
	timing Timing
	h      host.Host
	log    *zap.Logger
	ctx    context.Context //nolint:containedctx // the incarnation's root, for tasks that outlive a request

	// The registration. Incarnation is the czxid of the last one.
	session     host.Session
	registered  bool
	incarnation int64
	changed     host.Cond // registration, roles, admissions

	// What coordinators ordered.
	control     *host.Mutex         // held while an order is decided and written down, never during an activation
	coordEpoch  int64               // the highest processed, on disk
	coordinator protocol.ServerNode // who is in office, as far as known,
	metEpoch    int64               // since this coordinator epoch
	lastTerm    protocol.TermRef
	replicas    map[cluster.BucketID]*replica
	order       []*replica // sorted by bucket
	tombstones  map[cluster.BucketID]int
	meta        metadata

	activation *host.Queue[*leadership]
	fetchers   map[int]*fetcher
	peers      map[int]*peer
	isr        isrProposer

	sweeping    bool // a task watches the deadlines of waiting requests
	hwReporting bool // a task will report high watermarks
}

func newServer(cfg Config, h host.Host) *server {
	if cfg.Knobs == nil {
		cfg.Knobs = &Knobs{}
	}
	if cfg.SnapshotRecords == 0 {
		cfg.SnapshotRecords = 1000
	}
	s := &server{
		cfg: cfg, policy: cfg.Policy, timing: cfg.Timing.withDefaults(), h: h, ctx: h.Context(),
		log:        h.Log().Named("tablet"),
		changed:    h.NewCond(),
		control:    host.NewMutex(h),
		replicas:   map[cluster.BucketID]*replica{},
		tombstones: map[cluster.BucketID]int{},
		meta:       newMetadata(),
		activation: host.NewQueue[*leadership](h),
		fetchers:   map[int]*fetcher{},
		peers:      map[int]*peer{},
	}
	s.isr.cond, s.isr.patience = h.NewCond(), s.timing.AdjustTimeout
	return s
}

// handle answers one call; each is a task of its own.
func (s *server) handle(ctx context.Context, from cluster.NodeID, m host.Message) (host.Message, error) {
	if s.policy.ServeOnceRegistered && s.incarnation == 0 && isClients(m) {
		// Metadata may still name the former life of this process as a leader. To
		// clients this one is not there yet: a connection that is refused is no
		// answer that sends them back to the metadata.
		return nil, host.ErrUnreachable
	}
	switch m := m.(type) {
	case *protocol.PutKv:
		return s.putKv(ctx, m), nil
	case *protocol.FetchLog:
		if m.Follower >= 0 {
			return s.fetchForFollower(ctx, m), nil
		}
		return s.fetchForClient(ctx, m), nil
	case *protocol.Lookup:
		return s.lookup(ctx, m), nil
	case *protocol.ProduceLog:
		return s.produceLog(ctx, m), nil
	case *protocol.ListOffsets:
		return s.listOffsets(ctx, m), nil
	case *protocol.GetMetadata:
		return s.meta.answer(m), nil
	case *protocol.NotifyLeaderAndIsr:
		return s.notifyLeaderAndIsr(ctx, from, m), nil
	case *protocol.UpdateMetadata:
		return s.updateMetadata(ctx, m), nil
	case *protocol.StopReplica:
		return s.stopReplica(ctx, m), nil
	case *protocol.InitWriter:
		return s.initWriter(ctx), nil
	case *protocol.Probe:
		return s.probe(), nil
	default:
		return nil, cluster.Definite(fmt.Errorf("serve %s: tablets do not", m.API()))
	}
}

// isClients reports whether a request is one that clients send.
func isClients(m host.Message) bool {
	switch m := m.(type) {
	case *protocol.PutKv, *protocol.Lookup, *protocol.ProduceLog, *protocol.ListOffsets, *protocol.GetMetadata, *protocol.InitWriter:
		return true
	case *protocol.FetchLog:
		return m.Follower < 0
	default:
		return false
	}
}

// initWriter passes the request on to the coordinator, which counts in
// ZooKeeper: writer ids are unique in the cluster for good.
func (s *server) initWriter(ctx context.Context) *protocol.InitWriterReply {
	to := s.coordinator.Node
	if to == "" {
		return &protocol.InitWriterReply{Code: protocol.CodeNotCoordinatorLeader}
	}
	ctx, cancel := s.h.WithTimeout(ctx, s.timing.ReadWait)
	defer cancel()
	answer, err := s.h.Call(ctx, to, &protocol.InitWriter{})
	if reply, ok := answer.(*protocol.InitWriterReply); ok && err == nil {
		return reply
	}
	return &protocol.InitWriterReply{Code: protocol.CodeNetwork}
}

// stopInGoodOrder waits for a graceful stop: it has leaderships moved away,
// brings the disk up to date, and gives the registration back.
func (s *server) stopInGoodOrder(ctx context.Context) {
	if s.h.AwaitStop(ctx) != nil {
		return
	}
	for range 3 {
		if s.handOver(ctx) {
			break
		}
		if s.h.Sleep(ctx, s.timing.ReadWait/4) != nil {
			return
		}
	}
	for _, r := range s.order {
		for !r.file.settled(r) && !r.file.stuck {
			if r.file.cond.Wait(ctx) != nil {
				return
			}
		}
	}
	s.writeHWs(ctx)
	if s.session != nil {
		if err := s.session.Close(ctx); err != nil {
			s.log.Info("close session", zap.Error(err))
		}
	}
	s.h.Exit(nil)
}

// handOver asks the coordinator to move leaderships away, and reports whether
// none is left.
func (s *server) handOver(ctx context.Context) bool {
	if s.coordinator.Node == "" {
		return true
	}
	ctx, cancel := s.h.WithTimeout(ctx, s.timing.ReadWait)
	defer cancel()
	m := &protocol.ControlledShutdown{Server: s.cfg.Server, Incarnation: s.incarnation}
	answer, err := s.h.Call(ctx, s.coordinator.Node, m)
	reply, ok := answer.(*protocol.ControlledShutdownReply)
	return err == nil && ok && reply.Code == protocol.CodeNone && len(reply.Remaining) == 0
}

func (s *server) observe(e history.Event) { s.h.Observe(e) }
