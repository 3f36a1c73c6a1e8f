package protocol

// TabletPolicy holds the decisions of tablets; soundTablet sets them all.
type TabletPolicy struct {
	// CheckCoordinatorEpoch refuses control requests of a lower coordinator epoch
	// than one already seen, restarts included (the epoch is synced to disk).
	// Dropped by unfenced-rpc.
	CheckCoordinatorEpoch bool `json:"check_coordinator_epoch"`
	// SyncLeaderEpoch writes the leader epoch to disk before acting on it, and
	// refuses lower ones for ever (rule S1). Dropped by s1-epoch-in-memory.
	SyncLeaderEpoch bool `json:"sync_leader_epoch"`
	// RefuseOldLeadership never leads at an epoch known before a restart (rule
	// S1). Dropped by s1-restarted-leader-leads-on.
	RefuseOldLeadership bool `json:"refuse_old_leadership"`
	// CountSyncedOnly syncs before a fetch reports the end (rule S2). Dropped by
	// s2-unsynced-counts.
	CountSyncedOnly bool `json:"count_synced_only"`
	// MaximalISR keeps every ISR proposed at this bucket epoch (rule S3). Dropped
	// by s3-revert-refused-isr.
	MaximalISR bool `json:"maximal_isr"`
	// FollowerHWFromLeader takes the follower's high watermark from the reply,
	// never from its own end (rule S4). Dropped by s4-follower-hw-is-its-end.
	FollowerHWFromLeader bool `json:"follower_hw_from_leader"`
	// HoldBelowMinISR lets the high watermark stand still, and refuses writes,
	// while the ISR is below min-ISR (rule S4). Dropped by s4-min-isr-ignored.
	HoldBelowMinISR bool `json:"hold_below_min_isr"`
	// HeardThisEpoch counts a follower's end only if it was reported at this
	// leader epoch (rule S4). Dropped by s4-ends-of-former-epochs.
	HeardThisEpoch bool `json:"heard_this_epoch"`
	// JoinAtEpochStart lets a follower join at max(HW, epoch start) (rule S5).
	// Dropped by s5-join-at-hw.
	JoinAtEpochStart bool `json:"join_at_epoch_start"`
	// ServeAfterEpochStart answers reads only once HW has reached the epoch start
	// (rule S6). Dropped by s6-read-before-epoch-start.
	ServeAfterEpochStart bool `json:"serve_after_epoch_start"`
	// ConfirmReads answers a read when every member of the maximal ISR has echoed
	// its token (rule S7). Dropped by s7-unconfirmed-reads.
	ConfirmReads bool `json:"confirm_reads"`
	// EchoConfirms asks for the echo of a token; without it the mere arrival of a
	// fetch confirms (rule S7). Dropped by s7-arrival-confirms.
	EchoConfirms bool `json:"echo_confirms"`
	// ReadsNeedMaximalISR confirms a read by the maximal ISR, not the committed
	// one (rule S7). Dropped by s7-committed-isr-confirms.
	ReadsNeedMaximalISR bool `json:"reads_need_maximal_isr"`
	// TokenNamesLeadership compares the leader epoch and incarnation of an echoed
	// token, not its counter alone (rule S7). Dropped by s7-bare-counter.
	TokenNamesLeadership bool `json:"token_names_leadership"`
	// TruncateByEpoch finds the point of divergence by leader epochs, not by the
	// high watermark (rule S8). Dropped by s8-truncate-to-hw.
	TruncateByEpoch bool `json:"truncate_by_epoch"`
	// MatchReply counts a fetch reply only for the outstanding request of the
	// same leader epoch (rule S8). Dropped by s8-unmatched-reply.
	MatchReply bool `json:"match_reply"`
	// DuplicateWaits makes a duplicate wait for HW as the original did (rule S10).
	// Dropped by s10-duplicate-at-once.
	DuplicateWaits bool `json:"duplicate_waits"`
	// DedupeFromLog makes dedupe state a function of the log (rule S10). Dropped
	// by s10-dedupe-survives-truncation.
	DedupeFromLog bool `json:"dedupe_from_log"`
	// LostAfterAppendIsUnknown answers a write whose leader lost its role after the
	// append with a code that says unknown. Without it the answer is 12, which a
	// client takes for a definite refusal. Dropped by not-leader-after-append.
	LostAfterAppendIsUnknown bool `json:"lost_after_append_is_unknown"`
	// FetcherBacksOff has a follower wait before it asks again a server that says
	// it does not lead (FLUSS-2075). Dropped by fetcher-no-backoff.
	FetcherBacksOff bool `json:"fetcher_backs_off"`
	// AckWhenServing answers a repeated notification with success only once the
	// bucket serves. Dropped by repeat-acks-early.
	AckWhenServing bool `json:"ack_when_serving"`
	// FailedRestoreFails refuses the leadership of a KV bucket whose restore failed,
	// so that another server is elected. Dropped by partial-restore-serves.
	FailedRestoreFails bool `json:"failed_restore_fails"`
	// ServeOnceRegistered answers no client before the first registration of this
	// process: until its old session ends, metadata names its former life as a
	// leader, which no answer of this one could serve. Dropped by
	// serves-before-registration.
	ServeOnceRegistered bool `json:"serve_once_registered"`
	// CompareMetadata keeps the higher leader epoch, and at the same epoch a
	// leader over none. Dropped by late-none-beats-leader.
	CompareMetadata bool `json:"compare_metadata"`
}

func soundTablet() TabletPolicy {
	return TabletPolicy{
		CheckCoordinatorEpoch: true, SyncLeaderEpoch: true, RefuseOldLeadership: true,
		CountSyncedOnly: true, MaximalISR: true, FollowerHWFromLeader: true, JoinAtEpochStart: true,
		ServeAfterEpochStart: true, ConfirmReads: true, EchoConfirms: true, TruncateByEpoch: true,
		MatchReply: true, DuplicateWaits: true, DedupeFromLog: true, AckWhenServing: true,
		CompareMetadata: true, HoldBelowMinISR: true, HeardThisEpoch: true,
		ReadsNeedMaximalISR: true, TokenNamesLeadership: true,
		LostAfterAppendIsUnknown: true, FetcherBacksOff: true, ServeOnceRegistered: true,
		FailedRestoreFails: true,
	}
}
