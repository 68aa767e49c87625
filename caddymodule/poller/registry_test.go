// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/upstream"
)

// gathered returns the metrics of a registry, with the values of their labels.
func gathered(t *testing.T, registry *prometheus.Registry) map[string][]string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string][]string)
	for _, family := range families {
		name := family.GetName()
		values[name] = nil
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				values[name] = append(values[name], label.GetValue())
			}
		}
	}
	return values
}

var (
	selector = regexp.MustCompile(`\b(pollard_\w+?)(?:_bucket|_sum|_count)?(?:\{([^}]*)\}|\W)`)
	matcher  = regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)\\?"([^"\\]*)`)
)

// Alerts, their test and the dashboard name no other metrics, states, outcomes, results and operations
// than there are.
func TestMetricsOfAlertsAndDashboard(t *testing.T) {
	m := newMetrics(func() (status.Summary, bool) { return status.Summary{}, true })
	registry := prometheus.NewRegistry()
	if err := m.register(registry); err != nil {
		t.Fatal(err)
	}
	known := gathered(t, registry)
	var states []string
	for _, state := range status.States {
		states = append(states, string(state))
	}
	slices.Sort(states)
	if got := known["pollard_feeds"]; !slices.Equal(got, states) {
		t.Errorf("the states are %q, want %q", got, states)
	}
	for _, file := range []string{"alerts.yaml", "dashboard.json", "alerts_test.yaml"} {
		text, err := os.ReadFile("../../packaging/" + file)
		if err != nil {
			t.Fatal(err)
		}
		series := selector.FindAllStringSubmatch(string(text), -1)
		if len(series) < 10 {
			t.Errorf("%s names only %d metrics", file, len(series))
		}
		for _, s := range series {
			values, ok := known[s[1]]
			if !ok {
				t.Errorf("%s names the metric %s", file, s[1])
			}
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				for value := range strings.SplitSeq(m[2], "|") {
					if !slices.Contains([]string{"job", "instance", "le"}, m[1]) && !slices.Contains(values, value) {
						t.Errorf("%s names %s with the %s %q", file, s[1], m[1], value)
					}
				}
			}
		}
	}
}

// All engines of a process, and all apps of a configuration, may meet in a registry.
func TestRegisteringTwice(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for range 2 {
		e := newEngine(Parts{Origin: upstream.New()})
		for range 2 {
			if err := e.metrics.register(registry); err != nil {
				t.Error(err)
			}
		}
	}
	// An engine that is not open has no gauges.
	want := []string{
		"pollard_origin_bytes_total", "pollard_poll_duration_seconds", "pollard_polls_total",
		"pollard_requests_total", "pollard_served_bytes_total", "pollard_store_duration_seconds",
	}
	if got := slices.Sorted(maps.Keys(gathered(t, registry))); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
