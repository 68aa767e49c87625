// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/mmcdole/gofeed"
	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// act is what happens at a site, so long after what happened before it.
type act struct {
	after time.Duration
	what  string
	lasts time.Duration // of a failure
}

// GoString is how rapid shows it.
func (a act) GoString() string {
	if a.lasts > 0 {
		return fmt.Sprintf("\n\tafter %v, for %v: %s", a.after, a.lasts, a.what)
	}
	return fmt.Sprintf("\n\tafter %v: %s", a.after, a.what)
}

// failures are what a site answers instead of its feed.
var failures = map[string]response{
	"error 500":           origintest.Status(500),
	"error 404":           origintest.Status(404),
	"broken connection":   origintest.Fail(errors.New("connection reset")),
	"web page":            given("<!DOCTYPE html><title>Soon</title><p>We will be back.", "Content-Type", "text/html"),
	"empty body":          given(""),
	"half of an XML line": given("<?xml version"),
}

var acts = []string{
	"new entry", "entry changes", "entry goes", "its own address changes with each answer", "redirect to an address that changes",
	"ETag and date", "only an ETag", "only a date", "no validators", "a date that never changes",
	"max-age=600", "max-age=10800", "no max-age", "restart of the gateway",
	"error 500", "error 404", "broken connection", "web page", "empty body", "half of an XML line",
}

// oldURL is a second address of the feed, which redirects to it.
const oldURL = "https://origin.test/old.xml"

// subscriber is a feed reader: the address that it has, how it makes its requests conditional, and how
// often it makes them.
type subscriber struct {
	address   string
	condition string
	every     time.Duration

	body, view  string // what it got last, and shows
	etag, date  string
	newest      time.Time // entry of it
	asked, next time.Time
}

func (s *subscriber) GoString() string {
	return fmt.Sprintf("\n\t%s, %s, each %v", s.address, s.condition, s.every)
}

var conditions = []string{"unconditional", "ETag and date", "ETag", "date", "time of its last request", "date of its newest entry"}

// headers are the conditions of its next request.
func (s *subscriber) headers() []string {
	var h []string
	switch s.condition {
	case "ETag and date":
		if h = []string{"If-None-Match", s.etag}; s.date != "" { // a feed that points to another one has none
			h = append(h, "If-Modified-Since", s.date)
		}
	case "ETag":
		h = []string{"If-None-Match", s.etag}
	case "date":
		h = []string{"If-Modified-Since", s.date}
	case "time of its last request":
		h = []string{"If-Modified-Since", s.asked.UTC().Format(http.TimeFormat)}
	case "date of its newest entry":
		h = []string{"If-Modified-Since", s.newest.UTC().Format(http.TimeFormat)}
	}
	if s.body == "" || slices.Contains(h, "") {
		return nil
	}
	return h
}

