// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// row is something that a program in front of sites does or does not.
type row struct {
	about string // readers or sites
	name  string
	by    string // the section that asks for it; empty: good manners
	// check returns what the program does instead, or "" if it does it.
	check func(f *feed) string
}

// suite runs rows against one program.
type suite struct {
	interval time.Duration // in which the program asks a site for a feed once
	address  func(path string) string
	client   *http.Client

	mu    sync.Mutex
	feeds map[string]*feed // by path
}

func newSuite(interval time.Duration) *suite {
	return &suite{
		interval: interval, feeds: make(map[string]*feed),
		client: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       time.Minute,
		},
	}
}

// paths are those of the feeds of all rows, for programs that have to know them.
func paths(rows []row) (all []string) {
	for i := range rows {
		all = append(all, pathOf(i))
	}
	return all
}

func pathOf(i int) string { return fmt.Sprintf("/feed%d.xml", i) }

// run runs all rows at the same time, each with a feed of its own.
func (s *suite) run(rows []row) []string {
	results := make([]string, len(rows))
	var wg sync.WaitGroup
	for i, r := range rows {
		f := &feed{suite: s, path: pathOf(i), script: always(ok(rss("first")))}
		s.mu.Lock()
		s.feeds[f.path] = f
		s.mu.Unlock()
		wg.Go(func() { results[i] = r.check(f) })
	}
	wg.Wait()
	return results
}

// ServeHTTP is the site of all feeds. What is below the path of a feed is the feed's too.
func (s *suite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	f := s.feeds["/"+name]
	s.mu.Unlock()
	if f == nil {
		http.NotFound(w, r)
		return
	}
	f.mu.Lock()
	n := len(f.seen)
	f.seen = append(f.seen, seen{r.Clone(r.Context()), below, time.Now()})
	script := f.script
	f.mu.Unlock()
	a := script(n, r)
	if a.closes {
		panic(http.ErrAbortHandler)
	}
	for i := 0; i < len(a.header); i += 2 {
		w.Header().Add(a.header[i], a.header[i+1])
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/rss+xml")
	}
	if a.breaksOff {
		w.Header().Set("Content-Length", fmt.Sprint(2*len(a.body)))
	}
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead && a.status != http.StatusNotModified {
		_, _ = io.WriteString(w, a.body)
	}
}

// feed is a feed of the site, and what was seen of it there.
type feed struct {
	*suite
	path string

	mu     sync.Mutex
	script func(n int, r *http.Request) answer
	seen   []seen
}

// seen is a request at the site.
type seen struct {
	*http.Request
	below string // what follows the feed's path
	at    time.Time
}

// answer is what the site answers.
type answer struct {
	status    int
	body      string
	header    []string
	breaksOff bool
	closes    bool // the connection, in place of an answer
}

func ok(body string, header ...string) answer { return answer{status: 200, body: body, header: header} }

func always(a answer) func(int, *http.Request) answer {
	return func(int, *http.Request) answer { return a }
}

// answers gives the site another script.
func (f *feed) answers(script func(n int, r *http.Request) answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = script
}

// polls are the requests at the site.
func (f *feed) polls() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// allowed is how many requests the site may have seen since the first one.
func (f *feed) allowed() int {
	polls := f.polls()
	if len(polls) == 0 {
		return 1
	}
	return 1 + int(time.Since(polls[0].at)/f.interval)
}

// got is a response to a reader.
type got struct {
	Status int
	Header http.Header
	Body   string // as it came
	Err    error
}

func (g got) String() string {
	if g.Err != nil {
		return g.Err.Error()
	}
	return fmt.Sprintf("%d, %d bytes", g.Status, len(g.Body))
}

// text is the body without its coding.
func (g got) text() string {
	if g.Header.Get("Content-Encoding") != "gzip" {
		return g.Body
	}
	r, err := gzip.NewReader(bytes.NewReader([]byte(g.Body)))
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(r)
	return string(text)
}

// has reports whether it is the feed with a title.
func (g got) has(title string) bool {
	return g.Status == 200 && strings.Contains(g.text(), "<title>"+title+"</title>")
}

// send sends a reader's request.
func (f *feed) send(method string, header ...string) got {
	r := httptest.NewRequest(method, f.address(f.path), nil)
	r.RequestURI = ""
	r.Header.Set("User-Agent", "Reader/1.0")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return got{Err: err, Header: http.Header{}}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(body), err}
}

func (f *feed) get(header ...string) got { return f.send("GET", header...) }

// later waits for the next interval, in which a program polls again when readers ask: before it answers or
// after.
func (f *feed) later() {
	time.Sleep(f.interval * 5 / 4)
	f.get()
	time.Sleep(f.interval / 8)
}

// during lets a reader ask for some intervals, and returns how many requests the site saw.
func (f *feed) during(intervals int) int {
	before := len(f.polls())
	for range 4 * intervals {
		time.Sleep(f.interval / 4)
		f.get()
	}
	time.Sleep(f.interval / 8)
	return len(f.polls()) - before
}

// rss is a feed with one entry of this title, and what else stands in its channel. It has no dates, so that
// nothing else says how often it changes.
func rss(title string, channel ...string) string {
	return `<?xml version="1.0"?><rss version="2.0"><channel><title>Feed</title><link>https://example.com/</link><description>` +
		strings.Repeat("Some words that gzip makes smaller. ", 40) + "</description>" + strings.Join(channel, "") +
		`<item><title>` + title + `</title><guid isPermaLink="false">` + title + `</guid></item></channel></rss>`
}
