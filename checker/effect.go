package checker

import "time"

// Effect states what a fault must have done to count, as a predicate over the
// history that can be judged from the file alone. Within the fault's window,
// widened by After, there must be at least Min observer events of kind Event
// whose fields equal those in Where (compared as JSON text; "*" matches any),
// and at least Overlap client operations must have been open. A fault may
// state several effects; all must hold.
type Effect struct {
	Event   string            `json:"event,omitempty"`
	Where   map[string]string `json:"where,omitempty"`
	Min     int               `json:"min,omitempty"`
	After   time.Duration     `json:"after,omitempty"`
	Overlap int               `json:"overlap,omitempty"`
	// OnTarget asks that the event's node, coordinator or server be one of the
	// fault's targets.
	OnTarget bool `json:"on_target,omitempty"`
}

// PlannedFault is what coverage asks for: the fault's name and its effects.
type PlannedFault struct {
	Name    string   `json:"name"`
	Effects []Effect `json:"effects"`
	// Min is how many windows with full effect the run must have.
	Min int `json:"min"`
}
