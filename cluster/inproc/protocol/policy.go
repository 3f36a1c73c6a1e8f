package protocol

// Policy holds every decision that keeps the cluster safe or live, as data:
// printable into test.json, comparable, and sound by default. A planted bug
// replaces exactly one field. Rules S1 to S10 are those of the protocol.
type Policy struct {
	Coordinator CoordinatorPolicy `json:"coordinator"`
	Tablet      TabletPolicy      `json:"tablet"`
	Client      ClientPolicy      `json:"client"`
}

// Sound is the best protocol that we know.
func Sound() Policy {
	return Policy{
		Coordinator: soundCoordinator(),
		Tablet:      soundTablet(),
		Client:      soundClient(),
	}
}
