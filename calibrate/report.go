package calibrate

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvfleet/calibrate/fit"
	"kvfleet/calibrate/judge"
	"kvfleet/calibrate/replay"
	"kvfleet/calibrate/steps"
	"kvfleet/traces"
	"kvfleet/traces/report"
)

// WriteReport writes the calibration into a directory: report.md, report.html
// (one file, no network), estimates.csv, heldout.csv, steps.csv, one
// requests-N.csv for each trace, and every figure as SVG with the JSON it is
// drawn from. It returns the files' paths.
func (r *Result) WriteReport(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	figures := r.figures()
	files := map[string][]byte{"report.md": []byte(r.markdown(figures))}
	page, err := r.html(figures)
	if err != nil {
		return nil, err
	}
	files["report.html"] = page
	for _, f := range figures {
		files[f.name+".svg"] = f.svg
		text, err := json.MarshalIndent(f.data, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("%s.json: %w", f.name, err)
		}
		files[f.name+".json"] = append(text, '\n')
	}
	files["estimates.csv"] = r.estimatesCSV()
	if len(r.InSample)+len(r.Held) > 0 {
		files["heldout.csv"] = r.heldoutCSV()
	}
	if r.Steps != nil {
		files["steps.csv"] = r.stepsCSV()
	}
	for i, rec := range r.Recordings {
		var b bytes.Buffer
		if err := judge.WriteRequests(&b, rec, r.Outcomes[i]); err != nil {
			return nil, err
		}
		files[fmt.Sprintf("requests-%d.csv", i+1)] = b.Bytes()
	}
	var paths []string
	var faults []error
	for _, name := range sortedKeys(files) {
		path := filepath.Join(dir, name)
		faults = append(faults, traces.WriteWhole(path, files[name]))
		paths = append(paths, path)
	}
	return paths, errors.Join(faults...)
}

// A drawing is one figure and what it is drawn from.
type drawing struct {
	name, caption string
	data          any
	svg           []byte
}

func (r *Result) figures() []drawing {
	var out []drawing
	if bars := r.intervals(); len(bars.Bars) > 0 {
		out = append(out, drawing{"intervals", "95% intervals of the measured numbers, as shares of each.", bars, bars.SVG()})
	}
	if r.Steps != nil {
		s := r.stepErrors()
		out = append(out, drawing{"steps", "Error of every step shape's time, in sample, over its measured time.", s, s.SVG()})
	}
	for i, rec := range r.Recordings {
		for _, m := range []struct {
			slug, name string
			measured   func(*traces.Row) int64
			simulated  func(*replay.Outcome) int64
		}{
			{"ttft", "TTFT", (*traces.Row).TTFT, func(o *replay.Outcome) int64 { return o.TTFT }},
			{"e2e", "End to end", (*traces.Row).E2E, func(o *replay.Outcome) int64 { return o.E2E }},
		} {
			s := quantiles(m.name, filepath.Base(rec.Path), rec, r.Outcomes[i], m.measured, m.simulated)
			name := fmt.Sprintf("%s-%d", m.slug, i+1)
			out = append(out, drawing{name, fmt.Sprintf("%s of %s: simulated against measured, request by request and quantile by quantile.", m.name, filepath.Base(rec.Path)), s, s.SVG()})
		}
	}
	return out
}

// intervals are the bars of what was measured, without the rungs.
func (r *Result) intervals() report.Bars {
	b := report.Bars{Figure: "intervals", Title: "What the rows tell", Subtitle: "95% intervals as shares of the value (logarithmic)"}
	for _, e := range r.short() {
		if e.Verdict != fit.Measured || e.Value <= 0 || e.Low >= e.High {
			continue
		}
		b.Bars = append(b.Bars, report.Bar{Name: e.Path, Text: figure(e.Value) + " " + e.Unit,
			Low: report.Number(math.Max(1e-9, e.Low/e.Value)), High: report.Number(e.High / e.Value)})
	}
	return b
}

func (r *Result) stepErrors() report.Scatter {
	s := report.Scatter{Figure: "step_errors", Title: "Step times: error of every shape", Subtitle: filepath.Base(r.Inputs.Steps) + ", busy time, in sample",
		X: report.Axis{Title: "measured busy time (ms)", Logarithmic: true}, Y: report.Axis{Title: "error (%)"}}
	at := map[string]int{}
	for _, x := range r.Steps.Residuals {
		name := kindOf(&x.Row)
		i, ok := at[name]
		if !ok {
			i = len(s.Series)
			at[name] = i
			s.Series = append(s.Series, report.Series{Name: name})
		}
		s.Series[i].X = append(s.Series[i].X, report.Number(x.Row.BusyMS))
		s.Series[i].Y = append(s.Series[i].Y, report.Number(100*x.Error))
	}
	return s
}

func kindOf(r *steps.Row) string {
	switch {
	case r.PrefillTokens == 0:
		return "decode only"
	case r.DecodeRequests == 0:
		return "prefill only"
	}
	return "mixed"
}

