package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/fencepost-dev/fencepost/checker"
	"github.com/fencepost-dev/fencepost/history"
)

//go:embed page.html
var pageHTML string

//go:embed style.css
var styleCSS string

// HTML writes the page: one file, no network, readable with scripts off.
func HTML(w io.Writer, in Input) error {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	v, err := newView(in)
	if err != nil {
		return err
	}
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("render report: %w", err)
	}
	return nil
}

// view is the page's data, all in words and numbers ready to print.
type view struct {
	Title, Word, ExitWords, Command, StormSummary, PictureKey, End, Generated string
	Exit                                                                      int
	CSS                                                                       template.CSS
	Picture                                                                   string
	Classes                                                                   []classView
	Violation                                                                 *violationView
	Notes                                                                     []string
	Verdicts                                                                  []verdictRow
	Faults                                                                    []faultRow
	Heat                                                                      heat
	StormRows                                                                 []stormRow
	Figures                                                                   []figure
	Lanes, Folded                                                             []laneView
	Key                                                                       []spanView
	Errors                                                                    []errorRow
	Plan                                                                      []Field
}

type classView struct{ Name, Word, Text string }

type violationView struct {
	Checker, Subject, At, Story string
	Ops                         []opRow
}

type opRow struct {
	Index, Process, Type, F, Value, Node, Error, Time string
}

type verdictRow struct{ Indent, Checker, Class, Word, Summary, Reason string }

type faultRow struct {
	ID                             int
	Name, Target, From, To, Effect string
}

type errorRow struct {
	Outcome, F, Error, First string
	Count                    int
}

type laneView struct {
	Group, Name, Text string
	NewGroup          bool
	Mark              string // where the first violation is, or empty
	Spans             []spanView
}

type spanView struct {
	Kind, Label string
	X, W        string
}

// maxEvidence bounds the operations shown under the first violation.
const maxEvidence = 20

func newView(in Input) (view, error) {
	s := newSeries(in.History)
	v := view{
		Title: in.Title, Exit: in.Exit, ExitWords: Words(in.Exit), Command: in.Command, CSS: template.CSS(styleCSS), //nolint:gosec // our own file
		Picture: string(in.Picture), PictureKey: in.PictureKey, Notes: in.Notes, Plan: in.Plan,
		End: seconds(s.end), Generated: in.Generated.UTC().Format(time.RFC3339),
	}
	v.Word, _, _ = strings.Cut(v.ExitWords, ":")
	v.Classes = classes(in.Verdicts)
	v.Verdicts = verdictRows(in.Verdicts, "")
	v.Violation = violation(in)
	for _, b := range s.bands {
		v.Faults = append(v.Faults, faultRow{b.id, b.name, strings.Join(b.target, ", "), seconds(b.from), seconds(b.to), b.effect})
	}
	for _, e := range s.errors {
		v.Errors = append(v.Errors, errorRow{e.Outcome, e.F, e.Error, seconds(e.First), e.Count})
	}
	v.storms(in)
	for _, draw := range []func(series) (figure, error){latencyPlot, quantilePlot, ratePlot} {
		if len(s.points) == 0 {
			break
		}
		f, err := draw(s)
		if err != nil {
			return view{}, err
		}
		v.Figures = append(v.Figures, f)
	}
	v.Lanes, v.Folded = laneViews(buildLanes(in.History, s.end, s.bands), s.end, in.Verdicts)
	for i := range 6 {
		v.Key = append(v.Key, spanView{Kind: leaderKind(i), X: fmt.Sprint(10 * i), W: "10"})
	}
	return v, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

func classes(verdicts []checker.Verdict) []classView {
	texts := map[checker.Class][2]string{
		checker.Property: {"property: is the system safe and live?", "no checker judged"},
		checker.Coverage: {"coverage: did the test exercise it?", "nothing was asked"},
		checker.Harness:  {"harness: did the tester stay healthy?", "nothing was asked"},
	}
	var out []classView
	for _, c := range []checker.Class{checker.Property, checker.Coverage, checker.Harness} {
		validity, any := worst(verdicts, c)
		text := texts[c][1]
		if any {
			var bad []string
			for _, v := range verdicts {
				if v.Class == c && v.Validity == validity && validity != checker.Valid {
					bad = append(bad, v.Checker)
				}
			}
			text = strings.Join(bad, ", ")
		} else {
			validity = checker.Unknown
		}
		out = append(out, classView{texts[c][0], validity.String(), text})
	}
	return out
}

func verdictRows(verdicts []checker.Verdict, indent string) []verdictRow {
	var out []verdictRow
	for _, v := range verdicts {
		out = append(out, verdictRow{indent, v.Checker, v.Class.String(), v.Validity.String(), v.Summary, v.Reason})
		if len(v.Parts) <= 12 { // a part a key would bury the rest
			out = append(out, verdictRows(v.Parts, indent+"· ")...)
		}
	}
	return out
}

func violation(in Input) *violationView {
	v, ok := firstViolation(in.Verdicts)
	if !ok {
		return nil
	}
	out := &violationView{Checker: v.Checker, Subject: v.Subject, At: seconds(v.At), Story: v.Story}
	if out.Story == "" {
		out.Story = v.Summary
	}
	ops := in.History.Ops()
	for _, i := range v.Evidence[:min(len(v.Evidence), maxEvidence)] {
		if i >= 0 && i < len(ops) {
			out.Ops = append(out.Ops, newOpRow(ops[i]))
		}
	}
	return out
}

func newOpRow(o history.Op) opRow {
	who := fmt.Sprint(int(o.Process))
	switch o.Process {
	case history.Nemesis:
		who = "nemesis"
	case history.Observer:
		who = "observer"
	}
	return opRow{fmt.Sprint(o.Index + 1), who, o.Type.String(), o.F, string(o.Value), o.Node, o.Error, seconds(o.Time)}
}

// laneViews makes the lanes printable; those of partitions, of which there may
// be hundreds, come apart.
func laneViews(lanes []lane, end time.Duration, verdicts []checker.Verdict) (shown, folded []laneView) {
	if end == 0 {
		return nil, nil
	}
	scale := 1000 / end.Seconds()
	mark := ""
	if v, ok := firstViolation(verdicts); ok {
		mark = fmt.Sprintf("%.2f", v.At.Seconds()*scale)
	}
	for _, l := range lanes {
		out := &shown
		if strings.Contains(l.Name, "[") {
			out = &folded
		}
		lv := laneView{Group: l.Group, Name: l.Name, Mark: mark}
		lv.NewGroup = len(*out) == 0 || (*out)[len(*out)-1].Group != l.Group
		var words []string
		for _, s := range l.Spans {
			label := fmt.Sprintf("%s to %s: %s", seconds(s.From), seconds(s.To), s.Label)
			lv.Spans = append(lv.Spans, spanView{
				s.Kind, label,
				fmt.Sprintf("%.2f", s.From.Seconds()*scale),
				fmt.Sprintf("%.2f", max((s.To-s.From).Seconds()*scale, 0.8)),
			})
			if len(words) < 40 { // what a screen reader would still listen to
				words = append(words, label)
			}
		}
		lv.Text = l.Name + ": " + strings.Join(words, "; ")
		*out = append(*out, lv)
	}
	return shown, folded
}
