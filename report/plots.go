package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"regexp"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fencepost-dev/fencepost/history"
)

// The plots are drawn in stand-in colours that no palette uses; the finished
// SVG has each replaced by a CSS variable, so that one picture serves light
// and dark.
func inks() map[string]color.RGBA {
	return map[string]color.RGBA{
		"fg":        {0x01, 0x02, 0x03, 0xff},
		"ok":        {0x01, 0x02, 0x04, 0xff},
		"fail":      {0x01, 0x02, 0x05, 0xff},
		"info":      {0x01, 0x02, 0x06, 0xff},
		"p50":       {0x01, 0x02, 0x07, 0xff},
		"p95":       {0x01, 0x02, 0x08, 0xff},
		"p99":       {0x01, 0x02, 0x09, 0xff},
		"band-soft": {0x01, 0x02, 0x0a, 0xff},
	}
}

const (
	plotWidth  = 960 // points; the page scales it
	plotHeight = 260
)

// figure is a finished plot with what a screen reader says of it.
type figure struct {
	SVG   template.HTML
	Label string
}

func newPlot(title, y string, end time.Duration) *plot.Plot {
	ink := inks()["fg"]
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "seconds since the start", y
	p.BackgroundColor = nil // the page shows through
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	style := func(size float64, s *draw.TextStyle) {
		s.Font, s.Font.Size, s.Color = sans, vg.Points(size), ink
	}
	style(11, &p.Title.TextStyle)
	style(9, &p.X.Label.TextStyle)
	style(9, &p.Y.Label.TextStyle)
	style(8, &p.X.Tick.Label)
	style(8, &p.Y.Tick.Label)
	style(8, &p.Legend.TextStyle)
	p.X.Color, p.Y.Color = ink, ink
	p.X.Tick.Color, p.Y.Tick.Color = ink, ink
	p.X.Min, p.X.Max = 0, max(end.Seconds(), 1)
	p.Legend.Top = true
	return p
}

var xmlns = regexp.MustCompile(`\s+xmlns(:\w+)?="[^"]*"`)

// drawSVG renders a plot and puts variables in place of the stand-in colours.
func drawSVG(p *plot.Plot) (template.HTML, error) {
	canvas := vgsvg.New(vg.Points(plotWidth), vg.Points(plotHeight))
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw plot: %w", err)
	}
	svg := b.String()
	if i := strings.Index(svg, "<svg"); i > 0 {
		svg = svg[i:] // the XML prologue does not belong inside HTML
	}
	// Inline SVG needs no name space, and a page without addresses is easy to
	// trust.
	svg = xmlns.ReplaceAllString(svg, "")
	for name, c := range inks() {
		svg = strings.ReplaceAll(svg, fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B), "var(--"+name+")")
	}
	// Every text in the plot is ours or was escaped by the SVG writer.
	return template.HTML(svg), nil //nolint:gosec // see above
}

// addBands shades the faults' windows from bottom to top of the plot.
func addBands(p *plot.Plot, bands []band, low, high float64) error {
	ink := inks()["band-soft"]
	for _, b := range bands {
		to := max(b.to.Seconds(), b.from.Seconds()+0.05)
		area, err := plotter.NewPolygon(plotter.XYs{
			{X: b.from.Seconds(), Y: low},
			{X: to, Y: low},
			{X: to, Y: high},
			{X: b.from.Seconds(), Y: high},
		})
		if err != nil {
			return fmt.Errorf("shade fault %s: %w", b.name, err)
		}
		area.Color = ink // the page makes it transparent
		area.Width = 0
		p.Add(area)
	}
	return nil
}

