package lab

// checkerDocs says in a sentence what each checker judges.
func checkerDocs() []Item {
	return []Item{
		{Name: "linearizable", Doc: "each key is a linearizable register: Porcupine judges every key within its budget, an exact linear algorithm all of them, and they must agree"},
		{Name: "storms", Doc: "clients are not refused over and over: refusals and hangs by bucket, client and minute, with their causes, and the windows between advertising a leader and its admission"},
		{Name: "fencing", Doc: "no effect of an old term after a newer one took effect: in ZooKeeper by zxid, at tablets by what they had processed, at clients by their DDL"},
		{Name: "single-leader", Doc: "at most one admitted leader for each bucket and leader epoch"},
		{Name: "invariants", Doc: "leader in ISR in replicas; epochs, high watermarks and committed records never go back; no node panicked"},
		{Name: "convergence", Doc: "after the last heal every bucket serves, metadata agrees with ZooKeeper and nothing is pending, within the time allowed"},
		{Name: "availability", Doc: "how long each fault kept operations from succeeding: detection, election, admission, first success"},
		{Name: "positions", Doc: "the position of a tail scanner only moves forward, within what it was shown"},
		{Name: "coverage", Doc: "every planned fault had its effect and overlapped operations"},
		{Name: "harness", Doc: "the harness itself stayed healthy: its own errors, stalls of the host, a torn history"},
	}
}
