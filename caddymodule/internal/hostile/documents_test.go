// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// document is what an origin gives in place of a feed.
type document struct {
	name, body string
	media      string // Content-Type; empty: of RSS
}

const (
	rssOpen   = `<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel><title>Before</title>`
	rssClose  = `<item><title>Item</title><guid>1</guid></item></channel></rss>`
	atomOpen  = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Before</title><id>urn:x</id>`
	atomClose = `<entry><title>Item</title><id>urn:1</id></entry></feed>`
	jsonOpen  = `{"version":"https://jsonfeed.org/version/1.1","title":"Before",`
	jsonClose = `"items":[{"id":"1","title":"Item"}]}`
)

func repeat(unit string, n int) string { return strings.Repeat(unit, n) }

// numbered joins n pieces made with a number.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// bombs are small things that many parsers make large or slow, and large things. Packages document
// and links have tests of more of them. These are for what a whole process takes.
func bombs() (list []document) {
	add := func(name, body string) { list = append(list, document{name: name, body: body}) }
	const deep, many = 300_000, 100_000
	add("nested elements", rssOpen+repeat("<x>", deep)+repeat("</x>", deep)+rssClose)
	add("nested elements in XHTML", atomOpen+`<entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`+repeat("<x>", deep)+repeat("</x>", deep)+"</div></content></entry>"+atomClose)
	add("namespaces on an element", rssOpen+"<x"+numbered(` xmlns:n%d="urn:%[1]d"`, 5000)+"/>"+rssClose)
	add("attributes", atomOpen+"<entry><x"+numbered(` a%d=""`, many)+"/></entry>"+atomClose)
	add("an attribute of 4 MB", rssOpen+`<media:group><x a="`+repeat("a", 4<<20)+`"/></media:group>`+rssClose)
	add("a name of 4 MB", rssOpen+"<item><"+repeat("a", 4<<20)+"/></item>"+rssClose)
	add("ampersands", rssOpen+"<item><title>"+repeat("&", 1<<20)+"</title></item>"+rssClose)
	laughs := `<!ENTITY l0 "lol">`
	for i := range 20 {
		laughs += fmt.Sprintf(`<!ENTITY l%d "%s">`, i+1, repeat(fmt.Sprintf("&l%d;", i), 10))
	}
	dtd := func(subset, text string) string {
		return "<!DOCTYPE rss [" + subset + "]>" + strings.TrimPrefix(rssOpen, `<?xml version="1.0"?>`) + "<item><title>" + text + "</title></item>" + rssClose
	}
	add("10^20 laughs", dtd(laughs, "&l20;"))
	for _, system := range []string{"file:///etc/hostname", "http://127.0.0.1/hunter2", "data:text/plain,hunter2", "file:///dev/zero"} {
		add("an entity from "+system, dtd(`<!ENTITY a SYSTEM "`+system+`">`, "&a;"))
	}
	add("XInclude", rssOpen+`<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/hostname" parse="text"/>`+rssClose)
	add("xml:base of 1 MB", strings.Replace(atomOpen, "<feed", `<feed xml:base="http://x.test/`+repeat("a", 1<<20)+`/"`, 1)+repeat(`<link href="b"/>`, 1000)+atomClose)
	add("200,000 items", rssOpen+repeat("<item><guid>1</guid></item>", 2*many)+rssClose)
	add("50,000 hubs", rssOpen+numbered(`<atom:link rel="hub" href="https://h%d.test/"/>`, many/2)+rssClose)
	add("50,000 links to be made absolute", rssOpen+repeat(`<item><link>a</link><enclosure url="b"/></item>`, many/2)+rssClose)
	add("100,000 images in a description", rssOpen+"<item><description>"+repeat(`&lt;img src="a"&gt;`, many)+"</description></item>"+rssClose)
	add("a guid of 4 MB", rssOpen+"<item><guid>"+repeat("g", 4<<20)+"</guid></item>"+rssClose)
	add("15 MiB, and a byte", feed+repeat("\n", 15<<20-len(feed)+1))
	add("15 MiB, exactly", strings.Replace(feed, "Good", repeat("G", 15<<20-len(feed)+4), 1))
	for _, what := range []struct{ name, body string }{
		{"nested arrays", jsonOpen + `"x":` + repeat("[", deep) + repeat("]", deep) + "," + jsonClose}, {"nested objects without end", jsonOpen + `"x":` + repeat(`{"a":`, deep)},
		{"200,000 empty items", jsonOpen + `"items":[` + repeat("{},", 2*many) + "{}]}"}, {"200,000 members", jsonOpen + numbered(`"m%d":1,`, 2*many) + jsonClose},
		{"a number of 4 MB", jsonOpen + `"x":` + repeat("9", 4<<20) + "," + jsonClose}, {"1e999999999", jsonOpen + `"x":1e999999999,` + jsonClose}, {"a string of escapes", jsonOpen + `"x":"` + repeat(`\u0000`, many) + `",` + jsonClose},
		{"50,000 attachments", jsonOpen + `"items":[{"id":"1","attachments":[` + repeat(`{"url":"a"},`, many/2) + `{}]}]}`}, {"white space", repeat(" ", 5<<20) + jsonOpen + jsonClose},
	} {
		list = append(list, document{"JSON: " + what.name, what.body, "application/feed+json"})
	}
	return list
}

