// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// peer is a web server of the machine's, as an origin.
type peer struct {
	binary string
	args   func(dir string) []string
	config func(dir, address string) string
	// learns is set where it does not recognise its own ETags at first.
	learns bool
}

// Both compress and log one line per request: status, If-None-Match, coding.
var peers = []peer{
	{binary: "nginx", args: func(dir string) []string {
		return []string{"-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", filepath.Join(dir, "config")}
	}, config: func(dir, address string) string {
		return fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
	types { application/rss+xml xml; }
	log_format poll "$status $http_if_none_match|$sent_http_content_encoding";
	access_log %[1]s/access.log poll;
	client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
	gzip on; gzip_types application/rss+xml; gzip_min_length 1;
	server { listen %[2]s; root %[1]s/www; }
}
`, dir, address)
	}},
	{binary: "apache2", learns: true, args: func(dir string) []string {
		return []string{"-DFOREGROUND", "-d", dir, "-f", filepath.Join(dir, "config")}
	}, config: func(dir, address string) string {
		user := ""
		if os.Geteuid() == 0 {
			user = "User www-data\nGroup www-data\n"
		}
		var modules strings.Builder
		for _, name := range []string{"mpm_event", "authz_core", "mime", "filter", "deflate"} {
			fmt.Fprintf(&modules, "LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", name, name)
		}
		return fmt.Sprintf(`%[3]s%[4]sServerName localhost
Listen %[2]s
PidFile %[1]s/pid
ErrorLog %[1]s/error.log
DefaultRuntimeDir %[1]s
StartServers 1
MinSpareThreads 1
DocumentRoot %[1]s/www
<Directory %[1]s/www>
	Require all granted
</Directory>
TypesConfig /dev/null
AddType application/rss+xml .xml
AddOutputFilterByType DEFLATE application/rss+xml
LogFormat "%%>s %%{If-None-Match}i|%%{Content-Encoding}o" poll
CustomLog %[1]s/access.log poll
`, dir, address, modules.String(), user)
	}},
}

// Real servers answer polls with 304 once it is known what they can compare, and
// what changes there comes through.
func TestPeers(t *testing.T) {
	for _, p := range peers {
		t.Run(p.binary, func(t *testing.T) { p.test(t) })
	}
}

func (p *peer) test(t *testing.T) {
	binary := lookUp(p.binary)
	if binary == "" {
		t.Skipf("%s is not installed", p.binary)
	}
	dir := openDirectory(t)
	origin, address := loopback.FreeAddress(t), loopback.FreeAddress(t)
	write(t, filepath.Join(dir, "config"), p.config(dir, origin), time.Now())
	feed := filepath.Join(dir, "www", "feed.xml")
	began := time.Now().Add(-24 * time.Hour)
	write(t, feed, peerFeed(1), began)
	run(t, origin, dir, exec.Command(binary, p.args(dir)...))
	gateway := serveFeed(t, "http://"+origin+"/feed.xml", address)

	want(t, "the first version comes through", dir, func() bool { return strings.Contains(gateway(), "Entry 1<") })
	if p.learns {
		// Three full answers with the very ETag that was sent, and Apache's ETag is left out.
		want(t, "the date alone is sent, and is enough", dir, func() bool { gateway(); return p.logged(t, dir, "304 -|") })
	} else {
		want(t, "the second poll is answered with 304", dir, func() bool { return gateway() != "" && len(p.log(t, dir)) >= 2 })
		if lines := p.log(t, dir); !strings.HasPrefix(lines[1], "304 ") {
			t.Errorf("the polls were answered %q", lines)
		}
	}
	if lines := p.log(t, dir); !strings.HasSuffix(lines[0], "|gzip") || !strings.HasPrefix(lines[0], "200 -") {
		t.Errorf("the first poll was answered %q, want a full one with gzip", lines[0])
	}
	for version := 2; version <= 3; version++ {
		write(t, feed, peerFeed(version), began.Add(time.Duration(version)*time.Hour))
		entry := fmt.Sprintf("Entry %d<", version)
		want(t, entry+" comes through", dir, func() bool { return strings.Contains(gateway(), entry) })
		count := len(p.log(t, dir))
		want(t, "the polls after it are answered with 304", dir, func() bool {
			gateway()
			lines := p.log(t, dir)
			return len(lines) > count+1 && strings.HasPrefix(lines[len(lines)-1], "304 ")
		})
	}
	t.Logf("the polls were answered\n%s", strings.Join(p.log(t, dir), "\n"))
}

// log is the lines of the server's access log, "-" for what was not there.
func (p *peer) log(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "access.log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

func (p *peer) logged(t *testing.T, dir, prefix string) bool {
	t.Helper()
	for _, line := range p.log(t, dir) {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// serveFeed runs a whole gateway in this process, which polls as fast as it can,
// and returns a function that reads the feed.
func serveFeed(t *testing.T, feed, address string) func() string {
	t.Helper()
	err := stage.LoadCaddyfile(fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	pollard {
		store bolt %s
		min_interval 20ms
		default_interval 20ms
		unvalidated_interval 20ms
		jitter 0
		private_upstreams 127.0.0.0/8
		host 127.0.0.1 {
			spacing 0
		}
	}
}
http://%s {
	feed_gateway {
		feed /feed.xml %s
	}
}
`, storeDirectory(t), address, feed))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func() string {
		resp, err := client.Get("http://" + address + "/feed.xml")
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return ""
		}
		return string(body)
	}
}

// run runs a server until the end of the test, and waits until it listens.
func run(t *testing.T, address, dir string, command *exec.Cmd) {
	t.Helper()
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.Env = append(os.Environ(), "APACHE_RUN_DIR="+dir)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = command.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it takes its children with it
		<-done
		if t.Failed() {
			t.Logf("%s said: %s", command.Path, output.String())
		}
	})
	want(t, command.Path+" listens", dir, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// want waits for a condition.
func want(t *testing.T, what, dir string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			errors, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			access, _ := os.ReadFile(filepath.Join(dir, "access.log"))
			t.Fatalf("not so within 20 s: %s\naccess log:\n%s\nerror log:\n%s", what, access, errors)
		}
	}
}

func peerFeed(version int) string {
	return fmt.Sprintf(`<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><item><title>Entry %d</title><guid isPermaLink="false">%d</guid><description>%s</description></item></channel></rss>`,
		version, version, strings.Repeat("words ", 300))
}

// write replaces a file at once, as publishers do.
func write(t *testing.T, path, text string, modified time.Time) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(fresh, modified, modified); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// openDirectory is a directory with a folder www that servers with another user
// may read: those of [testing.T.TempDir] are closed to them.
func openDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pollard-peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "www"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// lookUp finds a server's binary; Debian's are not on every user's path.
func lookUp(name string) string {
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	return ""
}
