// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const feed = `<rss version="2.0"><channel><title>T</title><item><title>Good</title><guid>1</guid></item></channel></rss>`

// attack is what a hostile origin does once it has a request.
type attack struct {
	name string
	send func(v *visit)
	// gives is the document that readers may get of it; empty: none.
	gives string
	// any says that readers may get any document made from it.
	any bool
	// slow says that only the timeout ends it.
	slow bool
	// heavy says that it is made either cold or warm.
	heavy bool
}

// visit is a connection that an origin was asked over.
type visit struct {
	net.Conn
	r *http.Request
}

// say writes, and reports whether the other side is there.
func (v *visit) say(raw string) bool {
	_ = v.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, err := v.Write([]byte(raw))
	return err == nil
}

// hang waits until the other side has left.
func (v *visit) hang() {
	_ = v.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, _ = v.Read(make([]byte, 1))
}

// reset resets the connection.
func (v *visit) reset() {
	type lingering interface{ SetLinger(int) error }
	if tcp, ok := v.Conn.(lingering); ok {
		_ = tcp.SetLinger(0)
	}
	v.Close()
}

// The ways in which an origin goes on after what it has said.
func says(raw string) func(*visit) { return func(v *visit) { v.say(raw) } }
func hangs(raw string) func(*visit) {
	return func(v *visit) { v.say(raw); v.hang() }
}
func resets(raw string) func(*visit) {
	return func(v *visit) { v.say(raw); v.reset() }
}

// drips sends one byte of the rest after the other, so slowly that it has no end.
func drips(raw, rest string) func(*visit) {
	return func(v *visit) {
		v.say(raw)
		for _, b := range []byte(rest) {
			time.Sleep(300 * time.Millisecond)
			if !v.say(string(b)) {
				return
			}
		}
		v.hang()
	}
}

// endless repeats a piece until the other side closes the connection. After 256 MiB it
// only waits, and the attack fails by its memory or its time.
func endless(raw, piece string) func(*visit) {
	piece = strings.Repeat(piece, 1+(16<<10)/len(piece))
	return func(v *visit) {
		v.say(raw)
		for sent := 0; sent < 256<<20 && v.say(piece); sent += len(piece) {
		}
		v.hang()
	}
}

// ok is a good answer with more header lines, and with a length.
func ok(header, body string) string {
	return open(header+"Content-Length: "+strconv.Itoa(len(body))+"\r\n", body)
}

// open is a good answer with these header lines and no others that frame it.
func open(header, body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\n" + header + "\r\n" + body
}

