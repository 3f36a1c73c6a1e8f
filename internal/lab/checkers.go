package lab

// checkerDocs says in a sentence what each checker judges.
func checkerDocs() []Item {
	return []Item{
		{Name: "linearizable", Doc: "each key is a linearizable register: Porcupine judges every key within its budget, an exact linear algorithm all of them, and they must agree"},
		{Name: "storms", Doc: "clients are not refused over and over: refusals and hangs by bucket, client and minute, with their causes, and the windows between advertising a leader and its admission"},
		{Name: "coverage", Doc: "every planned fault had its effect and overlapped operations"},
		{Name: "harness", Doc: "the harness itself stayed healthy: its own errors, stalls of the host, a torn history"},
	}
}
