package tablet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

// rule is a directed scenario: script says what went wrong, "" if nothing. It
// must be nothing with the sound policy, and something with the bug planted.
type rule struct {
	name   string
	plant  func(p *protocol.TabletPolicy)
	o      options
	script func(b *bench) string
}

func rules() []rule {
	type P = protocol.TabletPolicy
	return []rule{
		{name: "unfenced-rpc", plant: func(p *P) { p.CheckCoordinatorEpoch = false }, script: oldCoordinatorAfterRestart},
		{name: "s1-epoch-in-memory", plant: func(p *P) { p.SyncLeaderEpoch = false }, script: oldOrderAfterRestart},
		{name: "s1-restarted-leader-leads-on", plant: func(p *P) { p.RefuseOldLeadership = false }, script: oldRoleAfterRestart},
		{name: "s2-unsynced-counts", plant: func(p *P) { p.CountSyncedOnly = false }, script: powerLossOfAll},
		{name: "s3-revert-refused-isr", plant: func(p *P) { p.MaximalISR = false }, script: acceptedAndUnanswered},
		{name: "s4-follower-hw-is-its-end", plant: func(p *P) { p.FollowerHWFromLeader = false }, script: tailOfAFollower},
		{name: "s4-min-isr-ignored", plant: func(p *P) { p.HoldBelowMinISR = false }, script: leaderAlone},
		{name: "s4-ends-of-former-epochs", plant: func(p *P) { p.HeardThisEpoch = false }, script: nobodyHeard},
		{name: "s5-join-at-hw", plant: func(p *P) { p.JoinAtEpochStart = false }, script: joinBelowEpochStart},
		{name: "s6-read-before-epoch-start", plant: func(p *P) { p.ServeAfterEpochStart = false }, script: inheritedAndUncommitted},
		{name: "s7-unconfirmed-reads", plant: func(p *P) { p.ConfirmReads = false }, script: deposedLeaderReads},
		{name: "s7-arrival-confirms", plant: func(p *P) { p.EchoConfirms = false }, script: delayedFetches},
		{name: "s7-committed-isr-confirms", plant: func(p *P) { p.ReadsNeedMaximalISR = false }, o: options{size: 4}, script: leaderFromAProposal},
		{name: "s7-bare-counter", plant: func(p *P) { p.TokenNamesLeadership = false }, script: echoOfAFormerLife},
		{name: "s8-truncate-to-hw", plant: func(p *P) { p.TruncateByEpoch = false }, script: staleCheckpoint},
		{name: "s8-unmatched-reply", plant: func(p *P) { p.MatchReply = false }, script: lateDivergence},
		{name: "s10-duplicate-at-once", plant: func(p *P) { p.DuplicateWaits = false }, script: duplicateBeforeHW},
		{name: "s10-dedupe-survives-truncation", plant: func(p *P) { p.DedupeFromLog = false }, script: retryAfterTruncation},
		{name: "not-leader-after-append", plant: func(p *P) { p.LostAfterAppendIsUnknown = false }, script: deposedAfterAppend},
		{name: "fetcher-no-backoff", plant: func(p *P) { p.FetcherBacksOff = false }, script: refusedFetches},
		{name: "repeat-acks-early", plant: func(p *P) { p.AckWhenServing = false }, script: repeatDuringRestore},
		{name: "partial-restore-serves", plant: func(p *P) { p.FailedRestoreFails = false }, script: restoreOnAFailingDisk},
		{name: "serves-before-registration", plant: func(p *P) { p.ServeOnceRegistered = false }, o: options{zookeeper: true}, script: askedBeforeRegistration},
		{name: "late-none-beats-leader", plant: func(p *P) { p.CompareMetadata = false }, script: lateNone},
	}
}

func TestEachRuleMatters(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for seed := range uint64(5) {
				for _, planted := range []bool{false, true} {
					o := r.o
					o.seed = seed
					if planted {
						o.policy = r.plant
					}
					var bad string
					events := run(t, o, func(b *bench) { bad = r.script(b) })
					if bad == "" && len(violations(events)) > 0 {
						bad = fmt.Sprint(violations(events))
					}
					if planted {
						require.NotEmpty(t, bad, "seed %d: the planted bug shows", seed)
					} else {
						require.Empty(t, bad, "seed %d: the sound policy holds", seed)
					}
				}
			}
		})
	}
}

// lead has server 0 lead all.
func (b *bench) lead() {
	b.elect(accounts, 0, b.servers(), b.servers()...)
	b.admitted(accounts)
}

