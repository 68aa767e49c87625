// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
)

// rules have no chance in them, except for the hour after skip hours.
func rules() policy.Rules {
	r := policy.DefaultRules()
	r.MinInterval, r.Jitter = time.Minute, 0
	return r
}

// options are those of a podcast with hints, 40 entries and 12 kB.
func options(t testing.TB) Options {
	t.Helper()
	feed, err := os.ReadFile(filepath.Join("testdata", "podcast.rss"))
	if err != nil {
		t.Fatal(err)
	}
	return Options{Feed: feed, Rules: rules()}
}

func run(t testing.TB, log string, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), []io.Reader{strings.NewReader(log)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// visit is a line of a log that a test writes.
type visit struct {
	at     time.Time
	ip     string
	method string
	status int
	bytes  int
	agent  string
}

var monday = time.Date(2024, time.March, 25, 12, 0, 0, 0, time.UTC)

func (v visit) String() string {
	if v.ip == "" {
		v.ip = "192.0.2.1"
	}
	if v.method == "" {
		v.method = "GET"
	}
	return fmt.Sprintf("%s - - [%s] \"%s /podcast.rss HTTP/1.1\" %d %d \"-\" \"%s\"\n", v.ip, v.at.Format(combinedTime), v.method, v.status, v.bytes, v.agent)
}

// hourly is a log of visits every hour for some days.
func hourly(days int, v visit) string {
	var b strings.Builder
	for hour := range days * 24 {
		v.at = monday.Add(time.Duration(hour) * time.Hour)
		b.WriteString(v.String())
	}
	return b.String()
}

var update = flag.Bool("update", false, "write the golden reports again")

// The reports hold all but bytes that depend on compressors and header fields, and
// the wording of reasons.
func TestGoldenLogs(t *testing.T) {
	for _, log := range []string{"combined", "caddy"} {
		t.Run(log, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", log+".log"))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", log+".json")
			for name, text := range map[string]string{"plain": string(text), "gzip": zip(t, string(text))} {
				r := run(t, text, options(t))
				for _, bytes := range []*int64{&r.OriginBytes, &r.ServedBytes, &r.ServedWholeBytes, &r.Feed.Compressed, &r.Readers[0].ServedBytes} {
					if *bytes <= 0 {
						t.Errorf("%s: no bytes in %+v", name, r)
					}
					*bytes = 0
				}
				for i := range r.Readers {
					r.Readers[i].ServedBytes, r.Readers[i].Reasons = 0, nil
				}
				got, err := json.MarshalIndent(r, "", "\t")
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, '\n')
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != string(want) {
					t.Errorf("%s: if this is meant, run the test with -update, which writes %s again: got\n%s\nwant\n%s", name, golden, got, want)
				}
			}
		})
	}
}

// The feed's ttl is a day and its skip hours are 22 to 7: an origin that was asked
// every hour is asked once a day, and not in the night.
func TestOriginIsAskedByItsHints(t *testing.T) {
	log := hourly(8, visit{status: 200, bytes: 3000, agent: "A"})
	tests := []struct {
		name        string
		change      func(*Options)
		polls       [2]int64 // at least, at most
		notModified int64    // all but so many
	}{
		{"ttl", func(*Options) {}, [2]int64{7, 9}, 1},
		{"changes every two days", func(o *Options) { o.ChangeEvery = 48 * time.Hour }, [2]int64{7, 9}, 4},
		{"no validators", func(o *Options) { o.Header = http.Header{"Etag": {""}, "Last-Modified": {""}} }, [2]int64{7, 9}, -1},
		{"a date alone", func(o *Options) { o.Header = http.Header{"Etag": {""}} }, [2]int64{7, 9}, 1},
		{"a date that is not one", func(o *Options) { o.Header = http.Header{"Etag": {""}, "Last-Modified": {"yesterday"}} }, [2]int64{7, 9}, -1},
		{"given validators and changes", func(o *Options) {
			o.ChangeEvery, o.Header = 48*time.Hour, http.Header{"Etag": {`W/"v1"`}, "Last-Modified": {"Sat, 23 Mar 2024 08:00:00 GMT"}}
		}, [2]int64{7, 9}, 4},
		{"an operator who does not care", func(o *Options) { o.Rules.MaxInterval = 2 * time.Hour }, [2]int64{50, 70}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			tt.change(&o)
			r := run(t, log, o)
			if r.OriginRequests < tt.polls[0] || r.OriginRequests > tt.polls[1] {
				t.Errorf("%d polls, want %v", r.OriginRequests, tt.polls)
			}
			if r.OriginRequestsInSkipHours != 0 {
				t.Errorf("%d polls in skip hours", r.OriginRequestsInSkipHours)
			}
			if full := r.OriginRequests - r.OriginNotModified; full != tt.notModified && tt.notModified >= 0 || tt.notModified < 0 && r.OriginNotModified != 0 {
				t.Errorf("%d of %d polls brought the feed", full, r.OriginRequests)
			}
			if r.Requests != 192 || r.RequestsInSkipHours != 80 || r.Served["200"] != 192 {
				t.Errorf("%d requests, %d in skip hours, served %v", r.Requests, r.RequestsInSkipHours, r.Served)
			}
		})
	}
}