// lies are hints, dates and links that want something of the gateway that it must not do. Packages
// document and policy have tests of how each is read.
func lies() (list []document) {
	digits := repeat("9", 400)
	in := func(kind, element string, values ...string) {
		for _, v := range values {
			list = append(list, document{name: fmt.Sprintf("%s %.40q (%d)", kind, v, len(v)), body: rssOpen + fmt.Sprintf(element, v) + rssClose})
		}
	}
	in("ttl", "<ttl>%s</ttl>", "-1", digits, "1e9", "9223372036854775807", "1\x0060")
	in("hour", "<skipHours><hour>%s</hour></skipHours>", "-1", digits, "25")
	in("all hours", "<skipHours>%s</skipHours>", numbered("<hour>%d</hour>", 24))
	in("day", "<skipDays><day>%s</day></skipDays>", repeat("Monday", 10_000), "Monday</day><day>Tuesday</day><day>Wednesday</day><day>Thursday</day><day>Friday</day><day>Saturday</day><day>Sunday")
	in("frequency", "<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>%s</sy:updateFrequency>", "0", digits)
	in("base", "<sy:updateBase>%s</sy:updateBase>", digits, "9999-12-31T23:59+00:00")
	in("rule", `<u:updateFrequency xmlns:u="https://podcastindex.org/namespace/1.0" rrule="%s">x</u:updateFrequency>`, "FREQ=SECONDLY", "FREQ=YEARLY;INTERVAL="+digits, "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31", "FREQ=DAILY;BYSETPOS="+repeat("1,", 50_000), repeat("FREQ=DAILY;", 10_000), "FREQ=DAILY;INTERVAL=0")
	in("complete", `<i:complete xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd">%s</i:complete>`, "yes", repeat("yes", 10_000))
	urls := []string{"javascript:alert(1)", "file:///etc/passwd", "http://169.254.169.254/", "http://127.0.0.1:6379/", "//x.test/", "\n", "http://x.test/" + repeat("../", 50_000), "http://[::1", "http://x.test/&lt;script&gt;", "http://user:hunter2@x.test/", "\u202ehttp://x.test/"}
	in("new-feed-url", `<i:new-feed-url xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd">%s</i:new-feed-url>`, urls...)
	in("hub", `<atom:link rel="hub" href="%s"/>`, urls...)
	in("link", "<link>%s</link>", urls...)
	in("enclosure", `<item><enclosure url="%s" length="-1" type="x"/></item>`, urls...)
	in("cloud", `<cloud domain="%s" port="22" path="/RPC2" registerProcedure="x" protocol="xml-rpc"/>`, "127.0.0.1")
	in("date", "<item><pubDate>%s</pubDate></item>", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", digits, "Thu, 01 Jan 0000 00:00:00 GMT", repeat("Mon, ", 50_000), "Thu, 01 Jan 2025 00:00:00 (((((((((")
	in("ever newer dates", "%s", numbered("<item><guid>%d</guid><pubDate>Fri, 31 Dec 9999 23:59:59 GMT</pubDate></item>", 100))
	for _, doc := range []struct{ name, body, media string }{
		{"a log-in page", "<!DOCTYPE html><html><head><title>hunter2</title></head><body><form><input type=password></form></body></html>", "text/html"}, {"a log-in page, as RSS", "<!DOCTYPE html><html><head><title>hunter2</title></head></html>", ""}, {"a page with a feed in it", "<html><body>" + feed + "</body></html>", ""},
		{"a page with a feed behind it", "<html></html>" + feed, ""}, {"a page in XHTML", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><title>hunter2</title></html>`, ""}, {"SVG", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "image/svg+xml"},
		{"SOAP", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>hunter2</s:Body></s:Envelope>`, ""}, {"OPML", `<opml version="2.0"><body><outline xmlUrl="http://x.test/"/></body></opml>`, ""}, {"an S3 error", `<Error><Code>AccessDenied</Code><Message>hunter2</Message></Error>`, ""},
		{"text", "db_password=hunter2", ""}, {"PHP", `<?php echo "hunter2"; ?>`, ""}, {"a JSON error", `{"error":"hunter2"}`, ""}, {"JSONP", `alert({"version":"https://jsonfeed.org/version/1","items":[]})`, ""}, {"JSON and script", jsonOpen + jsonClose + "<script>alert(1)</script>", ""}, {"JSON of strings only", `"hunter2"`, ""},
		{"JSON with items twice", jsonOpen + `"items":[{"id":"2"}],` + jsonClose, ""}, {"JSON with comments", "/*hunter2*/" + jsonOpen + jsonClose, ""}, {"JSON: numbers for all", jsonOpen + `"items":[{"id":7,"title":8,"url":9,"authors":10,"tags":11,"date_published":12,"attachments":13}]}`, ""}, {"JSON: null for all", jsonOpen + `"items":[{"id":null,"title":null,"url":null,"authors":[null],"tags":[null],"date_published":null,"attachments":[null]}],"authors":[null],"hubs":[null]}`, ""},
		{"a picture", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png"}, {"a picture of type RSS", "GIF89a" + feed, ""}, {"ELF", "\x7fELF\x02\x01\x01", ""}, {"iCalendar", "BEGIN:VCALENDAR\r\nSUMMARY:hunter2\r\n", ""}, {"CSV", "hunter2,1,2,3\n", ""}, {"a key", "-----BEGIN PRIVATE KEY-----\nhunter2\n", ""},
		{"a debugger's page", "<!-- Traceback: hunter2 --><html>", ""}, {"Atom in RSS", rssOpen + atomOpen + atomClose + rssClose, ""}, {"an entry alone", `<entry xmlns="http://www.w3.org/2005/Atom"/>`, ""}, {"an unknown namespace", `<feed xmlns="urn:hunter2"><entry/></feed>`, ""}, {"RSS 99", strings.Replace(feed, "2.0", "99", 1), ""}, {"half a feed", feed[:len(feed)/2], ""}, {"a feed without an end", strings.TrimSuffix(feed, "</rss>"), ""},
		{"script", rssOpen + `<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>` + rssClose, "text/html"}, {"a stylesheet", `<?xml-stylesheet type="text/xsl" href="/evil.xsl"?>` + feed, "text/xml"}, {"SVG with script in a feed", rssOpen + `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>` + rssClose, "image/svg+xml"},
	} {
		list = append(list, document{doc.name, doc.body, doc.media})
	}
	return list
}

// TestHostileDocuments has origins answer with documents that are not feeds, with bad feeds,
// and with good ones that would cost much. Each is a feed to its readers, or a failure.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // most of the time they wait
	defer all.Wait()
	for _, front := range []struct {
		name      string
		documents []document
		atOnce    int
	}{{"bombs", bombs(), 8}, {"lies", lies(), 64}} {
		all.Go(func() {
			t.Run(front.name, func(t *testing.T) {
				var attacks []attack
				for _, d := range front.documents {
					if d.media == "" {
						d.media = "application/rss+xml"
					}
					raw := strings.Replace(ok("ETag: \"2\"\r\n", d.body), "application/rss+xml", d.media, 1)
					attacks = append(attacks, attack{name: d.name, send: says(raw), any: true, heavy: len(raw) > 1<<20})
				}
				attackByOrigins(t, attacks, front.atOnce)
			})
		})
	}
}
