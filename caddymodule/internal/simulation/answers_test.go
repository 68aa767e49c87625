// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// bound is the longest that a reader waits for a poll if the feed has a version.
const bound = 3 * time.Second

// checkAnswer checks an answer of the gateway to a reader.
func (sim *simulation) checkAnswer(q *http.Request, s *feed, before seen, resp *http.Response, body []byte, took time.Duration) {
	h := resp.Header
	wrong := func(format string, args ...any) {
		sim.violation("%s (%s %s, %d, %s, took %v)", fmt.Sprintf(format, args...), q.Header.Get("User-Agent"), s.url, resp.StatusCode, h.Get("Cache-Status"), took)
	}
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		if resp.StatusCode != http.StatusMethodNotAllowed || h.Get("Allow") == "" {
			wrong("a %s was answered", q.Method)
		}
		return
	}
	if kind := h.Get("Content-Type"); resp.StatusCode == http.StatusNotModified {
		if h.Get("Content-Type") != "" || h.Get("Content-Length") != "" {
			wrong("a 304 describes a body: %v", h)
		}
	} else if strings.Contains(kind, "html") || strings.Contains(kind, "svg") || h.Get("X-Content-Type-Options") != "nosniff" {
		wrong("Content-Type %q, nosniff %q", kind, h.Get("X-Content-Type-Options"))
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotModified {
		if before.served {
			wrong("a feed that was served before is not: %s", body)
		}
		checkRefusal(resp, wrong)
		return
	}
	if took > 0 && before.served {
		checkWait(h, took, wrong)
	}
	checkHeaders(q.Header, h, sim.laptop, s.moves, wrong)
	if resp.StatusCode == http.StatusOK && !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		wrong("Content-Security-Policy %q", h.Get("Content-Security-Policy"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = true
	if resp.StatusCode == http.StatusNotModified {
		if !justified(q.Header, h) {
			wrong("a 304 for If-None-Match %q, If-Modified-Since %q, where the ETag is %q", q.Header["If-None-Match"], q.Header["If-Modified-Since"], h.Get("Etag"))
		}
		return
	}
	if q.Method == http.MethodHead {
		return
	}
	sim.checkBody(s, before, resp, body, wrong)
}

// checkRefusal checks the form of an error.
func checkRefusal(resp *http.Response, wrong func(string, ...any)) {
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || wait < 1 {
			if resp.Header.Get("Retry-After") != "" {
				wrong("Retry-After %q", resp.Header.Get("Retry-After"))
			}
		}
	case http.StatusGone:
	default:
		wrong("an error that a reader may take for final")
	}
	if kind := resp.Header.Get("Content-Type"); kind != "text/plain; charset=utf-8" {
		wrong("an error of the type %q", kind)
	}
}

// checkWait checks that a reader did not wait too long, and not at all for a hit.
func checkWait(h http.Header, took time.Duration, wrong func(string, ...any)) {
	if took > bound {
		wrong("a reader waited longer than %v", bound)
	}
	status := h.Get("Cache-Status")
	paused := strings.Contains(status, "detail=host-cooldown") || strings.Contains(status, "detail=ratelimit") // while it waited for its turn
	if strings.Contains(status, "; hit") && !paused && !strings.Contains(status, "ttl=-") && !strings.Contains(status, "ttl=0") {
		wrong("a hit waited")
	}
}

var strongTag = regexp.MustCompile(`^"[0-9a-f]+(\.gz|\.br|-zstd)?"$`)

func checkHeaders(q, h http.Header, clockSet, points bool, wrong func(string, ...any)) {
	if !strongTag.MatchString(h.Get("Etag")) {
		wrong("ETag %q", h.Get("Etag"))
	}
	// A client that compares dates itself would drop the body of a 200 whose date is not
	// later than its own. A date in the future, after the clock was set back, is left out too, and so is that
	// of a feed that points to another one.
	_, dated := http.ParseTime(q.Get("If-Modified-Since"))
	if _, err := http.ParseTime(h.Get("Last-Modified")); err != nil && (dated != nil && !clockSet && !points || h.Get("Last-Modified") != "") {
		wrong("Last-Modified: %v", err)
	}
	if !slices.Contains(h.Values("Vary"), "Accept-Encoding") {
		wrong("Vary %q", h.Values("Vary"))
	}
	if h["Age"] != nil { // max-age is the time that is left
		wrong("Age %q", h.Get("Age"))
	}
	control, _ := strings.CutSuffix(h.Get("Cache-Control"), stage.MayServeStale)
	keep, ok := strings.CutPrefix(control, "max-age=")
	if n, err := strconv.Atoi(keep); !ok || err != nil || n < 1 {
		wrong("Cache-Control %q", h.Get("Cache-Control"))
	}
	if !strings.HasPrefix(h.Get("Cache-Status"), "Pollard; ") {
		wrong("Cache-Status %q", h.Get("Cache-Status"))
	}
	for _, name := range []string{"Set-Cookie", "Retry-After", "X-Ratelimit-Remaining", "Location"} {
		if h.Get(name) != "" {
			wrong("the origin's %s came through", name)
		}
	}
}

// justified reports whether a request's conditions allow a 304.
func justified(q, h http.Header) bool {
	opaque := func(tag string) string {
		tag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(tag, ".gz"), ".br"), "-zstd")
	}
	if tags := q.Get("If-None-Match"); tags != "" {
		for tag := range strings.SplitSeq(tags, ", ") {
			if tag == "*" || opaque(tag) == opaque(h.Get("Etag")) {
				return true
			}
		}
		return false
	}
	modified, _ := http.ParseTime(h.Get("Last-Modified"))
	since, err := http.ParseTime(q.Get("If-Modified-Since"))
	return err == nil && !modified.After(since)
}

var newestEntry = regexp.MustCompile(`Entry (\d+)`)

// checkBody checks that a body is a version of the feed, and not an older one than before.
// The caller holds s.mu.
func (sim *simulation) checkBody(s *feed, before seen, resp *http.Response, body []byte, wrong func(string, ...any)) {
	plain, err := plainBody(resp, body)
	if err != nil {
		wrong("a body in %q: %v", resp.Header.Get("Content-Encoding"), err)
		return
	}
	version, ok := sim.delivered(s, plain)
	if !ok {
		wrong("a body that no origin has sent: %.200q", plain)
		return
	}
	if version == 0 {
		return // it has no entries, on purpose or not
	}
	if shown := newestEntry.FindSubmatch(plain); shown == nil || string(shown[1]) != strconv.Itoa(version) {
		wrong("the simulation is wrong: version %d is %q", version, shown)
	}
	if version < before.newest {
		wrong("version %d after version %d", version, before.newest)
	}
	if version >= s.newest {
		s.newest, s.etag, s.date = version, resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
	}
}

// delivered reports whether an origin has sent these bytes for a feed, and their version.
func (sim *simulation) delivered(s *feed, plain []byte) (version int, ok bool) {
	sum := xxhash.Sum64(plain)
	sim.origins.mu.Lock()
	defer sim.origins.mu.Unlock()
	if version, ok = s.bodies[sum]; ok || !s.moves && !strings.Contains(s.url, "delegating") {
		return version, ok
	}
	for _, r := range sim.origins.resources {
		if version, ok = r.bodies[sum]; ok {
			return version, ok
		}
	}
	return 0, false
}

func decodeBody(coding string, r io.Reader) ([]byte, error) {
	switch coding {
	case "":
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	default:
		return nil, fmt.Errorf("an unknown coding")
	}
	var b bytes.Buffer
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}