// committedEverywhere waits until all replicas know of hw.
func (b *bench) committedEverywhere(hw int64, servers ...int) {
	b.t.Helper()
	b.until(fmt.Sprint("high watermark ", hw), func() bool {
		for _, s := range servers {
			if b.replica(s, accounts).HW < hw {
				return false
			}
		}
		return true
	})
}

func oldCoordinatorAfterRestart(b *bench) string {
	b.lead()
	b.epoch = 2
	b.elect(accounts, 1, b.servers(), 0, 1, 2)
	b.kill(2)
	b.start(2)
	m := b.order(2, accounts)
	m.CoordinatorEpoch = 1
	m.Buckets[0].LAI.LeaderEpoch = 5
	answer, err := b.send(2, m)
	require.NoError(b.t, err)
	if answer.(*protocol.NotifyLeaderAndIsrReply).Code != protocol.CodeInvalidCoordinator {
		return "an old coordinator was obeyed"
	}
	return ""
}

func oldOrderAfterRestart(b *bench) string {
	b.lead()
	old := b.order(2, accounts)
	b.elect(accounts, 1, b.servers(), 0, 1, 2)
	b.kill(2)
	b.start(2)
	old.Buckets[0].Incarnation = 0
	answer, err := b.send(2, old)
	require.NoError(b.t, err)
	if answer.(*protocol.NotifyLeaderAndIsrReply).Buckets[0].Code != protocol.CodeFencedLeaderEpoch {
		return "an old leader epoch was accepted"
	}
	return ""
}

func oldRoleAfterRestart(b *bench) string {
	b.lead()
	b.kill(0)
	b.start(0)
	if b.notify(0, accounts).Buckets[0].Code != protocol.CodeFencedLeaderEpoch {
		return "a restarted leader leads on"
	}
	return ""
}

func powerLossOfAll(b *bench) string {
	b.lead()
	b.mustPut(0, "k", "v")
	for i := range 3 {
		b.powerLoss(i)
	}
	for i := range 3 {
		b.start(i)
	}
	b.elect(accounts, 1, b.servers(), 0, 1, 2)
	b.admitted(accounts)
	if got, code := b.get(1, "k"); code != protocol.CodeNone || got != "v" {
		return "acknowledged write lost"
	}
	return ""
}

// acceptedAndUnanswered has the coordinator accept that 2 joins, and the answer
// lost; then 2 falls behind, and is elected.
func acceptedAndUnanswered(b *bench) string {
	b.adjust = func(p protocol.IsrProposal) protocol.IsrResult {
		b.compareAndSet(p)
		return protocol.IsrResult{Bucket: p.Bucket, Code: protocol.CodeUnknownServer}
	}
	b.elect(accounts, 0, []int{0, 1}, 0, 1, 2)
	b.until("2 has joined", func() bool { return len(b.lai[accounts].ISR) == 3 })
	b.sleep(100 * time.Millisecond)
	uncut := b.cut("tablet-2", protocol.APIFetchLog)
	acknowledged := b.putAs(0, -1, 0, "k", "v", 500).Code == protocol.CodeNone
	b.kill(0)
	uncut()
	b.elect(accounts, 2, []int{1, 2}, 1, 2)
	b.admitted(accounts)
	if got, _ := b.get(2, "k"); acknowledged && got != "v" {
		return "acknowledged write lost"
	}
	return ""
}

// tailOfAFollower has 1 hold what is not committed, and lose it to 2.
func tailOfAFollower(b *bench) string {
	b.lead()
	b.mustPut(0, "k", "v")
	b.committedEverywhere(1, 0, 1, 2)
	uncut := b.cut("tablet-2", protocol.APIFetchLog)
	b.putAs(0, -1, 0, "k", "tail", 300)
	b.until("1 has the tail", func() bool { return b.replica(1, accounts).LogEnd == 3 })
	uncut()
	b.elect(accounts, 2, b.servers(), 2, 1, 0)
	b.admitted(accounts)
	return ""
}

func leaderAlone(b *bench) string {
	b.elect(accounts, 0, []int{0}, 0)
	b.admitted(accounts)
	if b.put(0, "k", "v").Code == protocol.CodeNone {
		return "acknowledged by one replica of two that it needs"
	}
	return ""
}

