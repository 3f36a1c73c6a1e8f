package report

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// heat is the strip of refusals by bucket and time.
type heat struct {
	Rows []heatRow
	Max  int
	Cell string
}

type heatRow struct {
	Bucket string
	Cells  []heatCell
}

type heatCell struct{ Alpha, Title string }

// heatColumns is how many time cells the strip has.
const heatColumns = 90

// buildHeat counts refusals and hangs by bucket and time.
func buildHeat(h history.History, end time.Duration) heat {
	width := max(end/heatColumns, 100*time.Millisecond)
	n := int(end/width) + 1
	counts := map[string][]int{}
	for _, op := range h.Ops() {
		if op.Process != history.Observer || op.F != history.KindRefused {
			continue
		}
		if e, err := history.Decode[history.Refused](op); err == nil {
			if counts[e.Bucket] == nil {
				counts[e.Bucket] = make([]int, n)
			}
			counts[e.Bucket][int(op.Time/width)]++
		}
	}
	out := heat{Cell: seconds(width)}
	var names []string
	for name, row := range counts {
		names = append(names, name)
		out.Max = max(out.Max, slices.Max(row))
	}
	sort.Slice(names, func(i, j int) bool { return naturalLess(names[i], names[j]) })
	for _, name := range names {
		row := heatRow{Bucket: name}
		for i, c := range counts[name] {
			cell := heatCell{Alpha: "0.04"}
			if c > 0 {
				cell.Alpha = fmt.Sprintf("%.2f", 0.2+0.8*float64(c)/float64(out.Max))
			}
			cell.Title = fmt.Sprintf("%s: %d refusals from %s", name, c, seconds(time.Duration(i)*width))
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

type stormRow struct {
	Bucket                                                  string
	Refusals, Premature, Stale, Lost, NoLeader, Hangs, Peak int
	Window                                                  string
}