// latencyPlot shows every (thinned) operation by outcome, on a log axis.
func latencyPlot(s series) (figure, error) {
	p := newPlot("latency of each operation, by outcome", "milliseconds", s.end)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	low, high := 0.01, 1.0
	groups := map[history.Type]plotter.XYs{}
	for _, pt := range thin(s.points, 4000) {
		ms := max(float64(pt.latency)/1e6, low)
		high = max(high, ms*1.5)
		groups[pt.outcome] = append(groups[pt.outcome], plotter.XY{X: pt.at.Seconds(), Y: ms})
	}
	p.Y.Min, p.Y.Max = low, high
	if err := addBands(p, s.bands, low, high); err != nil {
		return figure{}, err
	}
	for _, outcome := range []history.Type{history.Ok, history.Fail, history.Info} {
		if len(groups[outcome]) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(groups[outcome])
		if err != nil {
			return figure{}, fmt.Errorf("plot latencies: %w", err)
		}
		dots.Color, dots.Radius = inks()[outcome.String()], vg.Points(1.2)
		dots.Shape = shapeOf(outcome)
		p.Add(dots)
		p.Legend.Add(outcome.String(), dots)
	}
	svg, err := drawSVG(p)
	return figure{svg, fmt.Sprintf("Scatter plot of the latency of %d operations over %.0f seconds on a logarithmic axis, "+
		"with %d fault windows shaded", len(s.points), s.end.Seconds(), len(s.bands))}, err
}

// shapeOf tells outcomes apart without colour.
func shapeOf(outcome history.Type) draw.GlyphDrawer {
	switch outcome {
	case history.Fail:
		return draw.CrossGlyph{}
	case history.Info:
		return draw.TriangleGlyph{}
	default:
		return draw.CircleGlyph{}
	}
}

// quantilePlot shows quantiles of the ok operations per slice.
func quantilePlot(s series) (figure, error) {
	p := newPlot("latency quantiles of ok operations", "milliseconds", s.end)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	low, high := 0.01, 1.0
	lines := map[string]plotter.XYs{}
	for _, b := range s.slices {
		if b.ok == 0 {
			continue
		}
		x := (b.from + b.to).Seconds() / 2
		for name, v := range map[string]time.Duration{"p50": b.p50, "p95": b.p95, "p99": b.p99} {
			ms := max(float64(v)/1e6, low)
			high = max(high, ms*1.5)
			lines[name] = append(lines[name], plotter.XY{X: x, Y: ms})
		}
	}
	p.Y.Min, p.Y.Max = low, high
	if err := addBands(p, s.bands, low, high); err != nil {
		return figure{}, err
	}
	if err := addLines(p, lines, "p50", "p95", "p99"); err != nil {
		return figure{}, err
	}
	svg, err := drawSVG(p)
	return figure{svg, "Line plot of the median, 95th and 99th percentile latency over time"}, err
}

// ratePlot shows operations per second by outcome.
func ratePlot(s series) (figure, error) {
	p := newPlot("completed operations per second", "operations / s", s.end)
	high := 1.0
	lines := map[string]plotter.XYs{}
	for _, b := range s.slices {
		seconds := (b.to - b.from).Seconds()
		x := (b.from + b.to).Seconds() / 2
		for name, n := range map[string]int{"ok": b.ok, "fail": b.fail, "info": b.info} {
			rate := float64(n) / seconds
			high = max(high, rate*1.1)
			lines[name] = append(lines[name], plotter.XY{X: x, Y: rate})
		}
	}
	p.Y.Min, p.Y.Max = 0, high
	if err := addBands(p, s.bands, 0, high); err != nil {
		return figure{}, err
	}
	if err := addLines(p, lines, "ok", "fail", "info"); err != nil {
		return figure{}, err
	}
	svg, err := drawSVG(p)
	return figure{svg, "Line plot of the rate of ok, fail and info completions over time"}, err
}

func addLines(p *plot.Plot, lines map[string]plotter.XYs, names ...string) error {
	for i, name := range names {
		if len(lines[name]) == 0 {
			continue
		}
		line, err := plotter.NewLine(lines[name])
		if err != nil {
			return fmt.Errorf("plot %s: %w", name, err)
		}
		line.Color, line.Width = inks()[name], vg.Points(1.2)
		if i > 0 { // told apart without colour
			line.Dashes = []vg.Length{vg.Points(float64(6 - 2*i)), vg.Points(2)}
		}
		p.Add(line)
		p.Legend.Add(name, line)
	}
	return nil
}
