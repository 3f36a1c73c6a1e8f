package harness

import (
	"github.com/fencepost-dev/fencepost/cluster"
	"github.com/fencepost-dev/fencepost/history"
)

// Window is how a nemesis says when its fault began and ended, and whom it hit.
// The history shows both as fault events; the nodes that were hit are what the
// fault's effects are looked for on.
type Window struct {
	rec     *Recorder
	entry   Entry
	targets []string
	state   windowState
	changed func()
}

type windowState uint8

const (
	windowShut windowState = iota
	windowOpen
	windowOver
)

// Start records the beginning, just before the fault is injected. The history
// so far goes to the operating system first: a fault may take the harness with
// it.
func (w *Window) Start(targets ...cluster.NodeID) {
	if w.state != windowShut {
		return
	}
	w.state = windowOpen
	w.targets = make([]string, 0, len(targets))
	for _, t := range targets {
		w.targets = append(w.targets, string(t))
	}
	_ = w.rec.Flush() // a failure to write ends the run by itself
	w.rec.Event(history.Fault{Name: w.entry.Fault, ID: w.entry.ID, Target: w.targets, State: history.StateStart})
	w.changed()
}

// End records the end, once the fault is healed; effect says in words what it
// did.
func (w *Window) End(effect string) {
	if w.state != windowOpen {
		return
	}
	w.state = windowOver
	w.rec.Event(history.Fault{Name: w.entry.Fault, ID: w.entry.ID, Target: w.targets, State: history.StateEnd, Effect: effect})
	w.changed()
}

// Open reports whether the fault is in force.
func (w *Window) Open() bool { return w.state == windowOpen }
