// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// Behind nginx, a page whose name resolves to the proxy gets nothing that clients at home alone may
// have, whatever X-Forwarded-Host its script sends and whichever name nginx passes on.
func TestNamesBehindNginx(t *testing.T) {
	t.Parallel()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	c := start(t, setup{site: "feed_gateway", anyHost: true, servers: "trusted_proxies static 127.0.0.0/8"})
	keeps, replaces := loopback.FreeAddress(t), loopback.FreeAddress(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	stage.WriteFile(t, file, strings.NewReplacer("DIR", dir, "KEEPS", keeps, "REPLACES", replaces, "POLLARD", c.address).Replace(`
daemon off; master_process off; pid DIR/pid; error_log DIR/error;
events { worker_connections 64; }
http {
	access_log off; client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
	proxy_set_header X-Forwarded-For $remote_addr;
	server { listen KEEPS; location / { proxy_pass http://POLLARD; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; } }
	server { listen REPLACES; location / { proxy_pass http://POLLARD; proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Forwarded-For $remote_addr; } }
}
`))
	proxy := exec.Command(nginx, "-c", file, "-e", filepath.Join(dir, "error"))
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = proxy.Process.Kill(); _ = proxy.Wait() }()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", replaces); err == nil {
			conn.Close()
			break
		}
	}
	for _, tt := range []struct{ name, proxy, host, forwarded, want string }{
		{"a name of the house", keeps, "feeds.home.arpa", "", `"gateway": "http://feeds.home.arpa/"`},
		{"a stranger's name", keeps, "evil.example.org", "", "403"},
		{"a stranger's name, and a script that sends another", keeps, "evil.example.org", "feeds.home.arpa", "403"},
		{"a name of the house, replaced", replaces, "feeds.home.arpa", "", `"gateway": "http://feeds.home.arpa/"`},
		{"a stranger's name, replaced", replaces, "evil.example.org", "", "403"},
		{"a stranger's name, replaced, and a script that sends another", replaces, "evil.example.org", "feeds.home.arpa", "403"},
	} {
		r, err := http.NewRequest("GET", "http://"+tt.proxy+"/-/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		r.Header.Set("Accept", "application/json")
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-Host", tt.forwarded)
		}
		got, err := do(r)
		if err != nil || (tt.want == "403") != (got.Status == 403) || got.Status != 403 && !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s: %v %v, want %s", tt.name, got, err, tt.want)
		}
	}
}