// A log that begins in skip hours finds the cache filled: its first poll came before them.
func TestLogBeginsInSkipHours(t *testing.T) {
	r := run(t, visit{at: monday.Add(13 * time.Hour), status: 304, bytes: 250, agent: "A"}.String(), options(t))
	if r.OriginRequests != 1 || r.OriginRequestsInSkipHours != 0 || r.Served["304"] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestConditionalReadersGetChangesOnce(t *testing.T) {
	o := options(t)
	o.ChangeEvery, o.Header = 48*time.Hour, http.Header{"Cache-Control": {"max-age=3600"}}
	log := strings.Replace(hourly(8, visit{status: 304, bytes: 250, agent: "A"}), " 304 250 ", " 200 3000 ", 1)
	r := run(t, log, o)
	// The first request and one for each of three changes.
	if r.Served["200"] != 4 || r.Served["304"] != 188 {
		t.Errorf("served %v", r.Served)
	}
	if a := r.Readers[0]; a.ShareConditional < 0.99 || a.MedianGap < 3500 || a.MedianGap > 3900 {
		t.Errorf("%+v", a)
	}
}

func TestDefences(t *testing.T) {
	rude := visit{status: 200, bytes: 3000, agent: "Rude/1.0"}
	plain := visit{status: 200, bytes: 12000, agent: "Plain/1.0"}
	good := visit{status: 304, bytes: 250, agent: "Good/1.0"}
	defence := readers.Limits{Unconditional: 4 * time.Hour, SkipHours: true, RequireCompression: true}
	all := func(*http.Request) readers.Limits { return defence }
	tests := []struct {
		name    string
		visit   visit
		defence func(*http.Request) readers.Limits
		want    map[string]int64
	}{
		{"none", rude, nil, map[string]int64{"200": 48}},
		{"never conditional", rude, all, map[string]int64{"200": 16, "429": 32}},
		{"refuses compression", plain, all, map[string]int64{"406": 16, "429": 32}},
		{"conditional", good, all, map[string]int64{"304": 48}},
		{"exempt", rude, func(r *http.Request) readers.Limits {
			if r.UserAgent() == "Rude/1.0" && r.RemoteAddr == "192.0.2.1:0" && r.URL.Path == "/podcast.rss" {
				return readers.Limits{}
			}
			return defence
		}, map[string]int64{"200": 48}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			o.Limits = tt.defence
			r := run(t, hourly(2, tt.visit), o)
			if fmt.Sprint(r.Served) != fmt.Sprint(tt.want) {
				t.Errorf("served %v, want %v", r.Served, tt.want)
			}
			if refused := tt.want["406"] + tt.want["429"]; r.Readers[0].Refused != refused {
				t.Errorf("%d refused, want %d", r.Readers[0].Refused, refused)
			}
		})
	}
}

func TestWhatIsNotReplayed(t *testing.T) {
	v := visit{at: monday, status: 200, bytes: 3000, agent: "A"}
	redirect, post, earlier := v, v, v
	redirect.status, post.method, post.status, earlier.at = 301, "POST", 405, monday.Add(-time.Minute)
	other := strings.Replace(v.String(), "/podcast.rss", "/index.html", 1)
	message := `{"level":"info","ts":1711261567.25,"msg":"started"}` + "\n"
	log := v.String() + redirect.String() + post.String() + "nonsense\n\n" + other + message + earlier.String() + strings.Repeat("x", 2*longestLine) + "\n"
	r := run(t, log, options(t))
	if r.Lines != 8 || r.Malformed != 2 || r.OtherPaths != 1 || r.OtherLines != 1 || r.OutOfOrder != 1 || r.PassedThrough != 2 {
		t.Errorf("%+v", r)
	}
	if r.Requests != 4 || fmt.Sprint(r.Served) != "map[200:2 301:1 405:1]" || !r.To.Equal(monday) {
		t.Errorf("%d requests until %v, served %v", r.Requests, r.To, r.Served)
	}
}

