// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/feedpollard/pollard/caddymodule"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Parallel tests wait most of the time: for timeouts, for polls that come due, for a disk.
	_ = flag.Set("test.parallel", "6")
	runOrServe(m)
}

// child is a Caddy in a process of its own.
type child struct {
	t       *testing.T
	dir     string // of its store
	address string // of its site
	admin   string
	file    string
	log     string // file of its log
	env     []string
	command *exec.Cmd
	ended   chan struct{}
}

// setup is what a test writes into the Caddyfile.
type setup struct {
	app     string // lines of the app pollard
	site    string // the site's
	anyHost bool   // the site is for any host
	servers string // of the global option servers
}

// gatewayByURL serves any feed by URL to any client.
const gatewayByURL = "feed_gateway {\n\tclients private\n}\n"

// quick are rules by which a feed is due each second.
const quick = `
	private_upstreams 127.0.0.0/8
	min_interval 1s
	default_interval 1s
	unvalidated_interval 1s
	max_interval 1s
	timeout 2s
	jitter 0
	host * {
		spacing 0
		concurrency 64
	}`

// start starts a Caddy and waits until its site answers.
func start(t *testing.T, s setup) *child {
	t.Helper()
	c := configure(t, s)
	c.start()
	return c
}

// configure makes a Caddy that is not started.
func configure(t *testing.T, s setup) *child {
	t.Helper()
	dir := t.TempDir()
	c := &child{t: t, dir: filepath.Join(dir, "store"), file: filepath.Join(dir, "Caddyfile"), log: filepath.Join(dir, "log"), address: loopback.FreeAddress(t), admin: loopback.FreeAddress(t)}
	site := c.address
	if s.anyHost {
		site = site[strings.LastIndexByte(site, ':'):]
	}
	stage.WriteFile(t, c.file, fmt.Sprintf(`{
	admin %s
	persist_config off
	auto_https off
	servers {
		%s
	}
	grace_period 5s
	log {
		output file %s
		format json
		level DEBUG
	}
	pollard {
		store sqlite %s
		%s
	}
}
http://%s {
	%s
}
`, c.admin, s.servers, c.log, c.dir, s.app, site, s.site))
	return c
}

// feedAt is the path of a feed by its URL.
func feedAt(url string) string { return "/" + url }

// answered is an answer with all of its body.
type answered struct {
	Status int
	Header http.Header
	Body   string
}

func (a answered) String() string { return fmt.Sprintf("%d %.200q", a.Status, a.Body) }

var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       5 * time.Minute,
}

// get asks the site for a path.
func (c *child) get(path string, header ...string) answered {
	c.t.Helper()
	a, err := c.ask("GET", path, header...)
	if err != nil {
		c.t.Errorf("GET %s: %v", path, err)
	}
	return a
}

// ask requests a path, again and again until the feed's first poll has begun.
func (c *child) ask(method, path string, header ...string) (answered, error) {
	for begun := time.Now(); ; {
		a, err := c.askOnce(method, path, header...)
		if err != nil || !queued(a.Header) || time.Since(begun) > 5*time.Minute {
			return a, err
		}
	}
}

func (c *child) askOnce(method, path string, header ...string) (answered, error) {
	r, err := http.NewRequest(method, "http://"+c.address+"/", nil)
	if err != nil {
		return answered{}, err
	}
	path, query, _ := strings.Cut(path, "?")
	r.URL.Opaque, r.URL.RawQuery = path, query // as it is written
	if strings.HasPrefix(path, "//") {
		r.URL.Opaque = "//" + c.address + path // which would be the host
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	return do(r)
}

// queued reports whether an answer is the empty feed that a reader gets if the feed's first
// poll has not begun in time, because the disk or the machine is busy.
func queued(h http.Header) bool {
	return h.Get("Cache-Status") == "Pollard; fwd=miss; detail=host-slot"
}

func do(r *http.Request) (answered, error) { return doBy(client, r) }

func doBy(client *http.Client, r *http.Request) (answered, error) {
	resp, err := client.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answered{resp.StatusCode, resp.Header, string(body)}, err
}

// api asks the admin endpoint.
func (c *child) api(method, path string) answered {
	c.t.Helper()
	r, err := http.NewRequest(method, "http://"+c.admin+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	a, err := do(r)
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
	}
	return a
}

// peak is the peak of the memory of the process, in MiB.
func (c *child) peak() int {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid()))
	if err != nil {
		c.t.Skip("the memory of a process is known on Linux only")
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				c.t.Fatal(err)
			}
			return kilobytes / 1024
		}
	}
	c.t.Fatal("no VmHWM")
	return 0
}

// settle waits until no more goroutines run and no more descriptors are open than these,
// and fails if that does not happen.
func (c *child) settle(goroutines, descriptors int) {
	c.t.Helper()
	var g, d int
	for begun := time.Now(); time.Since(begun) < 3*time.Minute; {
		g, d = c.goroutines(), c.descriptors()
		if g <= goroutines && d <= descriptors {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Errorf("%d goroutines and %d descriptors are left, want %d and %d at most", g, d, goroutines, descriptors)
}

func (c *child) goroutines() int {
	first, err := bufio.NewReader(strings.NewReader(c.api("GET", "/debug/pprof/goroutine?debug=1").Body)).ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(first, "goroutine profile: total ")))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *child) descriptors() int {
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.pid()))
	if err != nil {
		return 0 // it is known on Linux only
	}
	return len(names)
}

// logged is all that the process has logged.
func (c *child) logged() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}
