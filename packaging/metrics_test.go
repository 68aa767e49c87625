// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Alerts fire when they should, and Prometheus takes the queries of the dashboard. A test of package
// poller compares both with the metrics that there are.
func TestPrometheus(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	queries, err := json.Marshal(dashboardQueries(t)) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(rules, queries, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"test", "rules", "alerts_test.yaml"}, {"check", "rules", "alerts.yaml"}, {"check", "rules", "--lint=none", rules}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// dashboardQueries returns recording rules with the expressions of all panels, with Grafana's
// variables filled in.
func dashboardQueries(t *testing.T) any {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1m", "$job", "pollard")
	var rules []map[string]string
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for _, target := range p.Targets {
			rules = append(rules, map[string]string{"record": "query", "expr": fill.Replace(target.Expr)})
		}
	}
	if len(rules) < 10 {
		t.Fatalf("only %d queries", len(rules))
	}
	return map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}}
}
