// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"os"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/loopback"
)

// The example for Kubernetes shows to the cluster what its probes ask, and nothing else of the admin endpoint.
func TestProbesOfKubernetes(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../../packaging/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(example), "  Caddyfile: |\n")
	text, _, found := strings.Cut(text, "---\n")
	if !found {
		t.Fatal("the example has no Caddyfile")
	}
	c, probes := configure(t, setup{}), loopback.FreeAddress(t)
	text = strings.NewReplacer("\n    ", "\n", "\t\tstore sqlite /var/lib/pollard\n", "", ":8080", ":"+portOf(c.address), ":8081", ":"+portOf(probes),
		"localhost:2019", c.admin).Replace(strings.TrimPrefix(text, "    "))
	p := &page{t: t}
	p.caddy(t, c, text, "")
	eventually(t, "it is never ready", func() bool { return fetch(t, probes, "/pollard/health/ready").Status == 200 })
	for path, want := range map[string]int{
		"/pollard/health/ready": 200, "/pollard/health/live": 200, "/pollard/stats": 404, "/config/": 404, "/pollard/health/../feeds": 404, "/": 404,
	} {
		if a := fetch(t, probes, path); a.Status != want {
			t.Errorf("%s: %v, want %d", path, a, want)
		}
		if strings.HasPrefix(path, "/pollard/health/") && want == 200 && !strings.Contains(string(example), "path: "+path+", port: health}") {
			t.Errorf("no probe asks %s", path)
		}
	}
}
