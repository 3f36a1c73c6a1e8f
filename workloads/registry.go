// Package workloads holds what clients do to a system under test: one file a
// workload, one line each in the registry.
package workloads

import (
	"fmt"

	"github.com/fencepost-dev/fencepost/harness"
)

// All lists every workload, in the order in which they are shown.
func All() []harness.Workload {
	return []harness.Workload{
		register(),
	}
}

// Named finds a workload; the error names those that exist.
func Named(name string) (harness.Workload, error) {
	var names []string
	for _, w := range All() {
		if w.Name == name {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return harness.Workload{}, fmt.Errorf("unknown workload %q: there are %v", name, names)
}
