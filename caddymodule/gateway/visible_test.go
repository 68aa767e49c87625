// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/upstream"
)

// canary matches the words by which a feed (f), a reader (r) or the target of a redirect (t) is
// recognized wherever it shows up.
var canary = regexp.MustCompile(`[frt]\d+canary`)

const target = "https://elsewhere.example/t1canary" // where feed 1 redirects to, and what it serves

func wordOf(kind string, i int) string { return fmt.Sprintf("%s%dcanary", kind, i) }

// canaryFeeds are origins of feeds whose URLs, titles, entries and validators all hold their word.
type canaryFeeds struct{}

func canaryURL(i int) string { return fmt.Sprintf("https://%s.example/feed", wordOf("f", i)) }

func (canaryFeeds) RoundTrip(r *http.Request) (*http.Response, error) {
	w, word := httptest.NewRecorder(), canary.FindString(r.URL.Host)
	switch word {
	case wordOf("f", 0): // it fails
		w.WriteHeader(http.StatusInternalServerError)
	case wordOf("f", 1):
		http.Redirect(w, r, target, http.StatusMovedPermanently)
	default:
		w.Header().Set("Content-Type", "application/rss+xml")
		w.Header().Set("ETag", `"`+word+`"`)
		fmt.Fprintf(w, `<rss version="2.0"><channel><title>%[1]s</title><link>https://%[1]s.example/</link><item><title>%[1]s</title></item></channel></rss>`, word)
	}
	return w.Result(), nil
}

// canaryGateway is a random gateway, and what its lines say.
type canaryGateway struct {
	*Gateway
	lines, clients string
	named          map[int]bool // feeds in its lines feed and opml
}

func randomGateway(t *testing.T, rng *rand.Rand, feeds int, provision func(lines string) *Gateway) canaryGateway {
	g := canaryGateway{named: make(map[int]bool)}
	g.clients = []string{"private", "203.0.113.0/24", "203.0.113.0/24 private", "any"}[rng.IntN(4)]
	lines := []string{"clients " + g.clients}
	some := func(chance float64, line func(i int) string) (chosen []string) {
		for i := range feeds {
			if rng.Float64() < chance {
				chosen = append(chosen, line(i))
			}
		}
		return chosen
	}
	host := func(i int) string { return wordOf("f", i) + ".example" }
	for _, name := range []string{"alice", "bob"} {
		if rng.IntN(2) == 0 {
			lines = append(lines, "token "+name+" s3cret-of-"+name)
		}
	}
	if rng.IntN(3) == 0 {
		lines = append(lines, "readers")
	}
	if allowed := some(0.6, host); rng.IntN(2) == 0 && len(allowed) > 0 {
		lines = append(lines, "allow "+strings.Join(allowed, " "))
	}
	if denied := some(0.2, host); len(denied) > 0 {
		lines = append(lines, "deny "+strings.Join(denied, " "))
	}
	lines = append(lines, some(0.15, func(i int) string {
		g.named[i] = true
		return fmt.Sprintf("feed /chosen%d.xml %s", i, canaryURL(i))
	})...)
	if rng.IntN(3) == 0 {
		list := filepath.Join(t.TempDir(), "list.opml")
		stage.WriteFile(t, list, "<opml><body>"+strings.Join(some(0.3, func(i int) string {
			g.named[i] = true
			return `<outline xmlUrl="` + canaryURL(i) + `"/>`
		}), "")+"</body></opml>")
		lines = append(lines, "opml "+list)
	}
	g.lines = strings.Join(lines, "\n")
	g.Gateway = provision(g.lines)
	return g
}

// canaryViewer is a client, and the prefix of its paths.
type canaryViewer struct {
	reader             string
	address, at, token string
}

// kind is how the gateway admits the viewer; empty: as any client.
func (g *canaryGateway) kind(v canaryViewer) string {
	if v.token != "" {
		return v.token
	}
	return strings.Replace(g.clients, "any", "", 1)
}

// A gateway shows a viewer a feed if it would serve it to that viewer, and if its configuration
// names the feed or someone admitted alike has asked for it. Nothing of another feed shows up
// anywhere, and nothing of theirs is hidden.
func TestPagesShowWhatTheirViewerMayRequest(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const feeds = 9
				rng := rand.New(rand.NewPCG(seed, 1))
				ctx, a := stage.Provision(t, upstream.New(upstream.WithTransport(canaryFeeds{})), `,"spacing":0`)
				var gateways []canaryGateway
				for range 4 {
					gateways = append(gateways, randomGateway(t, rng, feeds, func(lines string) *Gateway { return provisioned(t, ctx, lines) }))
				}
				start(t, a)
				viewers := []canaryViewer{
					{wordOf("r", 0), stage.Home, "", ""}, {wordOf("r", 1), "203.0.113.7", "", ""}, {wordOf("r", 2), "8.8.8.8", "", ""},
					{wordOf("r", 3), "8.8.8.8", "/~s3cret-of-alice", "alice"}, {wordOf("r", 4), stage.Home, "/~s3cret-of-bob", "bob"},
				}
				asked := make(map[string]map[int]bool)
				for range 60 {
					g, v, i := &gateways[rng.IntN(len(gateways))], viewers[rng.IntN(len(viewers))], rng.IntN(feeds)
					ask(t, g.Gateway, "GET", v.at+"/"+canaryURL(i), v.address, "User-Agent", v.reader)
					if g.may(v, i) {
						note(asked, g.kind(v), i)
					}
				}
				for i := range gateways {
					for _, v := range viewers {
						checkViewer(t, &gateways[i], v, feeds, asked)
					}
				}
			})
		})
	}
}

