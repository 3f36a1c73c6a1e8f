package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
)

// heat is the strip of refusals and hangs by bucket and time.
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

// newHeat makes the checker's strip printable.
func newHeat(strip checker.HeatStrip) heat {
	out := heat{Cell: seconds(time.Duration(strip.Width))}
	for _, row := range strip.Cells {
		for _, n := range row {
			out.Max = max(out.Max, n)
		}
	}
	for b, bucket := range strip.Buckets {
		row := heatRow{Bucket: bucket}
		for i, n := range strip.Cells[b] {
			cell := heatCell{Alpha: "0.04", Title: fmt.Sprintf("%s: %d refusals and hangs from %s", bucket, n, seconds(time.Duration(int64(i)*strip.Width)))}
			if n > 0 {
				cell.Alpha = fmt.Sprintf("%.2f", 0.2+0.8*float64(n)/float64(out.Max))
			}
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

type stormRow struct {
	checker.BucketStorms
	Longest string // the longest window from advertised to admitted
}

// storms fills in the storm section from the checker's own data.
func (v *view) storms(in Input) {
	v.StormSummary = "The storm checker did not judge this run."
	verdict, ok := find(in.Verdicts, "storms")
	if !ok {
		return
	}
	v.StormSummary = verdict.Summary
	var data checker.StormData
	if !decodeData(verdict, &data) {
		return
	}
	v.Heat = newHeat(data.Heat)
	slices.SortStableFunc(data.Buckets, func(a, b checker.BucketStorms) int {
		switch {
		case naturalLess(a.Bucket, b.Bucket):
			return -1
		case naturalLess(b.Bucket, a.Bucket):
			return 1
		}
		return 0
	})
	for _, b := range data.Buckets {
		if b.Bucket == "" {
			b.Bucket = "no bucket: metadata, writer ids"
		}
		v.StormRows = append(v.StormRows, stormRow{b, seconds(time.Duration(b.Window))})
	}
}