func TestNothingToReplay(t *testing.T) {
	line := visit{at: monday, status: 200, bytes: 3000, agent: "A"}.String()
	tests := []struct {
		name, log string
		change    func(*Options)
		none      bool // ErrNoRequests
	}{
		{"an empty log", "", nil, true},
		{"no log", "hello\n", nil, true},
		{"another path", line, func(o *Options) { o.Path = "/feed" }, true},
		{"no feed", line, func(o *Options) { o.Feed = []byte("<html></html>") }, false},
		{"invalid rules", line, func(o *Options) { o.Rules.MinInterval = -1 }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			if tt.change != nil {
				tt.change(&o)
			}
			r, err := Run(t.Context(), []io.Reader{strings.NewReader(tt.log)}, o)
			if err == nil || errors.Is(err, ErrNoRequests) != tt.none {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestBytesOfHandshakesAndHeaders(t *testing.T) {
	o := options(t)
	with := run(t, hourly(1, visit{status: 304, bytes: 250, agent: "A"}), o)
	without := run(t, hourly(1, visit{status: 304, bytes: 0, agent: "A"}), o)
	tls := run(t, hourly(1, visit{status: 304, bytes: 3400, agent: "A"}), o)
	if !with.BytesOfHeaders || with.ServedBytes < 24*200 || with.HandshakeBytes != 0 {
		t.Errorf("with headers: %+v", with)
	}
	if without.BytesOfHeaders || without.ServedBytes != 0 || without.OriginBytes == 0 {
		t.Errorf("without headers: %+v", without)
	}
	if tls.HandshakeBytes != 24*3000 {
		t.Errorf("%d bytes of handshakes", tls.HandshakeBytes)
	}
}

// A feed that is so small that compression saves less than a handshake has the size in the log that it has here.
func TestSmallFeed(t *testing.T) {
	o := options(t)
	o.Feed = []byte(`<rss version="2.0"><channel><title>T</title>` + strings.Repeat("<description>A feed of a few words. </description>", 50) + "</channel></rss>")
	packed := len(zip(t, string(o.Feed)))
	for name, bytes := range map[string]int{"plain": len(o.Feed), "gzip": packed} {
		r := run(t, hourly(1, visit{status: 200, bytes: bytes, agent: "A"})+hourly(1, visit{status: 304, agent: "B"}), o)
		var text strings.Builder
		if err := r.WriteText(&text); err != nil || r.WholeBytes == 0 || strings.Contains(text.String(), "another size") {
			t.Errorf("%s, %d bytes of %d: %v\n%s", name, bytes, len(o.Feed), err, &text)
		}
	}
}

// Memory for readers that never come again is bounded.
func TestMemoryIsBounded(t *testing.T) {
	m := newMemory()
	for i := range maxReaders + 1000 {
		m.reader(&Line{Remote: fmt.Sprintf("10.%d.%d.1", i>>8, i&255), Header: http.Header{"User-Agent": {fmt.Sprintf("%x/1", i)}}})
	}
	if m.readers.Len() != maxReaders || len(m.families) > maxFamilies {
		t.Errorf("%d readers of %d families are remembered", m.readers.Len(), len(m.families))
	}
}

func TestProgress(t *testing.T) {
	var seen []int64
	o := options(t)
	o.Progress = func(lines int64) { seen = append(seen, lines) }
	run(t, hourly(2, visit{at: monday, status: 200, bytes: 3000, agent: "A"})+strings.Repeat("nonsense\n", 2*reportAfter), o)
	if fmt.Sprint(seen) != fmt.Sprint([]int64{reportAfter, 2 * reportAfter}) {
		t.Errorf("reported after %v lines", seen)
	}
}

func TestReplayIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	log := readerFunc(func(b []byte) (int, error) {
		stop()
		return copy(b, visit{at: monday, status: 200, bytes: 3000, agent: "A"}.String()), nil
	})
	if _, err := Run(ctx, []io.Reader{log}, options(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A line with a wrong year does not move the clock for all that come after it. A log may have days
// without a line.
func TestWrongYear(t *testing.T) {
	var log strings.Builder
	v := visit{at: monday, status: 200, bytes: 3000, agent: "A"}
	for i := range 48 {
		v.at = monday.Add(time.Duration(i) * time.Hour)
		if i >= 24 {
			v.at = v.at.AddDate(0, 0, 3)
		}
		log.WriteString(v.String())
		if i%24 == 5 {
			v.at = v.at.AddDate(0, 6, 0)
			log.WriteString(v.String())
		}
	}
	r := run(t, log.String(), options(t))
	if r.Malformed != 2 || r.OutOfOrder != 0 || r.Requests != 48 || !r.To.Equal(monday.Add(119*time.Hour)) {
		t.Errorf("%d malformed, %d out of order, %d requests to %v", r.Malformed, r.OutOfOrder, r.Requests, r.To)
	}
}

// The report says what a fleet would save: four whole feeds in four hours are left, one per network. An answer
// in the second of the version has a Date of its own, and so is some bytes longer.
func TestAsFleet(t *testing.T) {
	var log strings.Builder
	for minute := range 8 * 60 {
		for agent, addresses := range map[string]int{"Crawler/1.0": 200, "Twins/1.0": 2, "Mozilla/5.0 (X11; Linux x86_64) App/1.0": 50} {
			log.WriteString(visit{
				at: monday.Add(time.Duration(minute) * time.Minute), ip: fmt.Sprintf("10.%d.0.1", minute%addresses),
				status: 200, bytes: 3000, agent: agent,
			}.String())
		}
	}
	r := run(t, log.String(), options(t))
	for _, reader := range r.Readers {
		if crawler := reader.Family == "Crawler"; crawler != (reader.AsFleet != nil) || crawler && (reader.AsFleet.Refused != 480-8 || reader.Addresses < 150 || reader.AsFleet.Bytes/472 != reader.ServedBytes/480) {
			t.Errorf("%+v as a fleet: %+v", reader, reader.AsFleet)
		}
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "as a fleet: 472 more refused") || !strings.Contains(text.String(), "Never name an app") {
		t.Errorf("%v in\n%s", err, text.String())
	}
}