// may reports whether a viewer may request a feed by URL.
func (g *canaryGateway) may(v canaryViewer, feed int) bool {
	return g.access.authorize(g.client(v), feedurl.MustParse(canaryURL(feed))) == nil
}

func (g *canaryGateway) client(v canaryViewer) client {
	c := client{Client: door.Client{Address: netip.MustParseAddr(v.address)}, hasToken: v.token != "", token: g.access.tokenOf(strings.TrimPrefix(v.at, "/~"))}
	c.named = g.access.clients.name(c)
	return c
}

func note(of map[string]map[int]bool, who string, feed int) {
	if of[who] == nil {
		of[who] = make(map[int]bool)
	}
	of[who][feed] = true
}

// checkViewer looks at all pages of a gateway as a viewer.
func checkViewer(t *testing.T, g *canaryGateway, v canaryViewer, feeds int, asked map[string]map[int]bool) {
	t.Helper()
	kind, visible := g.kind(v), make(map[int]bool)
	for i := range feeds {
		_, byPath := g.chosen[canaryURL(i)]
		from := i != 1 || g.access.checkURL(feedurl.MustParse(target), g.named[1]) == nil
		visible[i] = (g.may(v, i) && from || byPath) && (g.named[i] || kind != "" && asked[kind][i])
	}
	targets := []string{"/", "/-/feeds?limit=1000&state=unread", "/-/feeds?q=canary", "/-/opml?asked", "/-/opml?direct", "/-/opml?asked&direct", "/-/none"}
	for _, name := range pages.Names() {
		targets = append(targets, "/-/"+name)
	}
	for i := range feeds {
		targets = append(targets, "/-/feeds?url="+url.QueryEscape(canaryURL(i)), "/-/feeds?q="+wordOf("f", i))
	}
	var shown []int
	for _, page := range targets {
		for _, accept := range []string{"text/html", "application/json"} {
			w := ask(t, g.Gateway, "GET", v.at+page, v.address, "Accept", accept)
			text := w.Body.String() + fmt.Sprint(w.Header())
			if search, ok := strings.CutPrefix(page, "/-/feeds?q="); ok {
				text = strings.ReplaceAll(text, `value="`+search+`"`, "") // the form repeats it
			}
			for _, word := range canary.FindAllString(text, -1) {
				var n int
				fmt.Sscanf(word[1:], "%dcanary", &n)
				switch ok := visible[n]; {
				case word[0] == 't':
					if g.access.checkURL(feedurl.MustParse(target), g.named[1]) != nil || !visible[1] && !asked[kind][1] { // it has asked for that, too
						t.Fatalf("%s with\n%s\nshows a redirect's target to %+v:\n%s", page, g.lines, v, w.Body)
					}
				case word[0] == 'r':
					t.Fatalf("%s with\n%s\nshows %s to %+v", page, g.lines, word, v)
				case page == "/-/savings" && g.named[n]:
				case !ok, page == "/-/savings":
					t.Fatalf("%s with\n%s\nshows %s to %+v, who asked for %v:\n%s", page, g.lines, word, v, asked[kind], w.Body)
				default:
					shown = append(shown, n)
				}
			}
		}
	}
	for i := range feeds {
		listed := g.access.admit(g.client(v)) == nil && kind != ""
		if polled := asked[kind][i] || g.named[i] && anyAsked(asked, i); listed && polled && visible[i] && !slices.Contains(shown, i) {
			t.Fatalf("with\n%s\n%s is hidden from %+v, who asked for %v", g.lines, wordOf("f", i), v, asked[kind])
		}
	}
	checkSums(t, g, v)
}

// checkSums compares the totals of the pages with the lists.
func checkSums(t *testing.T, g *canaryGateway, v canaryViewer) {
	t.Helper()
	get := func(target string, into any) bool {
		w := ask(t, g.Gateway, "GET", v.at+target, v.address, "Accept", "application/json")
		if w.Code != http.StatusOK {
			return false
		}
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
		return true
	}
	var home struct{ Feeds map[string]int }
	var list, unread struct{ Matched int }
	if !get("/-/feeds", &list) || !get("/-/feeds?state=unread", &unread) || !get("/", &home) {
		return
	}
	sum := 0
	for _, n := range home.Feeds {
		sum += n
	}
	if sum != list.Matched+unread.Matched {
		t.Errorf("with\n%s\n%d feeds in all, %d and %d in lists", g.lines, sum, list.Matched, unread.Matched)
	}
	var saved struct {
		Total struct{ Requests, Polls int }
	}
	if !get("/-/savings", &saved) {
		t.Error("no savings")
	}
	counted := func(string) bool { return true }
	if v.token != "" {
		counted = g.isNamed
	}
	if want := g.engine.Traffic(t.Context(), counted, counted).Total; saved.Total.Requests != int(want.Requests) || saved.Total.Polls != int(want.Polls) {
		t.Errorf("with\n%s\nthe total of savings is not that of all gateways, or with a token of the named feeds, %+v: %+v", g.lines, want, saved)
	}
}

func anyAsked(asked map[string]map[int]bool, feed int) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(asked)), func(feeds map[int]bool) bool { return feeds[feed] })
}
