// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"encoding/xml"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/policy"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// hostile are texts that try to become more than text, each with a word by which it
// can be found again.
var hostile = []string{
	`<script>alert("zebra")</script>`,
	`"><img src=x onerror=alert(1)>zebra`,
	`'><iframe srcdoc="zebra">`,
	`" onmouseover="alert(1)" zebra="`,
	`' style='position:fixed' zebra='`,
	`javascript:alert("zebra")`,
	`data:text/html,<object>zebra</object>`,
	`</title></textarea></style></svg></bdi></table><base href="//evil.example/">zebra`,
	`<!-- zebra`, `]]><marquee>zebra`, `{{.Secret}} ${zebra} {{template "x"}}`,
	"zebra\u202egnp.exe", "zebra\x00\x1b[31m\r\nSet-Cookie: a=b", "\xff\xfezebra\xc0<\xafscript>",
	`&lt;script&gt;zebra&#x3c;img&#62;`,
	`+ADw-script+AD4-zebra`,
	strings.Repeat("zebra<b>", 4000),
}

// inhabit returns pages in which a text stands in every place that can have one.
func inhabit(t *testing.T, text string) (*Pages, Place) {
	p, source, at := newPages(t, 3)
	address := feedurl.Redacted("https://x.example/" + text)
	when := time.Now().Add(time.Hour)
	reader := status.Reader{
		Family: text, UserAgent: text + " 2", Network: text, Counts: status.Counts{Requests: 1, Bytes: 1}, Score: text, Reasons: []string{text},
	}
	feed := status.Feed{
		ID: text, URL: address, Title: text, State: status.State(text), NextPoll: when, Winner: text,
		Reason: status.Reason{{Text: text}, {Text: text, At: when}}, VersionSince: when.Add(-time.Hour), Polls: []status.Poll{{At: when, Result: status.Result(text)}},
		Incident: &status.Incident{Kind: status.IncidentFailing, Began: when.Add(-25 * time.Hour), Cause: text},
	}
	one := feed
	one.Alias, one.LastPoll, one.LastResult, one.LastError = address, when, status.Result(text), text
	one.Hints = policy.Hints{Self: text, NewFeedURL: text, Hubs: []string{text}}
	one.Considered = []policy.Term{{Hint: text, Raw: text, Note: text, Used: true, Seconds: 3}}
	one.ContentType, one.Validators = text, policy.Validators{ETag: text, LastModified: text}
	one.Versions, one.Readers = []status.Version{{Since: when, ETag: text}}, []status.Reader{reader}
	body := []byte(`{"version":"https://jsonfeed.org/version/1.1","title":` + quote(text) + `,"home_page_url":` + quote(text) +
		`,"items":[{"id":"1","title":` + quote(text) + `,"url":` + quote(text) + `},{"id":"2","title":"x","url":"javascript:alert(1)"},{"id":"3","title":"y","url":"https://x.example/` + "\\u0022 onclick=\\u0022zebra" + `"}]}`)
	source.list = func(q status.Query) (status.FeedList, error) {
		return status.FeedList{Feeds: []status.Feed{feed}, Matched: 2, Next: text}, nil
	}
	source.account = func(which Which) (status.Feed, []byte, error) {
		if which.ID != "" { // without the title that the document has
			return one, nil, nil
		}
		return one, body, nil
	}
	source.who = func() (status.Readers, error) {
		return status.Readers{Requests: 1, Readers: 1, Families: []status.Reader{reader}}, nil
	}
	source.saved = func() (status.Savings, error) {
		return status.Savings{Total: status.Traffic{Requests: 2}, Days: []status.DayTraffic{{Day: when}}, Origins: []status.OriginTraffic{{Origin: feedurl.Redacted(text)}}}, nil
	}
	p.Poller = Poller{Contact: text, UserAgent: text}
	p.Version = text
	p.Discover = func(*door.Request, string) (Site, error) {
		return Site{URL: address, Title: text, Problem: text, Feeds: []Found{{URL: "https://x.example/" + text, Title: text, Type: text}}}, nil
	}
	at.Chosen = func() ([]status.Feed, error) {
		return []status.Feed{{URL: address, Address: "http://feeds.home.arpa/f.xml", Title: text, State: status.StateFresh}}, nil
	}
	return p, at
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", "", "\x1b", "", "\r", "", "\n", "").Replace(strings.ToValidUTF8(text, "")) + `"`
}

func TestHostileText(t *testing.T) {
	for _, text := range hostile {
		p, at := inhabit(t, text)
		escaped := strings.NewReplacer("%", "%25", "&", "%26", "#", "%23", "+", "%2B", " ", "+", "\x00", "%00", "\r", "%0D", "\n", "%0A", "\x1b", "%1B", "\xff", "%FF", "\xfe", "%FE", "\xc0", "%C0", "\xaf", "%AF").Replace(text[:min(len(text), 150)])
		for _, target := range append(pageNames(), "?find="+escaped, "feeds?q="+escaped, "feeds?after="+escaped, "feeds?url="+escaped+"&polled="+escaped, "feeds?id="+escaped) {
			p, at := homeOf(target, p, at)
			if !notHTML[target] {
				at.Gateway = "http://feeds.home.arpa/" + text // of a Host field
			}
			w := ask(p, at, "GET", target)
			if w.Code != 200 && w.Code != 404 {
				t.Fatalf("%s with %q: %d %s", target, text, w.Code, w.Body)
			}
			if body := w.Body.String(); !strings.Contains(body, "zebra") {
				t.Errorf("%s does not show %q", target, text)
			}
			if notHTML[target] {
				checkXML(t, target, text, w)
			} else {
				checkMarkup(t, target, text, w)
			}
			if w.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s with %q sets a cookie", target, text)
			}
		}
		for _, target := range append(pageNames(), "feeds?url=x") {
			if !routes[strings.TrimSuffix(target, "?url=x")].json {
				continue
			}
			p, at := homeOf(target, p, at)
			if w := ask(p, at, "GET", target, accept("application/json")); w.Code != 200 || strings.ContainsAny(w.Body.String(), "<>") {
				t.Errorf("%s as JSON with %q: %d", target, text, w.Code)
			}
		}
		w := httptest.NewRecorder()
		site, _ := p.Discover(nil, "")
		p.ServeSite(w, door.Read(httptest.NewRequest("GET", "/", nil)), at, site)
		checkMarkup(t, "site", text, w)
	}
}

// elements and attributes of ours. Any other in a page has come in from outside.
var (
	elements = words(`html head meta title link script body a header svg path nav main footer h1 h2 p form label div input button section ul li bdi
		code wbr small ol span b select option time dl dt dd table thead tbody tr th td details summary`)
	attributes = words(`lang charset name content rel type href src defer class viewbox d aria-hidden aria-label aria-current action role for id inputmode autocomplete
		autocapitalize spellcheck placeholder required value method enctype accept data-copy title datetime selected disabled open scope data-label`)
)

func words(text string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// checkMarkup reports whatever in a page is not of our making.
func checkMarkup(t *testing.T, target, text string, w *httptest.ResponseRecorder) {
	t.Helper()
	text = text[:min(len(text), 80)]
	document, err := html.Parse(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for n := range document.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("%s with %q: a comment: %s", target, text, n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if !elements[strings.ToLower(n.Data)] {
			t.Errorf("%s with %q: an element <%s>", target, text, n.Data)
		}
		if n.Data == "script" {
			if scripts++; n.FirstChild != nil {
				t.Errorf("%s with %q: a script in the page", target, text)
			}
		}
		for _, a := range n.Attr {
			if !attributes[strings.ToLower(a.Key)] {
				t.Errorf("%s with %q: an attribute %s=%q of <%s>", target, text, a.Key, a.Val, n.Data)
			}
			if a.Key != "href" && a.Key != "src" && a.Key != "action" {
				continue
			}
			own := strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//")
			web := strings.HasPrefix(a.Val, "https://x.example/") || strings.HasPrefix(a.Val, "http://feeds.home.arpa/") && (n.Data == "link" || n.Data == "a")
			if !own && !(web && a.Key == "href") && a.Val != "#main" {
				t.Errorf("%s with %q: <%s %s=%q>", target, text, n.Data, a.Key, a.Val)
			}
		}
	}
	if scripts != 1 {
		t.Errorf("%s with %q: %d scripts", target, text, scripts)
	}
}

// checkXML reports whatever in a document for programs is not of our making.
func checkXML(t *testing.T, target, text string, w *httptest.ResponseRecorder) {
	t.Helper()
	ours := words("opml head title body outline feed id updated author name link entry summary text type xmlUrl version href rel xmlns")
	d := xml.NewDecoder(w.Body)
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%s with %.80q: %v", target, text, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			for _, a := range append(token.Attr, xml.Attr{Name: token.Name}) {
				if !ours[a.Name.Local] {
					t.Errorf("%s with %.80q: <%s> has %s", target, text, token.Name.Local, a.Name.Local)
				}
			}
		case xml.Comment, xml.Directive:
			t.Errorf("%s with %.80q: %T", target, text, token)
		}
	}
}

// Hidden parts of a URL are not in pages, links and records.
func TestSecrets(t *testing.T) {
	p, source, at := newPages(t, 3)
	const secret = "hunter2"
	address := feedurl.Redacted("https://bob:" + secret + "@x.example/f?token=" + secret)
	feed := status.Feed{ID: "0a1b", URL: address, State: status.StateFresh, NextPoll: time.Now().Add(time.Hour),
		Incident: &status.Incident{Kind: status.IncidentFailing, Began: time.Now().Add(-25 * time.Hour)}}
	source.list = func(q status.Query) (status.FeedList, error) {
		return status.Select(func(yield func(status.Feed, error) bool) {
			if other := (status.Feed{ID: "ff", URL: "https://z.example/", State: status.StateFresh}); yield(feed, nil) {
				yield(other, nil)
			}
		}, q)
	}
	source.account = func(Which) (status.Feed, []byte, error) {
		feed.Alias = address
		return feed, nil, nil
	}
	source.saved = func() (status.Savings, error) {
		return status.Savings{Total: status.Traffic{Requests: 1}, Origins: []status.OriginTraffic{{Origin: "https://bob:" + secret + "@x.example"}}}, nil
	}
	at.Chosen = func() ([]status.Feed, error) { return []status.Feed{feed}, nil }
	hasNone := map[string]bool{"": true, "about": true, "readers": true, "opml": true} // of these URLs: a list leaves out secret ones
	for _, target := range append(pageNames(), "feeds?limit=1", "feeds?limit=1&sort=name", "feeds?q=x.example", "feeds?id=0a1b", "opml?asked", "opml?asked&direct") {
		name, _, _ := strings.Cut(target, "?")
		for _, kind := range []string{"text/html", "application/json"} {
			p, at := homeOf(target, p, at)
			w := ask(p, at, "GET", target, accept(kind))
			if shows := strings.Contains(w.Body.String(), "x.example"); w.Code != 200 || strings.Contains(w.Body.String(), secret) || !shows && !hasNone[name] {
				t.Errorf("%s as %s: %d %s", target, kind, w.Code, w.Body)
			}
		}
	}
	if body := ask(p, at, "GET", "feeds").Body.String(); !strings.Contains(body, `href="/-/feeds?id=0a1b"`) {
		t.Error("the feed's page cannot be reached")
	}
	if body := ask(p, at, "GET", "feeds?q="+secret).Body.String(); !strings.Contains(body, "No feed matches") {
		t.Error("a secret can be searched for")
	}
}
