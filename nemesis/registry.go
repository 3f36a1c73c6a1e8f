// Package nemesis holds the faults: one file a fault, one line each in the
// registry. A fault is a value; what it can hit it finds by the cluster's
// capabilities, whom it hits by their role at the moment of injection.
package nemesis

import (
	"fmt"
	"strings"

	"github.com/fencepost-dev/fencepost/harness"
)

// All lists every fault, in the order in which they are shown.
func All() []harness.Fault {
	return []harness.Fault{
		restart(),
		slowRecovery(),
		sessionLoss(),
		oldLeader(),
	}
}

// Parse reads a list of faults: names with commas between them, "all", or
// "none". The error names those that exist.
func Parse(list string) ([]harness.Fault, error) {
	switch list = strings.TrimSpace(list); list {
	case "", "none":
		return nil, nil
	case "all":
		return All(), nil
	}
	var out []harness.Fault
	seen := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		f, err := named(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if !seen[f.Name] {
			seen[f.Name] = true
			out = append(out, f)
		}
	}
	return out, nil
}

func named(name string) (harness.Fault, error) {
	names := []string{"all", "none"}
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return harness.Fault{}, fmt.Errorf("unknown fault %q: there are %s", name, strings.Join(names, ", "))
}