// nobodyHeard has 0 elected again with a tail that nobody else has.
func nobodyHeard(b *bench) string {
	b.lead()
	b.cut("tablet-0", protocol.APIFetchLog)
	b.putAs(0, -1, 0, "k", "tail", 300)
	b.elect(accounts, 0, b.servers(), 0)
	b.sleep(300 * time.Millisecond)
	if hw := b.replica(0, accounts).HW; hw > b.replica(1, accounts).LogEnd {
		return "the high watermark has passed what the followers hold"
	}
	return ""
}

// joinBelowEpochStart is KAFKA-7128: 1 leads with a high watermark that lags,
// and 2 is at it, but not at what was acknowledged.
func joinBelowEpochStart(b *bench) string {
	b.lead()
	b.mustPut(0, "j", "v")
	b.committedEverywhere(1, 0, 1, 2)
	uncut := b.cut("tablet-2", protocol.APIFetchLog)
	b.until("2 is out", func() bool { return len(b.lai[accounts].ISR) == 2 })
	b.sleep(100 * time.Millisecond)
	b.mustPut(0, "k", "v")
	b.kill(0)
	b.elect(accounts, 1, []int{0, 1}, 1)
	uncut()
	b.hold(host.Match{From: []cluster.NodeID{"tablet-1"}, To: []cluster.NodeID{"tablet-2"}, Replies: true})
	b.notify(2, accounts)
	b.sleep(time.Second)
	if len(b.lai[accounts].ISR) == 3 {
		return "joined below what was acknowledged"
	}
	return ""
}

// inheritedAndUncommitted has 1 inherit an acknowledged write that it does not
// know to be committed.
func inheritedAndUncommitted(b *bench) string {
	b.elect(accounts, 0, []int{0, 1}, 0, 1)
	b.admitted(accounts)
	b.mustPut(0, "k", "old")
	b.committedEverywhere(1, 0, 1)
	b.mustPut(0, "k", "new")
	b.kill(0)
	b.elect(accounts, 1, []int{1}, 1)
	b.sleep(50 * time.Millisecond)
	if got, code := b.get(1, "k"); code == protocol.CodeNone && got != "new" {
		return "read " + got
	}
	return ""
}

func deposedLeaderReads(b *bench) string {
	b.lead()
	b.mustPut(0, "k", "old")
	b.elect(accounts, 1, b.servers(), 1, 2)
	b.until("0 is out", func() bool { return len(b.lai[accounts].ISR) == 2 })
	b.mustPut(1, "k", "new")
	if got, code := b.get(0, "k"); code == protocol.CodeNone && got != "new" {
		return "read " + got
	}
	return ""
}

// readWhile reads at 0 in the background, lets release happen, and returns what
// was read.
func (b *bench) readWhile(release func()) (string, protocol.Code) {
	var got string
	var code protocol.Code
	done := false
	b.c.Go(b.ctx, "reader", func(context.Context) { got, code = b.getWithin(0, "k", 1500); done = true })
	b.sleep(20 * time.Millisecond)
	release()
	b.until("read", func() bool { return done })
	return got, code
}

// delayedFetches is the attack on reads that the mere arrival of a fetch
// confirms: the followers' fetches were sent before they moved on.
func delayedFetches(b *bench) string {
	b.lead()
	b.mustPut(0, "k", "old")
	b.committedEverywhere(1, 0, 1, 2)
	release := b.hold(host.Match{To: []cluster.NodeID{"tablet-0"}, APIs: []string{protocol.APIFetchLog}})
	b.putAs(0, -1, 0, "other", "v", 200) // has the followers fetch again
	b.elect(accounts, 1, []int{1, 2}, 1, 2)
	b.admitted(accounts)
	b.mustPut(1, "k", "new")
	if got, code := b.readWhile(release); code == protocol.CodeNone && got != "new" {
		return "read " + got
	}
	return ""
}

// leaderFromAProposal has 2 elected, which 0 proposed for the ISR and does not
// know to be in it; 1 knows of nothing.
func leaderFromAProposal(b *bench) string {
	b.elect(accounts, 0, []int{0, 1}, 0, 1)
	b.admitted(accounts)
	b.mustPut(0, "k", "old")
	b.adjust = func(p protocol.IsrProposal) protocol.IsrResult {
		if p.LeaderEpoch == 0 {
			b.compareAndSet(p)
			return protocol.IsrResult{Bucket: p.Bucket, Code: protocol.CodeUnknownServer}
		}
		return b.compareAndSet(p)
	}
	for _, server := range []int{2} {
		b.notify(server, accounts)
	}
	b.until("2 is in", func() bool { return len(b.lai[accounts].ISR) == 3 })
	b.elect(accounts, 2, b.lai[accounts].ISR, 2, 3)
	b.until("2 and 3 are the isr", func() bool {
		isr := b.lai[accounts].ISR
		return len(isr) == 2 && isr[0] == 2 && isr[1] == 3
	})
	b.mustPut(2, "k", "new")
	if got, code := b.get(0, "k"); code == protocol.CodeNone && got != "new" {
		return "read " + got
	}
	return ""
}

