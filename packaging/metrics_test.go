// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/loopback"
	"github.com/feedpollard/pollard/internal/origintest"
)

// patience bounds how long the tests wait for servers that they start.
const patience = 2 * time.Minute

// Every query of the dashboard and every metric of the alerts has data in a
// Prometheus that scrapes an instance with readers.
func TestMetrics(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed")
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	if out, err := exec.Command(promtool, "test", "rules", "alerts_test.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
	origin := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		if r.URL.Path != "/feed.xml" {
			return origintest.Status(http.StatusNotFound)
		}
		return origintest.OK(origintest.Feed(1, ""))
	}}
	site := origin.Start(t)
	admin, gateway := startPollard(t)
	api := startPrometheus(t, prometheus, admin)

	queries := append(dashboardQueries(t), alertSelectors(t)...)
	missing := queries
	for began := time.Now(); ; time.Sleep(time.Second) {
		// New feeds each time, so that all rates go on.
		for _, path := range []string{"/feed.xml", "/none.xml"} {
			get(t, fmt.Sprintf("%s/%s%s?%d", gateway, site.URL, path, time.Now().UnixNano()))
		}
		var left []string
		for _, q := range missing {
			if !hasData(t, api, q) {
				left = append(left, q)
			}
		}
		if missing = left; len(missing) == 0 {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("%d of %d queries have no data after %v:\n%s", len(missing), len(queries), patience, strings.Join(missing, "\n"))
		}
	}
	checkRules(t, api)
}

// dashboardQueries are the expressions of all panels, with Grafana's variables filled in.
func dashboardQueries(t *testing.T) (queries []string) {
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
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries = append(queries, fill.Replace(target.Expr))
		}
	}
	if len(queries) < 10 {
		t.Fatalf("only %d queries", len(queries))
	}
	return queries
}

var selector = regexp.MustCompile(`\b(?:pollard_\w+|up)(?:\{[^}]*\})?`)

// alertSelectors are the series that the alerts look at.
func alertSelectors(t *testing.T) (selectors []string) {
	t.Helper()
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "pollard_") || strings.Contains(line, "up{") {
			selectors = append(selectors, selector.FindAllString(line, -1)...)
		}
	}
	if len(selectors) < 5 {
		t.Fatalf("only %d selectors: %q", len(selectors), selectors)
	}
	return selectors
}

// startPollard runs a gateway and returns the addresses of its admin endpoint and of
// itself.
func startPollard(t *testing.T) (admin, gateway string) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "pollard")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/pollard").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	admin, site := loopback.FreeAddress(t), loopback.FreeAddress(t)
	config := fmt.Sprintf(`{
	admin %s
	pollard {
		store sqlite %s
		private_upstreams 127.0.0.0/8
		host 127.0.0.1 {
			spacing 1ms
		}
	}
}
http://%s {
	feed_gateway
}
`, admin, filepath.Join(dir, "store"), site)
	path := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir, binary, "run", "--config", path)
	waitFor(t, "http://"+site+"/")
	return admin, "http://" + site
}

// startPrometheus runs a Prometheus that scrapes an instance, and returns the address
// of its API.
func startPrometheus(t *testing.T, binary, target string) string {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: pollard
    static_configs: [{targets: [%q]}]
`, rules, target)
	path := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := loopback.FreeAddress(t)
	start(t, dir, binary, "--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	waitFor(t, "http://"+address+"/-/ready")
	return "http://" + address + "/api/v1"
}

// start runs a program for as long as the test does.
func start(t *testing.T, dir, binary string, args ...string) {
	t.Helper()
	var log strings.Builder
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text := log.String()
			t.Logf("%s:\n%s", filepath.Base(binary), text[max(0, len(text)-4000):])
		}
	})
}

func waitFor(t *testing.T, target string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(target)
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode < 500 {
			return
		}
	}
	t.Fatalf("nothing answers at %s", target)
}

func get(t *testing.T, target string) []byte {
	t.Helper()
	resp, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// hasData reports whether a query has a value that is a number.
func hasData(t *testing.T, api, query string) bool {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	body := get(t, api+"/query?query="+url.QueryEscape(query))
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v %s", query, err, body)
	}
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return true
		}
	}
	return false
}

// checkRules fails where an alert cannot be evaluated on real data.
func checkRules(t *testing.T, api string) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal(get(t, api+"/rules"), &answer); err != nil || len(answer.Data.Groups) != 1 {
		t.Fatalf("rules: %v, %+v", err, answer)
	}
	for _, r := range answer.Data.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("alert %s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
}
