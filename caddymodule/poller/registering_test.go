// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedpollard/pollard/upstream"
)

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
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, family := range families {
		names[family.GetName()] = true
	}
	// An engine that is not open has no gauges.
	want := []string{
		"pollard_origin_bytes_total", "pollard_poll_duration_seconds", "pollard_polls_total",
		"pollard_requests_total", "pollard_served_bytes_total",
	}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