// echoOfAFormerLife has 0 lead again after a restart, so that its counter starts
// anew while followers remember its former life's.
func echoOfAFormerLife(b *bench) string {
	b.lead()
	b.mustPut(0, "k", "old")
	for range 20 {
		b.mustGet(0, "k", "old")
	}
	b.kill(0)
	b.start(0)
	b.elect(accounts, 0, b.servers(), 0, 1, 2)
	b.admitted(accounts)
	b.committedEverywhere(1, 0, 1, 2)
	release := b.hold(host.Match{To: []cluster.NodeID{"tablet-0"}, APIs: []string{protocol.APIFetchLog}})
	b.elect(accounts, 0, b.servers(), 0, 1, 2) // their first fetches at this epoch are held
	b.sleep(10 * time.Millisecond)
	b.elect(accounts, 1, []int{1, 2}, 1, 2)
	b.admitted(accounts)
	b.mustPut(1, "k", "new")
	if got, code := b.readWhile(release); code == protocol.CodeNone && got != "new" {
		return "read " + got
	}
	return ""
}

// staleCheckpoint has 1 restart with an old high watermark and follow, then
// lead.
func staleCheckpoint(b *bench) string {
	b.elect(accounts, 0, []int{0, 1}, 0, 1)
	b.admitted(accounts)
	b.mustPut(0, "k", "v")
	b.kill(1)
	b.start(1)
	b.cut("tablet-0", protocol.APIFetchLog)
	b.notify(1, accounts)
	b.kill(0)
	b.elect(accounts, 1, []int{1}, 1)
	b.sleep(50 * time.Millisecond)
	if got, code := b.get(1, "k"); code == protocol.CodeNone && got != "v" {
		return "acknowledged write lost"
	}
	return ""
}

// lateDivergence has 1 told by 2 where their logs part, and the answer comes
// when 1 has long followed another.
func lateDivergence(b *bench) string {
	b.elect(accounts, 1, b.servers(), 0, 1, 2)
	b.admitted(accounts)
	b.mustPut(1, "k", "0")
	b.committedEverywhere(1, 0, 1, 2)
	uncut := b.cut("tablet-1", protocol.APIFetchLog)
	b.putAs(1, -1, 0, "k", "tail", 200)
	b.elect(accounts, 2, []int{0, 2}, 0, 2)
	b.admitted(accounts)
	uncut()
	release := b.hold(host.Match{From: []cluster.NodeID{"tablet-2"}, To: []cluster.NodeID{"tablet-1"}, Replies: true})
	b.elect(accounts, 2, []int{0, 2}, 2, 0)
	b.notify(1, accounts)
	b.sleep(20 * time.Millisecond)
	b.elect(accounts, 0, []int{0, 2}, 0, 2, 1)
	b.admitted(accounts)
	for i := range 3 {
		b.mustPut(0, "k", fmt.Sprint(i))
	}
	b.committedEverywhere(7, 1)
	release()
	b.sleep(20 * time.Millisecond)
	return ""
}

func duplicateBeforeHW(b *bench) string {
	b.lead()
	b.cut("tablet-0", protocol.APIFetchLog)
	b.putAs(0, 3, 0, "k", "v", 200)
	acknowledged := b.putAs(0, 3, 0, "k", "v", 200).Code == protocol.CodeNone
	b.kill(0)
	b.elect(accounts, 1, []int{1, 2}, 1, 2)
	b.admitted(accounts)
	if got, _ := b.get(1, "k"); acknowledged && got != "v" {
		return "acknowledged write lost"
	}
	return ""
}

// retryAfterTruncation has 1 drop a batch and lead when its retry comes.
func retryAfterTruncation(b *bench) string {
	b.lead()
	b.mustPut(0, "j", "v")
	uncut := b.cut("tablet-2", protocol.APIFetchLog)
	b.putAs(0, 3, 0, "k", "v", 200)
	uncut()
	b.elect(accounts, 2, b.servers(), 2, 1, 0)
	b.admitted(accounts)
	b.mustPut(2, "j", "w")
	b.committedEverywhere(3, 1)
	b.elect(accounts, 1, b.servers(), 1, 2, 0)
	b.admitted(accounts)
	acknowledged := b.putAs(1, 3, 0, "k", "v", 500).Code == protocol.CodeNone
	if got, _ := b.get(1, "k"); acknowledged && got != "v" {
		return "acknowledged write lost"
	}
	return ""
}