// quantiles sets simulated beside measured, request by request and sorted.
func quantiles(name, trace string, rec *replay.Recording, out []replay.Outcome, measured func(*traces.Row) int64, simulated func(*replay.Outcome) int64) report.Scatter {
	s := report.Scatter{Figure: "quantiles", Title: name + ", simulated against measured", Subtitle: trace, Diagonal: true,
		X: report.Axis{Title: "measured (ms)", Logarithmic: true}, Y: report.Axis{Title: "simulated (ms)", Logarithmic: true}}
	var a, b []float64
	for i := range rec.Rows {
		x, y := measured(&rec.Rows[i]), simulated(&out[i])
		if rec.Judged[i] && x != traces.None && y != traces.None {
			a, b = append(a, float64(x)/1e6), append(b, float64(y)/1e6)
		}
	}
	each := func(v []float64) []report.Number {
		out := make([]report.Number, len(v))
		for i := range v {
			out[i] = report.Number(v[i])
		}
		return out
	}
	s.Series = append(s.Series, report.Series{Name: "requests", X: each(a), Y: each(b)})
	slices.Sort(a)
	slices.Sort(b)
	s.Series = append(s.Series, report.Series{Name: "quantiles", X: each(a), Y: each(b)})
	return s
}

func (r *Result) estimatesCSV() []byte {
	rows := [][]string{{"path", "unit", "value", "low", "high", "verdict", "base", "rows", "how", "advice"}}
	for _, e := range r.Estimates {
		base := ""
		if v, err := r.Inputs.Base.Number(e.Path); err == nil {
			base = number(v)
		}
		low, high := "", ""
		if e.Low < e.High {
			low, high = number(e.Low), number(e.High)
		}
		rows = append(rows, []string{e.Path, e.Unit, number(e.Value), low, high, e.Verdict.String(), base, e.Rows, e.How, e.Advice})
	}
	return csvOf(rows)
}

func (r *Result) heldoutCSV() []byte {
	rows := [][]string{{"trace", "set", "metric", "n", "mape", "mean_measured_ms", "mean_simulated_ms", "mean_error", "p50_error", "p90_error", "p99_error", "ks", "repeat_mape", "repeat_mean_error",
		"throughput_measured", "throughput_simulated", "hit_rate_measured", "hit_rate_simulated", "cached_equal"}}
	add := func(set string, all []*judge.Comparison) {
		for _, c := range all {
			for i := range c.Metrics {
				m := &c.Metrics[i]
				row := []string{c.Name, set, m.Name, strconv.Itoa(m.N), number(m.MAPE), number(m.Measured.Mean), number(m.Simulated.Mean), number(m.MeanError()),
					number(m.Simulated.P50/m.Measured.P50 - 1), number(m.Simulated.P90/m.Measured.P90 - 1), number(m.Simulated.P99/m.Measured.P99 - 1), number(m.KS), "", "",
					number(c.Throughput), number(c.SimulatedThroughput), number(float64(c.HitRate)), number(float64(c.SimulatedHitRate)), number(float64(c.CachedEqual))}
				if f := m.Floor; f != nil {
					row[12], row[13] = number(f.MAPE), number(f.Mean)
				}
				rows = append(rows, row)
			}
		}
	}
	add("fitted", r.InSample)
	add("held out", r.Held)
	return csvOf(rows)
}

func (r *Result) stepsCSV() []byte {
	rows := [][]string{{"kind", "busy_ms", "error", "held_out_error"}}
	for _, x := range r.Steps.Residuals {
		rows = append(rows, []string{kindOf(&x.Row), number(x.Row.BusyMS), number(x.Error), number(x.HeldOut)})
	}
	return csvOf(rows)
}

// number is a figure of a CSV file; empty if it is none.
func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 8, 64)
}

