package protocol

// CoordinatorPolicy holds the decisions of coordinators. The zero value of no
// field is special; soundCoordinator sets them all.
type CoordinatorPolicy struct {
	// WithholdPending names no leader in metadata until that leader has admitted
	// the role (section 2). Dropped by advertise-before-admit.
	WithholdPending bool `json:"withhold_pending"`
	// BumpEpoch takes a new coordinator epoch by compare-and-set on election.
	// Dropped by epoch-always-zero: the claimed epoch is 0 for ever.
	BumpEpoch bool `json:"bump_epoch"`
	// GuardWrites ties every write to its term: by a check of the epoch node's
	// version in the same transaction, and by the term's own session. Dropped by
	// unguarded-zk-writes: then what was decided is written by whatever session the
	// process has by then, as with a client library that opens a new one by itself.
	GuardWrites bool `json:"guard_writes"`
	// StandbyRefuses has a coordinator that is not in office answer "not the
	// leader". Dropped by standby-serves.
	StandbyRefuses bool `json:"standby_refuses"`
	// KeepPendingOnRPCFailure keeps a pending activation when the notification
	// fails on its way. Dropped by cleared-on-rpc-failure.
	KeepPendingOnRPCFailure bool `json:"keep_pending_on_rpc_failure"`
	// MatchAckKey clears a pending activation only by an answer with the same
	// bucket, leader epoch and incarnation. Dropped by stale-ack-clears-newer.
	MatchAckKey bool `json:"match_ack_key"`
	// ResendNotify sends a notification again until it is answered. Dropped by
	// ack-lost-pending-forever.
	ResendNotify bool `json:"resend_notify"`
	// CompareAndSetLAI writes leader_isr with its expected version, compares a
	// proposal with the bucket when it is written, and reads back what became of a
	// lost answer (rule S9). Dropped by s9-no-compare-and-set: then it is compared
	// when it arrives, written blindly, and taken for written whatever happened.
	CompareAndSetLAI bool `json:"compare_and_set_lai"`
	// ReelectRestarted elects a restarted leader again, at a higher leader epoch,
	// even on the same server (rule S1). Dropped by restarted-leader-kept.
	ReelectRestarted bool `json:"reelect_restarted"`
	// SeeBounce tells registrations apart by their czxid, so that a tablet that
	// restarted unseen is told its replicas again (section 2). Dropped by
	// bounce-unseen.
	SeeBounce bool `json:"see_bounce"`
	// SilentUntilConfirmed has a new coordinator say nothing of a bucket whose
	// standing leader it has not confirmed yet; "no leader" at an unchanged leader
	// epoch is never sent (section 2). Dropped by failover-withholds-serving-leaders.
	SilentUntilConfirmed bool `json:"silent_until_confirmed"`
}

func soundCoordinator() CoordinatorPolicy {
	return CoordinatorPolicy{
		WithholdPending: true, BumpEpoch: true, GuardWrites: true, StandbyRefuses: true,
		KeepPendingOnRPCFailure: true, MatchAckKey: true, ResendNotify: true,
		CompareAndSetLAI: true, ReelectRestarted: true, SeeBounce: true, SilentUntilConfirmed: true,
	}
}