func deposedAfterAppend(b *bench) string {
	b.lead()
	b.cut("tablet-0", protocol.APIFetchLog)
	var code protocol.Code
	done := false
	b.c.Go(b.ctx, "writer", func(context.Context) { code = b.put(0, "k", "v").Code; done = true })
	b.sleep(20 * time.Millisecond)
	b.elect(accounts, 1, b.servers(), 0, 1, 2)
	b.until("answered", func() bool { return done })
	if cluster.IsDefinite(code.Err()) {
		return "a write that is in the log was refused for good"
	}
	return ""
}

func refusedFetches(b *bench) string {
	fetches := 0
	b.w.Network().Tap(func(p host.Passing) {
		if p.API == protocol.APIFetchLog {
			fetches++
		}
	})
	b.lead()
	b.kill(0)
	b.start(0)
	fetches = 0
	b.sleep(time.Second) // 0 knows this leader epoch, and does not lead
	if fetches > 100 {
		return fmt.Sprint(fetches, " fetches in a second")
	}
	return ""
}

func repeatDuringRestore(b *bench) string {
	b.knobs[0].PerBucket.Set(3 * time.Second)
	b.elect(accounts, 0, b.servers(), 0, 1, 2)
	if b.notify(0, accounts).Buckets[0].Status == protocol.NotifySuccess && !b.replica(0, accounts).Admitted {
		return "acknowledged before it serves"
	}
	return ""
}

func lateNone(b *bench) string {
	tell := func(leader int) {
		_, err := b.send(0, &protocol.UpdateMetadata{
			CoordinatorEpoch: 1, Tables: []protocol.TableInfo{b.table(accounts)},
			Buckets: []protocol.BucketMetadata{{Bucket: accounts, Leader: leader, LeaderEpoch: 4, Replicas: b.servers()}},
		})
		require.NoError(b.t, err)
	}
	tell(1)
	tell(protocol.NoLeader)
	answer, err := b.call(0, &protocol.GetMetadata{Tables: []string{"accounts"}})
	require.NoError(b.t, err)
	if answer.(*protocol.GetMetadataReply).Buckets[0].Leader == protocol.NoLeader {
		return "a late \"none\" took the leader away"
	}
	return ""
}

// askedBeforeRegistration asks a restarted leader while its former life's session
// lives on.
func askedBeforeRegistration(b *bench) string {
	b.lead()
	b.kill(0)
	require.NoError(b.t, b.nodes[0].Start(b.ctx))
	b.sleep(500 * time.Millisecond)
	_, err := b.call(0, &protocol.Lookup{Bucket: accounts, Keys: []string{"k"}})
	if err == nil {
		return "answered before it is registered"
	}
	require.ErrorIs(b.t, err, host.ErrUnreachable)
	return ""
}

// restoreOnAFailingDisk has 1 elected while its disk refuses what it was sent
// last.
func restoreOnAFailingDisk(b *bench) string {
	b.lead()
	b.mustPut(0, "k", "v")
	b.committedEverywhere(1, 0, 1, 2)
	b.knobs[1].PerBucket.Set(300 * time.Millisecond)
	some := b.w.Disk("tablet-1").Fail(0.8, false, time.Hour)
	b.c.Go(b.ctx, "put", func(context.Context) { b.put(0, "j", "v") })
	b.until("1 has what it cannot sync", func() bool { return b.replica(1, accounts).LogEnd == 2 })
	b.sleep(10 * time.Millisecond)
	b.elect(accounts, 1, b.servers())
	for b.replica(1, accounts).LeaderEpoch == 0 {
		b.notify(1, accounts) // until its disk takes the leader epoch
	}
	all := b.w.Disk("tablet-1").Fail(1, false, time.Hour)
	b.sleep(500 * time.Millisecond)
	for server := range 3 {
		if server != 1 {
			b.notify(server, accounts)
		}
	}
	some()
	all()
	b.sleep(500 * time.Millisecond)
	if got, code := b.get(1, "k"); code == protocol.CodeNone && got != "v" {
		return "acknowledged write missing"
	}
	b.notify(1, accounts) // has it try again
	b.admitted(accounts)
	b.mustGet(1, "k", "v")
	return ""
}
