// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRSSHints(t *testing.T) {
	long := strings.Repeat("x", 3000)
	tests := []struct {
		name, channel string
		want          string // the hints as JSON
		malformed     string // the names of hints that were no use
	}{
		{"none", ``, `{}`, ""},
		{"ttl", `<ttl> 060
</ttl>`, `{"ttl_minutes":60}`, ""},
		{"ttl zero", `<ttl>0</ttl>`, `{"ttl_minutes":0}`, ""},
		{"ttl beyond 32 bits", `<ttl>4294967296</ttl>`, `{"ttl_minutes":4294967296}`, ""},
		{"ttl in pieces", `<ttl>6<!-- x --><![CDATA[0]]></ttl>`, `{"ttl_minutes":60}`, ""},
		{"ttl with a fraction of zeros", `<ttl>
	60.0 </ttl>`, `{"ttl_minutes":60}`, ""},
		{"ttl with more zeros, and the same again", `<ttl>060.000</ttl><ttl>60.</ttl><ttl>60</ttl>`, `{"ttl_minutes":60}`, ""},
		{"ttl with a fraction", `<ttl>60.5</ttl><ttl>1.5</ttl><ttl>60.01</ttl><ttl>60.0.0</ttl><ttl>60,0</ttl><ttl>60. 0</ttl><ttl>.0</ttl><ttl>.</ttl><ttl>-60.0</ttl><ttl>6e1</ttl><ttl>60.0 min</ttl>`,
			`{}`, strings.TrimSpace(strings.Repeat("ttl ", 11))},
		{"ttl without sense", `<ttl/><ttl>-1</ttl><ttl>+1</ttl><ttl>0x3c</ttl><ttl>６０</ttl><ttl>60 minutes</ttl><ttl>99999999999999999999</ttl>`, `{}`, "ttl ttl ttl ttl ttl ttl ttl"},
		{"the first valid ttl", `<ttl>x</ttl><ttl>1440</ttl><ttl>60</ttl>`, `{"ttl_minutes":1440}`, "ttl ttl"},
		{"ttl of another namespace", `<x:ttl xmlns:x="urn:x">5</x:ttl>`, `{}`, ""},
		{"ttl of an item", `<item><ttl>5</ttl></item>`, `{}`, ""},

		{"skipHours", `<skipHours><hour>23</hour><hour> 0 </hour><hour>007</hour></skipHours>`, `{"skip_hours":[0,7,23]}`, ""},
		{"skipHours 24 and twice", `<skipHours><hour>24</hour><hour>0</hour></skipHours><skipHours><hour>3</hour></skipHours>`, `{"skip_hours":[0,3]}`, ""},
		{"skipHours with comments", `<skipHours><!-- night --><hour>2<!-- x --></hour></skipHours>`, `{"skip_hours":[2]}`, ""},
		{"skipHours in lower case", `<skiphours><Hour>2</Hour></skiphours>`, `{"skip_hours":[2]}`, ""},
		{"skipHours invalid one by one", `<skipHours><hour>-1</hour><hour>25</hour><hour>03:00</hour><hour>22-07</hour><hour/><hours>1</hours><x:hour xmlns:x="urn:x">4</x:hour><hour>3</hour></skipHours>`,
			`{"skip_hours":[3]}`, strings.TrimSpace(strings.Repeat("skip-hours ", 7))},
		{"skipHours as text", `<skipHours>1 2 3</skipHours><skipHours/>`, `{}`, "skip-hours skip-hours"},
		{"skipHours of every hour", `<skipHours>` + hours(24) + `</skipHours>`, `{"skip_hours":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23]}`, ""},

		{"skipDays", `<skipDays><day>sunday</day><day>SATURDAY</day><day>Monday</day><day>Monday</day></skipDays>`, `{"skip_days":["Monday","Saturday","Sunday"]}`, ""},
		{"skipDays of every day, by three letters", `<skipDays><day>mon</day><day>tue</day><day>wed</day><day>thu</day><day>fri</day><day>sat</day><day>sun</day></skipDays>`,
			`{"skip_days":["Monday","Tuesday","Wednesday","Thursday","Friday","Saturday","Sunday"]}`, ""},
		{"skipDays by other abbreviations", `<skipDays><day>Sa</day><day>Tues</day><day>Sat.</day><day/></skipDays>`, `{}`, "skip-days skip-days skip-days skip-days"},
		{"skipDays invalid", `<skipDays><day>Fantabuday</day><day>Samstag</day><day>6</day><days>Monday</days></skipDays><skipdays/>`, `{}`, "skip-days skip-days skip-days skip-days skip-days"},

		{"sy", `<sy:updatePeriod>
	Weekly </sy:updatePeriod><sy:updateFrequency> 2 </sy:updateFrequency><sy:updateBase>2000-01-01T12:00+00:00</sy:updateBase>`,
			`{"sy_period":"weekly","sy_frequency":2,"sy_base":"2000-01-01T12:00+00:00"}`, ""},
		{"sy invalid", `<sy:updatePeriod>fortnightly</sy:updatePeriod><sy:updateFrequency>0</sy:updateFrequency><sy:updateFrequency>-2</sy:updateFrequency><sy:updateFrequency>1.5</sy:updateFrequency><sy:updateFrequency>99999999999999999999</sy:updateFrequency><sy:updateBase>Mon, 31 Dec 2002 14:20:20 GMT</sy:updateBase>`,
			`{}`, "sy sy sy sy sy sy"},
		{"sy twice", `<sy:updatePeriod>yearly</sy:updatePeriod><sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>1</sy:updateFrequency><sy:updateFrequency>2</sy:updateFrequency>`, `{"sy_period":"yearly","sy_frequency":1}`, "sy sy"},
		{"sy under any prefix", `<a:updatePeriod xmlns:a="https://PURL.org/rss/1.0/modules/syndication">weekly</a:updatePeriod>`, `{"sy_period":"weekly"}`, ""},
		{"sy of an item", `<item><sy:updatePeriod>daily</sy:updatePeriod></item>`, `{}`, ""},

		{"update frequency", `<podcast:updateFrequency rrule=" FREQ=WEEKLY " dtstart="2024-01-01T00:00:00Z">Weekly
 show</podcast:updateFrequency>`, `{"update_frequency":{"text":"Weekly show","rrule":"FREQ=WEEKLY","dtstart":"2024-01-01T00:00:00Z"}}`, ""},
		{"update frequency complete", `<podcast:updateFrequency complete="true">Done</podcast:updateFrequency>`, `{"update_frequency":{"text":"Done","complete":true}}`, ""},
		{"update frequency invalid", `<podcast:updateFrequency complete="yes" dtstart="soon" rrule="` + long + `" x:rrule="y" xmlns:x="urn:x">x</podcast:updateFrequency>`, `{"update_frequency":{"text":"x"}}`, "update-frequency update-frequency update-frequency"},
		{"update frequency empty", `<podcast:updateFrequency/>`, `{}`, "update-frequency"},
		{"update frequency twice", `<podcast:updateFrequency rrule="A"/><podcast:updateFrequency rrule="B"/>`, `{"update_frequency":{"rrule":"A"}}`, "update-frequency"},
		{"update frequency by the other namespace", `<p:updateFrequency xmlns:p="https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md" rrule="A"/>`, `{"update_frequency":{"rrule":"A"}}`, ""},

		{"complete", `<itunes:complete> YES </itunes:complete>`, `{"complete":true}`, ""},
		{"complete no", `<itunes:complete>no</itunes:complete>`, `{}`, ""},
		{"complete invalid", `<itunes:complete>true</itunes:complete><itunes:complete/>`, `{}`, "complete complete"},
		{"complete in another case of the URI", `<i:complete xmlns:i="http://www.itunes.com/DTDs/PodCast-1.0.dtd">Yes</i:complete>`, `{"complete":true}`, ""},

		{"new feed URL", `<itunes:new-feed-url>
	https://new.example.org/f?a=1&amp;b=2 </itunes:new-feed-url>`, `{"new_feed_url":"https://new.example.org/f?a=1\u0026b=2"}`, ""},
		{"new feed URL invalid", `<itunes:new-feed-url>javascript:x</itunes:new-feed-url><itunes:new-feed-url>/f</itunes:new-feed-url><itunes:new-feed-url/><itunes:new-feed-url>http://a b/</itunes:new-feed-url><itunes:new-feed-url>http://a/` + long + `</itunes:new-feed-url>`, `{}`, "new-feed-url new-feed-url new-feed-url new-feed-url new-feed-url"},

		{"links", `<atom:link rel="self" href="https://example.org/feed.xml"/><atom:link rel="hub" href="https://h1/"/><atom:link rel="HUB" href="https://h2/"/><atom:link rel="hub" href="https://h1/"/>`,
			`{"hubs":["https://h1/","https://h2/"],"self":"https://example.org/feed.xml"}`, ""},
		{"several relations, and IANA's URIs", `<atom:link rel="hub http://www.iana.org/assignments/relation/self" href="https://h/"/>`, `{"hubs":["https://h/"],"self":"https://h/"}`, ""},
		{"links invalid", `<atom:link rel="hub" href="javascript:x"/><atom:link rel="hub"/><atom:link rel="self" href="/feed.xml"/>`, `{"self":"/feed.xml"}`, "hub hub self"},
		{"links of an item", `<item><atom:link rel="hub" href="https://h/"/></item>`, `{}`, ""},
		{"at most five hubs", strings.Join(eachHub(9), ""), `{"hubs":["https://h0/","https://h1/","https://h2/","https://h3/","https://h4/"]}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkHints(t, rssOpen+test.channel+rssClose, test.want, test.malformed)
		})
	}
}

func TestHintsElsewhere(t *testing.T) {
	tests := []struct {
		name, body, want, malformed string
	}{
		{"rdf", strings.Replace(rdfSample, "<title>", `<s:updatePeriod xmlns:s="http://purl.org/rss/1.0/modules/syndication/">daily</s:updatePeriod><title>`, 1), `{"sy_period":"daily"}`, ""},
		{"atom", atomSample, `{"hubs":["https://hub.example.org/"],"self":"https://example.org/atom.xml"}`, ""},
		{"atom knows no ttl", `<feed xmlns="http://www.w3.org/2005/Atom"><ttl>60</ttl></feed>`, `{}`, ""},
		{"atom with extensions", `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:s="http://purl.org/rss/1.0/modules/syndication/"><s:updateFrequency>3</s:updateFrequency></feed>`, `{"sy_frequency":3}`, ""},
		{"base on the link", `<rss xml:base="http://x/"><channel xml:base="/y/"><l:link xmlns:l="http://www.w3.org/2005/Atom" xml:base="z/" rel="self" href="f"/></channel></rss>`, `{"self":"http://x/y/z/f"}`, ""},
		{"json", jsonSample, `{"hubs":["https://hub.example.org/"],"self":"https://example.org/feed.json"}`, ""},
		{"json expired", jsonWith(`"expired": true`), `{"expired":true}`, ""},
		{"json expired as text", jsonWith(`"expired": "true"`), `{}`, "complete"},
		{"json expired in capitals", jsonWith(`"Expired": true`), `{}`, ""},
		{"json expired and not", jsonWith(`"expired": true, "expired": false`), `{}`, ""},
		{"json hubs invalid", jsonWith(`"hubs": [{"type": "WebSub", "url": "javascript:x"}, 5, null, {"type": "WebSub"}]`), `{}`, "hub hub"},
		{"json hubs no array", jsonWith(`"hubs": "https://h/"`), `{}`, "hub"},
		{"json relative self", jsonWith(`"feed_url": " /feed.json "`), `{"self":"/feed.json"}`, "self"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkHints(t, test.body, test.want, test.malformed) })
	}
}

func TestMalformedSaysWhatAndWhy(t *testing.T) {
	doc := read(t, rssOpen+"<ttl>60\n minutes "+strings.Repeat("x", 1000)+"</ttl>"+rssClose)
	if len(doc.Malformed) != 1 {
		t.Fatalf("malformed: %+v", doc.Malformed)
	}
	term := doc.Malformed[0]
	if !strings.HasPrefix(term.Raw, "60 minutes xxx") || len(term.Raw) > 100 || term.Note == "" || term.Used {
		t.Errorf("malformed: %+v", term)
	}
}

func checkHints(t *testing.T, body, want, malformed string) {
	t.Helper()
	doc := read(t, body)
	got, err := json.Marshal(doc.Hints)
	if err != nil || string(got) != want {
		t.Errorf("hints %s, %v; want %s", got, err, want)
	}
	var names []string
	for _, term := range doc.Malformed {
		names = append(names, term.Hint)
	}
	if !slices.Equal(names, strings.Fields(malformed)) {
		t.Errorf("malformed %+v; want %q", doc.Malformed, malformed)
	}
}

func hours(n int) string {
	var b strings.Builder
	for hour := range n {
		fmt.Fprintf(&b, "<hour>%d</hour>", hour)
	}
	return b.String()
}

func eachHub(n int) []string {
	links := make([]string, n)
	for i := range links {
		links[i] = fmt.Sprintf(`<atom:link rel="hub" href="https://h%d/"/>`, i)
	}
	return links
}

func jsonWith(members string) string {
	return `{"version": "https://jsonfeed.org/version/1.1", ` + members + `, "items": []}`
}