// reads has it ask for the feed through a gateway. It returns what is wrong with the answer.
func (s *subscriber) reads(g *gateway, b *blog) string {
	headers, now := s.headers(), time.Now()
	before, _ := g.Status(g.t.Context(), s.address) // zero if no reader has asked for it
	if before.Alias != "" {
		before, _ = g.Status(g.t.Context(), string(before.Alias))
	}
	since, problem := b.explain(g, before, now)
	if problem != "" {
		return problem
	}
	w := g.feed(s.address, headers...)
	s.asked, s.next = now, now.Add(s.every)
	if w.Code == http.StatusOK {
		if s.etag != "" && strings.Contains(s.condition, "ETag") && s.body == w.Body.String() {
			return "was sent what it had again"
		}
		s.body, s.etag, s.date, s.newest = w.Body.String(), w.Header().Get("ETag"), cmp.Or(w.Header().Get("Last-Modified"), s.date), time.Time{}
		s.view = viewOf(s.body, "https://feeds.home.arpa/"+s.address)
		for _, e := range must(gofeed.NewParser().ParseString(s.body)).Items {
			if e.PublishedParsed.After(s.newest) {
				s.newest = *e.PublishedParsed
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.Code != http.StatusOK && w.Code != http.StatusNotModified {
		return fmt.Sprintf("got %d: %s", w.Code, w.Body)
	}
	if !b.saw(s.view, since, time.Now()) {
		site := b.shown[len(b.shown)-1]
		return fmt.Sprintf("got %d to %q\nand shows: %s\nwhile the site shows for %v: %s", w.Code, headers, without(s.view, site.view), now.Sub(site.from), without(site.view, s.view))
	}
	return ""
}

// blog is a site with a feed, and with what was to be seen there since it began.
type blog struct {
	mu         sync.Mutex // guards what follows
	format     string
	items      []item // newest first
	changed    time.Time
	validators string
	maxAge     string
	self, move bool // its own address, or where it redirects to, changes with each answer
	answers    int
	fails      string

	shown   []shown              // in order
	broken  []span               // in which it failed
	longest time.Duration        // that its last good answer lets a gateway wait
	spare   time.Duration        // that an address waits in addition, as the other one takes its turns
	due     map[string]time.Time // when a reader asked for an address whose poll was due
}

type item struct {
	number, revision int
	date             time.Time
}

// shown is what a reader shows of a site from a time on.
type shown struct {
	from time.Time
	view string
}

type span struct{ from, to time.Time }

func (b *blog) answer(address string) response {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers++
	switch {
	case b.fails != "":
		return failures[b.fails]
	case address == oldURL:
		return redirect(301, feedURL)
	case address == feedURL && b.move:
		return redirect(302, fmt.Sprintf("https://origin.test/real.xml?signed=%d", b.answers))
	}
	self := feedURL
	if b.self {
		self += "?" + strconv.Itoa(b.answers)
	}
	body := b.document(self)
	a := given(body, "Cache-Control", b.maxAge, "Content-Type", formats[b.format].mediaType)
	a.Conditional = true
	switch b.longest = 27 * time.Hour; b.maxAge { // without max-age it may have no validators either, or none that count
	case "max-age=600":
		b.longest = 67 * time.Minute
	case "max-age=10800":
		b.longest = 200 * time.Minute
	}
	if b.validators != "only a date" && b.validators != "no validators" {
		a.Header.Set("ETag", fmt.Sprintf(`"%x"`, xxhash.Sum64String(body)))
	}
	if date := b.changed; b.validators != "only an ETag" && b.validators != "no validators" {
		if b.validators == "a date that never changes" {
			date = epoch.AddDate(-20, 0, 0)
		}
		a.Header.Set("Last-Modified", date.UTC().Format(http.TimeFormat))
	}
	return a
}

// format is how a document and its entries are written.
type format struct{ mediaType, head, entry, link, id, permalink, separator, end string }

var formats = map[string]format{
	"RSS": {
		"application/rss+xml", `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><link>/</link><atom:link rel="self" href="%s"/>`,
		`<item><title>Entry %d</title>%s%s<pubDate>%s</pubDate><enclosure url="/%[1]d.mp3" type="audio/mpeg" length="1"/><description>%[5]s</description></item>`,
		"<link>%s</link>", `<guid isPermaLink="false">%d</guid>`, "<guid>https://origin.test/guid/%d</guid>", "", "</channel></rss>",
	},
	"Atom": {
		"application/atom+xml", `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><link href="/"/><link rel="self" href="%s"/>`,
		`<entry><title>Entry %d</title>%s%s<updated>%s</updated><link rel="enclosure" href="/%[1]d.mp3"/><content type="html">%[5]s</content></entry>`,
		`<link href="%s"/>`, "<id>tag:%d</id>", "<id>https://origin.test/guid/%d</id>", "", "</feed>",
	},
	"JSON Feed": {
		"application/feed+json", `{"version":"https://jsonfeed.org/version/1.1","title":"T","home_page_url":"/","feed_url":"%s","items":[`,
		`{"title":"Entry %d",%s%s"date_published":"%s","attachments":[{"url":"/%[1]d.mp3","mime_type":"audio/mpeg"}],"content_html":%[6]q}`,
		`"url":"%s",`, `"id":"%d",`, `"id":"https://origin.test/guid/%d",`, ",", "]}",
	},
}

// document is the feed. Its entries have links of each kind, and pictures and footnotes.
func (b *blog) document(self string) string {
	f := formats[b.format]
	var entries []string
	for _, e := range b.items {
		n := e.number
		link := []string{"https://origin.test/%d/", "/posts/%d/", "https://blog.test/%d/", ""}[n%4]
		if link != "" {
			link = fmt.Sprintf(f.link, fmt.Sprintf(link, n))
		}
		id := f.permalink
		if n%8 < 4 {
			id = f.id
		}
		text := fmt.Sprintf(`Revision %d<a href="#fn:%d">1</a><img src="%d.png"><img src="/top.png"><a href="../%d">`, e.revision, n, n, n)
		entries = append(entries, fmt.Sprintf(f.entry, n, link, fmt.Sprintf(id, n), e.date.Format(time.RFC3339), html.EscapeString(text), text))
	}
	return fmt.Sprintf(f.head, self) + strings.Join(entries, f.separator) + f.end
}

// does has something happen.
func (b *blog) does(a act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch a.what {
	case "new entry":
		b.items = slices.Insert(b.items, 0, item{b.items[0].number + 1, 0, now})
	case "entry changes":
		b.items[len(b.items)/2].revision++
	case "entry goes":
		if len(b.items) > 2 {
			b.items = slices.Delete(b.items, 1, 2)
		}
	case "its own address changes with each answer":
		b.self = !b.self
	case "redirect to an address that changes":
		b.move = !b.move
	case "max-age=600":
		b.maxAge = a.what
	case "max-age=10800":
		b.maxAge = a.what
	case "no max-age":
		b.maxAge = ""
	default:
		if b.fails = ""; a.lasts > 0 {
			b.fails, b.broken = a.what, append(b.broken, span{now, now.Add(a.lasts)})
		} else if a.what != "" {
			b.validators = a.what
		}
	}
	if view := viewOf(b.document(feedURL), feedURL); len(b.shown) == 0 || view != b.shown[len(b.shown)-1].view {
		b.changed, b.shown = now, append(b.shown, shown{now, view})
	}
}

// explain returns from when on what the site showed may be what a reader gets: since the last good poll. It
// returns what is wrong if the decision after that does not explain why there was no other one.
func (b *blog) explain(g *gateway, f status.Feed, now time.Time) (since time.Time, problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	address, at := string(f.URL), f.LastPoll
	if at.IsZero() {
		return now, ""
	}
	if due := b.due[address]; at.Before(due) {
		return at, fmt.Sprintf("asked for what was due at %v and was last polled at %v", due, at)
	}
	if delete(b.due, address); !f.NextPoll.After(now) {
		b.due[address] = now
	}
	until := at.Add(b.longest)
	switch {
	case f.LastFailure == policy.FailureHeld: // as long as what it redirects to
		if target := must(g.Status(g.t.Context(), feedURL)); target.NextPoll.After(until) {
			until = target.NextPoll
		}
	case f.LastFailure != "":
		if until = at.Add(27 * time.Hour); !slices.ContainsFunc(b.broken, func(s span) bool { return !at.Before(s.from) && at.Before(s.to.Add(time.Minute)) }) {
			return at, fmt.Sprintf("asked for what failed at %v, when the site was well: %s", at, f.LastError)
		}
	}
	if f.NextPoll.After(until.Add(b.spare)) {
		return at, fmt.Sprintf("asked for what was polled at %v and waits until %v (%s)", at, f.NextPoll, f.Winner)
	}
	return f.Validated.Add(-time.Minute), ""
}

// saw reports whether the site has shown this between two times.
func (b *blog) saw(view string, from, to time.Time) bool {
	for i, s := range b.shown {
		ended := i+1 < len(b.shown) && b.shown[i+1].from.Before(from)
		if s.view == view && !ended && !s.from.After(to) {
			return true
		}
	}
	return false
}

// without is a view without the lines of another.
func without(view, other string) string {
	lines := slices.DeleteFunc(strings.Split(view, "\n"), func(line string) bool { return strings.Contains(other, line) })
	return strings.Join(append([]string{""}, lines...), "\n\t")
}

var reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// viewOf is what a reader shows of a document that it has from an address. Relative links in the text of
// an entry are of the entry's own page, or of the site's if it has none.
func viewOf(body, address string) string {
	feed, err := gofeed.NewParser().ParseString(body)
	if err != nil {
		return err.Error()
	}
	resolve := func(base, reference string) string {
		u, err := url.Parse(base)
		if err == nil {
			u, err = u.Parse(reference)
		}
		if err != nil {
			return err.Error()
		}
		return u.String()
	}
	home := resolve(address, feed.Link)
	view := []string{"T " + feed.Title + " " + home}
	for _, e := range feed.Items {
		page := home
		switch {
		case e.Link != "":
			page = resolve(address, e.Link)
		case strings.HasPrefix(e.GUID, "https://") && feed.FeedType == "rss":
			page = e.GUID
		}
		text := reference.ReplaceAllStringFunc(cmp.Or(e.Content, e.Description), func(attribute string) string {
			return resolve(page, reference.FindStringSubmatch(attribute)[1])
		})
		view = append(view, fmt.Sprintln(e.Title, e.GUID, e.Published, page, resolve(address, e.Enclosures[0].URL), text))
	}
	slices.Sort(view)
	return strings.Join(view, "")
}

// TestReadersLoseNothing has readers of each kind read a feed through a gateway, whatever happens to it. They
// show what they would show from the site: the same entries with the same links, no later than the decisions
// after the polls explain.
func TestReadersLoseNothing(t *testing.T) {
	checks := max(*lives, 20)
	if testing.Short() {
		checks = 5
	}
	setFlag(t, "rapid.checks", strconv.Itoa(checks))
	setFlag(t, "rapid.nofailfile", "true") // a seed is enough
	rapid.Check(t, func(rt *rapid.T) {
		format := rapid.SampledFrom([]string{"RSS", "Atom", "JSON Feed"}).Draw(rt, "format")
		history := rapid.SliceOfN(rapid.Custom(drawAct), 0, 20).Draw(rt, "history")
		readers := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) *subscriber {
			return &subscriber{
				address:   rapid.SampledFrom([]string{feedURL, feedURL, oldURL}).Draw(rt, "address"),
				condition: rapid.SampledFrom(conditions).Draw(rt, "condition"),
				every:     rapid.SampledFrom([]time.Duration{time.Hour, 20 * time.Minute, 3 * time.Hour, 8 * time.Hour}).Draw(rt, "every"),
			}
		}), 1, 4).Draw(rt, "readers")
		problem := ""
		synctest.Test(t, func(t *testing.T) { problem = read(t, format, history, readers) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func drawAct(rt *rapid.T) act {
	a := act{what: rapid.SampledFrom(acts).Draw(rt, "what"), after: time.Duration(rapid.SampledFrom([]int{1, 5, 40, 90, 300, 1200}).Draw(rt, "after")) * time.Minute}
	if _, fails := failures[a.what]; fails {
		a.lasts = time.Duration(rapid.SampledFrom([]int{10, 90, 400, 2000}).Draw(rt, "lasts")) * time.Minute
	}
	return a
}

// read has a history happen, with these readers. It returns what is wrong for one of them; empty: nothing.
func read(t *testing.T, format string, history []act, readers []*subscriber) string {
	b := &blog{format: format, validators: "ETag and date", maxAge: "max-age=600", due: map[string]time.Time{}}
	for n := range 5 {
		b.items = append(b.items, item{number: 4 - n, date: epoch.Add(-time.Duration(3*n+1) * time.Hour)})
	}
	if slices.ContainsFunc(readers, func(s *subscriber) bool { return s.address == oldURL }) {
		b.spare = 3 * time.Hour
	}
	g := newWebGateway(t, b.answer)
	g.by = store.OwnerOf(store.KindNamed, "192.168.1.2")
	g.rules(policy.DefaultRules())
	g.open()
	b.does(act{})
	for i, s := range readers {
		s.next = epoch.Add(time.Duration(i)*time.Minute + time.Second)
	}
	at := epoch.Add(9 * time.Minute)
	until := func(end time.Time) (problem string) {
		for {
			s := slices.MinFunc(readers, func(a, b *subscriber) int { return a.next.Compare(b.next) })
			if s.next.After(end) {
				time.Sleep(time.Until(end))
				return ""
			}
			time.Sleep(time.Until(s.next))
			if problem = s.reads(g, b); problem != "" {
				return fmt.Sprintf("%v after the beginning the reader (%s, %s, each %v) %s", time.Since(epoch), s.address, s.condition, s.every, problem)
			}
		}
	}
	for _, a := range slices.Concat(history, []act{{after: 30 * time.Hour}}) {
		at = at.Add(a.after)
		if problem := until(at); problem != "" {
			return problem
		}
		if a.what == "restart of the gateway" {
			g.restart()
			continue
		}
		b.does(a)
		if at = at.Add(a.lasts); a.lasts > 0 {
			if problem := until(at); problem != "" {
				return problem
			}
			b.does(act{})
		}
	}
	return ""
}