func csvOf(rows [][]string) []byte {
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// inputs lists what the calibration was made from.
func (r *Result) inputs() []string {
	in := &r.Inputs
	out := []string{"base fleet: " + in.BaseName}
	for _, x := range []struct{ what, path string }{{"settings", in.Settings}, {"step log", in.Steps}, {"telemetry", in.Thermal}} {
		if x.path != "" {
			out = append(out, x.what+": "+x.path)
		}
	}
	for _, path := range in.Traces {
		out = append(out, "trace, fitted: "+path)
	}
	for _, path := range in.Hold {
		out = append(out, "trace, held out: "+path)
	}
	return out
}

func (r *Result) markdown(figures []drawing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Calibration of %s\n\n", r.Fleet.Name)
	for _, line := range r.inputs() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	list := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	list("What the data cannot say", r.Refused)
	list("Warnings, and what was left out", r.Warnings)
	fmt.Fprintf(&b, "\n## Results\n\n```\n%s```\n", r.Summary())
	fmt.Fprintf(&b, "\n## Every number\n\n| number | value | 95%% interval | unit | verdict | rows | how |\n|---|---|---|---|---|---|---|\n")
	for _, e := range r.Estimates {
		how := e.How
		if e.Advice != "" {
			how += " (to tell it: " + e.Advice + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", e.Path, figure(e.Value), interval(e), e.Unit, e.Verdict, e.Rows, strings.ReplaceAll(how, "|", "/"))
	}
	if changes := r.Changes(); len(changes) > 0 {
		fmt.Fprintf(&b, "\n## Changed against the base\n\n| number | base | now |\n|---|---|---|\n")
		for _, c := range changes {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Path, figure(c.Before), figure(c.After))
		}
	}
	fmt.Fprint(&b, "\n## Figures\n")
	for _, f := range figures {
		fmt.Fprintf(&b, "\n![%s](%s.svg)\n\n%s\n", f.caption, f.name, f.caption)
	}
	return b.String()
}

// page is the HTML report: one file, its figures inline.
const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Calibration of {{.Fleet}}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;color:#1f2933;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem} h2{font-size:1.2rem;margin-top:2.2rem}
pre{overflow-x:auto;background:#f5f7f9;padding:1rem;border-radius:8px;font-size:12px;line-height:1.35}
table{border-collapse:collapse;font-size:13px;width:100%} td,th{border-bottom:1px solid #e3e7eb;padding:.3rem .5rem;text-align:left;vertical-align:top}
td.n{text-align:right;white-space:nowrap} code{font-size:12px} figure{margin:1.5rem 0} figure svg{max-width:100%;height:auto;border:1px solid #e3e7eb;border-radius:8px}
figcaption{color:#52606d;font-size:13px} .wide{overflow-x:auto} .prior td{color:#7b8794}
</style></head><body>
<h1>Calibration of {{.Fleet}}</h1>
<ul>{{range .Inputs}}<li>{{.}}</li>{{end}}</ul>
{{if .Refused}}<h2>What the data cannot say</h2><ul>{{range .Refused}}<li>{{.}}</li>{{end}}</ul>{{end}}
{{if .Warnings}}<h2>Warnings, and what was left out</h2><ul>{{range .Warnings}}<li>{{.}}</li>{{end}}</ul>{{end}}
<h2>Results</h2><pre>{{.Summary}}</pre>
<h2>Figures</h2>
{{range .Figures}}<figure>{{.SVG}}<figcaption>{{.Caption}}</figcaption></figure>
{{end}}
<h2>Every number</h2><div class="wide"><table><tr><th>number</th><th>value</th><th>95% interval</th><th>unit</th><th>verdict</th><th>rows</th><th>how</th></tr>
{{range .Estimates}}<tr{{if ne .Verdict "measured"}} class="prior"{{end}}><td><code>{{.Path}}</code></td><td class="n">{{.Value}}</td><td class="n">{{.Interval}}</td><td>{{.Unit}}</td><td>{{.Verdict}}</td><td>{{.Rows}}</td><td>{{.How}}{{if .Advice}} <em>To tell it: {{.Advice}}.</em>{{end}}</td></tr>
{{end}}</table></div>
{{if .Changes}}<h2>Changed against the base</h2><table><tr><th>number</th><th>base</th><th>now</th></tr>
{{range .Changes}}<tr><td><code>{{.Path}}</code></td><td class="n">{{.Before}}</td><td class="n">{{.After}}</td></tr>{{end}}</table>{{end}}
</body></html>
`

func (r *Result) html(figures []drawing) ([]byte, error) {
	type row struct{ Path, Value, Interval, Unit, Verdict, Rows, How, Advice string }
	type change struct{ Path, Before, After string }
	type shown struct {
		SVG     template.HTML
		Caption string
	}
	data := struct {
		Fleet, Summary            string
		Inputs, Refused, Warnings []string
		Figures                   []shown
		Estimates                 []row
		Changes                   []change
	}{Fleet: r.Fleet.Name, Summary: r.Summary(), Inputs: r.inputs(), Refused: r.Refused, Warnings: r.Warnings}
	for i, f := range figures {
		svg := string(f.svg)
		if at := strings.Index(svg, "<svg"); at >= 0 {
			svg = svg[at:]
		}
		// Ids are one page's: two figures' patterns must not share one.
		svg = strings.ReplaceAll(svg, `id="hatch"`, fmt.Sprintf(`id="hatch%d"`, i))
		svg = strings.ReplaceAll(svg, "url(#hatch)", fmt.Sprintf("url(#hatch%d)", i))
		data.Figures = append(data.Figures, shown{template.HTML(svg), f.caption})
	}
	for _, e := range r.Estimates {
		data.Estimates = append(data.Estimates, row{e.Path, figure(e.Value), interval(e), e.Unit, e.Verdict.String(), e.Rows, e.How, e.Advice})
	}
	for _, c := range r.Changes() {
		data.Changes = append(data.Changes, change{c.Path, figure(c.Before), figure(c.After)})
	}
	t, err := template.New("report").Parse(page)
	if err != nil {
		panic(err) // the text is ours
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.Bytes(), err
}
