package checker

// The checkers, one file each (and what it rests on):
//
//	linearizable   every key a linearizable register: Porcupine and an exact algorithm
//	               (zones.go, chains.go, window.go), which must agree
//	positions      tail scanners only move forward
//	storms         refusals by cause, windows from advertised to admitted, retry storms
//	fencing        no effect of a coordinator's term after a later one (terms.go)
//	single-leader  one admitted leader per bucket and leader epoch
//	invariants     epochs and high watermarks never go back, shapes, reported violations, panics
//	convergence    the cluster came to rest after the last heal
//	availability   gaps, and recovery after each fault by phases
//	coverage       every planned fault had its effect, with operations in it
//	harness        the tester's own errors, stalls, torn lines
//
// Standing lists those of every run; CheckAll runs them; Compose derives the three
// verdicts and the exit code; WriteResult and ReadResult are verdict.json.
//
// A checker states its input contract and answers a history that breaks it with
// history.Contract, an error that carries the line. It never answers valid for
// want of time, memory or events: unknown comes with a Reason, invalid with
// Evidence and a Story. Its Data is documented as a type of its own.
//
// The algorithms that know nothing of histories:
//
//	zones      register, unique writes            linear     zones.go, online.go (while it runs)
//	chains     the same with compare-and-set      linear     chains.go
//	versions   register that tells versions       sorting    versions.go
//	log        append-only log with offsets       linear     logzones.go
//	window     any model                          n * 2^open window.go
//
// Each is compared with Porcupine on random histories (differential_test.go), a
// proof of a violation is verified by itself (zones_verify.go), and a witness is
// replayed (witness.go). Histories that each checker must accept, reject and doubt
// stand in testdata/<checker>/{valid,invalid,unknown}, with golden texts beside them.
