// Command promcheck does what `promtool check metrics`, `check rules` and `test rules` do, with Prometheus' own parser, engine and linter, in a
// third of the time that promtool takes to compile: see docs/adr/0062-alerts-are-tested.md. It reads JSON from standard input and writes JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Rules are evaluated once a minute, as in most installations.
const interval = time.Minute

type input struct {
	// The text of a process's /metrics, to lint.
	Metrics string `json:"metrics"`
	// Expressions, of which the names of metrics are wanted.
	Expressions []string `json:"expressions"`
	// A file of rules, and scenarios to evaluate it with.
	Rules     string     `json:"rules"`
	Scenarios []scenario `json:"scenarios"`
}

type scenario struct {
	// Series in promtool's notation, one value a minute.
	Series map[string]string `json:"series"`
	// When the firing alerts are wanted, for example 30m.
	At string `json:"at"`
}

type output struct {
	Problems []string   `json:"problems"`
	Metrics  [][]string `json:"metrics"`
	// By scenario.
	Alerts [][]alert `json:"alerts"`
}

type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	out := output{Problems: []string{}, Metrics: [][]string{}, Alerts: [][]alert{}}
	problems, err := promlint.New(strings.NewReader(in.Metrics)).Lint()
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	for _, problem := range problems {
		out.Problems = append(out.Problems, problem.Metric+": "+problem.Text)
	}
	for _, expression := range in.Expressions {
		names, err := metricsOf(expression)
		if err != nil {
			return fmt.Errorf("%s: %w", expression, err)
		}
		out.Metrics = append(out.Metrics, names)
	}
	groups, errs := rulefmt.Parse([]byte(in.Rules), false, model.LegacyValidation)
	for _, err := range errs {
		out.Problems = append(out.Problems, err.Error())
	}
	for _, scenario := range in.Scenarios {
		alerts, err := evaluate(groups, scenario)
		if err != nil {
			return err
		}
		out.Alerts = append(out.Alerts, alerts)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func metricsOf(expression string) ([]string, error) {
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		return nil, err
	}
	names := []string{}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
		}
		return nil
	})
	return names, nil
}

func evaluate(groups *rulefmt.RuleGroups, of scenario) ([]alert, error) {
	end, err := model.ParseDuration(of.At)
	if err != nil {
		return nil, err
	}
	data, err := load(of.Series)
	if err != nil {
		return nil, err
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
	})
	firing := []alert{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Record != "" || rule.KeepFiringFor != 0 {
				return nil, fmt.Errorf("%s%s: recording rules and keep_firing_for are not supported", rule.Record, rule.Alert)
			}
			found, err := firingOf(rule, engine, data, time.Duration(end))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", rule.Alert, err)
			}
			firing = append(firing, found...)
		}
	}
	return firing, nil
}

// firingOf evaluates a rule once a minute from the beginning, as Prometheus does.
func firingOf(rule rulefmt.Rule, engine *promql.Engine, data series, end time.Duration) ([]alert, error) {
	since := map[string]time.Duration{}
	var result promql.Vector
	for at := time.Duration(0); at <= end; at += interval {
		query, err := engine.NewInstantQuery(context.Background(), data, nil, rule.Expr, time.Unix(0, 0).Add(at))
		if err != nil {
			return nil, err
		}
		answer := query.Exec(context.Background())
		if answer.Err != nil {
			return nil, answer.Err
		}
		vector, ok := answer.Value.(promql.Vector)
		if !ok {
			return nil, fmt.Errorf("the expression is a %s, not a vector", answer.Value.Type())
		}
		active := map[string]time.Duration{}
		for _, sample := range vector {
			key := sample.Metric.String()
			active[key] = at
			if before, ok := since[key]; ok {
				active[key] = before
			}
		}
		since, result = active, append(promql.Vector(nil), vector...)
		query.Close()
	}
	firing := []alert{}
	for _, sample := range result {
		if end-since[sample.Metric.String()] < time.Duration(rule.For) {
			continue
		}
		found, err := alertOf(rule, sample)
		if err != nil {
			return nil, err
		}
		firing = append(firing, found)
	}
	return firing, nil
}

func alertOf(rule rulefmt.Rule, sample promql.Sample) (alert, error) {
	own := sample.Metric.Map()
	delete(own, labels.MetricName)
	expand := func(text string) (string, error) {
		data := template.AlertTemplateData(own, nil, "", sample)
		query := func(context.Context, string, time.Time) (promql.Vector, error) {
			return nil, fmt.Errorf("queries in annotations are not supported")
		}
		defs := "{{$labels := .Labels}}{{$value := .Value}}"
		return template.NewTemplateExpander(context.Background(), defs+text, rule.Alert, data, 0, query, &url.URL{}, nil).Expand()
	}
	result := alert{Labels: map[string]string{"alertname": rule.Alert}, Annotations: map[string]string{}}
	for name, value := range own {
		result.Labels[name] = value
	}
	for name, text := range rule.Labels {
		value, err := expand(text)
		if err != nil {
			return alert{}, err
		}
		result.Labels[name] = value
	}
	for name, text := range rule.Annotations {
		value, err := expand(text)
		if err != nil {
			return alert{}, err
		}
		result.Annotations[name] = value
	}
	return result, nil
}

// series is a queryable storage of all samples of a scenario.
type series []storage.Series

func load(written map[string]string) (series, error) {
	loaded := series{}
	for name, values := range written {
		metric, sequence, err := parser.ParseSeriesDesc(name + " " + values)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, values, err)
		}
		samples := []chunks.Sample{}
		for minute, value := range sequence {
			if !value.Omitted {
				samples = append(samples, sample{at: int64(minute) * interval.Milliseconds(), value: value.Value})
			}
		}
		loaded = append(loaded, storage.NewListSeries(metric, samples))
	}
	sort.Slice(loaded, func(i, j int) bool { return labels.Compare(loaded[i].Labels(), loaded[j].Labels()) < 0 })
	return loaded, nil
}

func (all series) Querier(_, _ int64) (storage.Querier, error) {
	return querier{storage.NoopQuerier(), all}, nil
}

type querier struct {
	storage.Querier
	all series
}

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{next: -1}
	for _, one := range q.all {
		if matches(one.Labels(), matchers) {
			found.series = append(found.series, one)
		}
	}
	return found
}

func matches(of labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(of.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

type seriesSet struct {
	series series
	next   int
}

func (s *seriesSet) Next() bool                        { s.next++; return s.next < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.next] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