func chunked(header, chunks string) string {
	return open(header+"Transfer-Encoding: chunked\r\n", chunks)
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// hostileOrigin answers with attack n: at /cold/<n> always, at /warm/<n> after turn.
type hostileOrigin struct {
	net.Listener
	attacks []attack

	mu     sync.Mutex // guards what follows
	asked  map[string]int
	turned map[string]bool
}

func newHostileOrigin(t *testing.T, attacks []attack) *hostileOrigin {
	t.Helper()
	o := &hostileOrigin{attacks: attacks, asked: make(map[string]int), turned: make(map[string]bool)}
	o.Listener = listen(t, o.serve)
	return o
}

// listen serves connections at a port of all addresses of the machine.
func listen(t *testing.T, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l
}

func (o *hostileOrigin) serve(conn net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	i, err := strconv.Atoi(slices.Concat(parts, []string{"x"})[1])
	if err != nil || i >= len(o.attacks) {
		return
	}
	if o.attacked("/" + parts[0] + "/" + parts[1]) {
		o.attacks[i].send(&visit{conn, r})
		return
	}
	fmt.Fprint(conn, ok("ETag: \"1\"\r\n", feed))
}

// attacked counts a request, and reports whether the answer is the attack.
func (o *hostileOrigin) attacked(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[path]++
	return strings.HasPrefix(path, "/cold/") || o.turned[path]
}

// turn makes a path hostile, and returns how many requests it has had.
func (o *hostileOrigin) turn(path string) (requests int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turned[path] = true
	return o.asked[path]
}

func (o *hostileOrigin) requests(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

// total is how many requests have come.
func (o *hostileOrigin) total() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, asked := range o.asked {
		n += asked
	}
	return n
}

// address is the address of an attack. Slow ones have one with a short timeout.
func (o *hostileOrigin) address(a *attack) string {
	ip := "127.0.0.1"
	if a.slow {
		ip = "127.0.0.2"
	}
	_, port, _ := net.SplitHostPort(o.Addr().String())
	return "http://" + net.JoinHostPort(ip, port)
}

// impatient are rules by which polls of slow attacks end soon, and others have time.
const impatient = `
	private_upstreams 127.0.0.0/8
	min_interval 1s
	default_interval 1s
	unvalidated_interval 1s
	max_interval 1s
	timeout 60s
	jitter 0
	host * {
		spacing 0
		concurrency 64
	}
	host 127.0.0.2 {
		timeout 2s
		spacing 0
		concurrency 64
	}`

// TestHostileOrigins has origins do what they should not. Readers of a feed that was good
// continue to get its last version, others get an error that quotes nothing of the answer,
// and the origin gets one request for each poll.
func TestHostileOrigins(t *testing.T) {
	t.Parallel()
	attackByOrigins(t, slices.Concat(stalls(), endlessAnswers(), framing(), codings(), headers()), 64)
}

// attackByOrigins makes attacks on cold feeds, one after the other, and on warm ones, so
// many at once. A short test makes every fifth.
func attackByOrigins(t *testing.T, attacks []attack, atOnce int) {
	t.Helper()
	if testing.Short() {
		n := 0
		attacks = slices.DeleteFunc(attacks, func(attack) bool { n++; return n%5 != 0 })
	}
	o := newHostileOrigin(t, attacks)
	c := start(t, setup{app: impatient, site: gatewayByURL})
	if a := c.get("/-/about"); a.Status != 200 { // the first request takes more
		t.Fatal(a)
	}
	took := c.costs(maxOriginCPU)
	var all sync.WaitGroup
	took.measure("all slow ones at once", func() {
		for i := range attacks {
			if attacks[i].slow {
				all.Go(func() { o.cold(c, i) })
			}
		}
		all.Wait()
	})
	for i, a := range attacks {
		if !a.slow && !(a.heavy && i%2 == 1) {
			took.measure(a.name, func() { o.cold(c, i) })
		}
	}
	c.forgetPeak()
	few := make(chan struct{}, atOnce)
	for i, a := range attacks {
		if a.heavy && i%2 == 0 {
			continue
		}
		few <- struct{}{}
		all.Go(func() {
			defer func() { <-few }()
			o.warm(c, i)
		})
	}
	all.Wait()
	if peak := c.peak(); peak > raced*(memorySetting+memoryBeside) {
		t.Errorf("all of them at once took %d MiB", peak)
	}
	took.finish(o.total(), fmt.Sprintf("%d attacks, cold and warm (at once: %d MiB)", len(attacks), c.peak()))
}

// cold asks for a feed that was never good.
func (o *hostileOrigin) cold(c *child, i int) {
	a, path := &o.attacks[i], fmt.Sprintf("/cold/%d", i)
	var got answered
	tries := 0
	for ; tries == 0 || o.requests(path) == 0 && tries < 60; tries++ {
		if tries > 0 { // a busy machine had no time for the origin before the poll's timeout
			time.Sleep(time.Second)
		}
		got = c.get(feedAt(o.address(a) + path))
	}
	switch {
	case got.Status == 200 && (a.any || a.gives != "" && got.Body == a.gives):
		checkHeader(c.t, a.name, got.Header)
	case got.Status < 400 || strings.Contains(got.Body, "hunter2") || strings.Contains(got.Body, "<"):
		c.t.Errorf("%s, cold: %v", a.name, got)
	}
	if n := o.requests(path); n == 0 || n > tries {
		c.t.Errorf("%s, cold: %d requests at the origin", a.name, n)
	}
}

// warm asks for a feed that was good until now.
func (o *hostileOrigin) warm(c *child, i int) {
	a, path := &o.attacks[i], fmt.Sprintf("/warm/%d", i)
	var first answered
	for range 100 { // its first poll may be late
		if first = c.get(feedAt(o.address(a) + path)); first.Status == 200 {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if first.Status != 200 || first.Body != feed {
		c.t.Errorf("%s, before the attack: %v", a.name, first)
		return
	}
	before := o.turn(path)
	for range 200 { // until it has been polled again
		got := c.get(feedAt(o.address(a) + path))
		if got.Status != 200 || got.Body != feed && got.Body != a.gives && !a.any {
			c.t.Errorf("%s, warm: %v", a.name, got)
			return
		}
		checkHeader(c.t, a.name, got.Header)
		if o.requests(path) > before {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	c.t.Errorf("%s, warm: it was not polled again", a.name)
}

// allowed are the header fields that readers of a gateway may get.
var allowed = []string{
	"Cache-Control", "Cache-Status", "Content-Length", "Content-Security-Policy", "Content-Type", "Cross-Origin-Resource-Policy", "Date", "Etag",
	"Last-Modified", "Referrer-Policy", "Server", "Vary", "X-Content-Type-Options",
}

// checkHeader fails if a header field of the origin came through.
func checkHeader(t *testing.T, name string, h http.Header) {
	t.Helper()
	for field, values := range h {
		if !slices.Contains(allowed, field) {
			t.Errorf("%s: readers get %s: %q", name, field, values)
		}
		for _, value := range values {
			if len(value) > 1000 || strings.Contains(value, "hunter2") {
				t.Errorf("%s: readers get %s: %.200q", name, field, value)
			}
		}
	}
	if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: a document with the policy %q", name, policy)
	}
	if media := h.Get("Content-Type"); strings.Contains(media, "html") || strings.Contains(media, "svg") {
		t.Errorf("%s: a document of type %q", name, media)
	}
}
