// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedpollard/pollard/internal/status"
)

// The metric has every state and no other, and alerts, the dashboard and the
// documentation name no other.
func TestStatesOfMetrics(t *testing.T) {
	m := newMetrics(func() (status.Summary, bool) { return status.Summary{}, true })
	registry := prometheus.NewRegistry()
	if err := m.register(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []status.State
	for _, family := range families {
		if family.GetName() != "pollard_feeds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			got = append(got, status.State(metric.GetLabel()[0].GetValue()))
		}
	}
	want := slices.Clone(status.States)
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the states are %q, want %q", got, want)
	}
	named := regexp.MustCompile(`state\\?!?="?\\?"?([a-z-]+)`)
	for _, file := range []string{"packaging/alerts.yaml", "packaging/dashboard.json", "packaging/alerts_test.yaml"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			if !status.State(match[1]).Valid() {
				t.Errorf("%s names the state %q", file, match[1])
			}
		}
	}
}
