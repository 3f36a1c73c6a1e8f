package protocol

// ClientPolicy holds the decisions of clients; soundClient sets them all.
type ClientPolicy struct {
	// BackOff waits with jitter, growing, between attempts. Dropped by
	// client-no-backoff: the tight loop of today's Fluss client.
	BackOff bool `json:"back_off"`
	// CompareMetadata ignores answers with a lower leader epoch than known.
	CompareMetadata bool `json:"compare_metadata"`
	// SameSequence has a retry carry the writer id and sequence of the original.
	SameSequence bool `json:"same_sequence"`
}

func soundClient() ClientPolicy {
	return ClientPolicy{BackOff: true, CompareMetadata: true, SameSequence: true}
}
