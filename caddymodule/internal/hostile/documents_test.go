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

// bombs are small things that many parsers make large or slow, and large things.
func bombs() (list []document) {
	add := func(name, body string) { list = append(list, document{name: name, body: body}) }
	const deep, many = 300_000, 100_000
	for i, place := range []struct{ name, before, after string }{
		{"the channel", rssOpen, rssClose}, {"an item", rssOpen + "<item>", "</item>" + rssClose}, {"a title", rssOpen + "<item><title>", "</title></item>" + rssClose},
		{"an Atom feed", atomOpen, atomClose}, {"an Atom entry", atomOpen + "<entry>", "</entry>" + atomClose}, {"XHTML of an entry", atomOpen + `<entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`, "</div></content></entry>" + atomClose},
		{"an extension", rssOpen + "<media:group>", "</media:group>" + rssClose},
	} {
		for j, what := range []struct{ name, body string }{
			{"nested elements", repeat("<x>", deep) + repeat("</x>", deep)},
			{"namespaces on an element", "<x" + numbered(` xmlns:n%d="urn:%[1]d"`, 5000) + "/>"},
			{"attributes", "<x" + numbered(` a%d=""`, many) + "/>"},
			{"an attribute of 4 MB", `<x a="` + repeat("a", 4<<20) + `"/>`},
			{"a name of 4 MB", "<" + repeat("a", 4<<20) + "/>"},
			{"empty elements", repeat("<x/>", 2*many)},
			{"ampersands", repeat("&", 1<<20)},
			{"text of 4 MB", repeat("text ", 800_000)},
		} {
			if !*campaign && (i+j)%7 != 0 {
				continue // each of them in one place, and in a campaign in all places
			}
			add(what.name+" in "+place.name, place.before+what.body+place.after)
		}
	}
	dtd := func(subset, text string) string {
		return "<!DOCTYPE rss [" + subset + "]>" + strings.TrimPrefix(rssOpen, `<?xml version="1.0"?>`) + "<item><title>" + text + "</title></item>" + rssClose
	}
	add("a billion laughs", dtd(`<!ENTITY l "lol">`+numbered(`<!ENTITY l%d "&l;&l;&l;&l;&l;&l;&l;&l;&l;&l;">`, 10), "&l9;"))
	laughs := `<!ENTITY l0 "lol">`
	for i := range 20 {
		laughs += fmt.Sprintf(`<!ENTITY l%d "%s">`, i+1, repeat(fmt.Sprintf("&l%d;", i), 10))
	}
	add("10^20 laughs", dtd(laughs, "&l20;"))
	for _, system := range []string{"file:///etc/hostname", "/etc/hostname", "http://127.0.0.1/hunter2", "ftp://127.0.0.1/", "expect://id", "php://filter/read=convert.base64-encode/resource=/etc/passwd", "jar:file:///a!/b", "data:text/plain,hunter2", "\\\\127.0.0.1\\share", "file:///dev/zero", "file:///dev/random"} {
		add("an entity from "+system, dtd(`<!ENTITY a SYSTEM "`+system+`">`, "&a;"))
	}
	add("100,000 entities", dtd(numbered(`<!ENTITY a%d "b">`, many), "&a99999;"))
	add("XInclude", rssOpen+`<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/hostname" parse="text"/>`+rssClose)
	add("xml:base of 1 MB", strings.Replace(atomOpen, "<feed", `<feed xml:base="http://x.test/`+repeat("a", 1<<20)+`/"`, 1)+repeat(`<link href="b"/>`, 1000)+atomClose)
	add("200,000 items", rssOpen+repeat("<item><guid>1</guid></item>", 2*many)+rssClose)
	add("50,000 hubs", rssOpen+numbered(`<atom:link rel="hub" href="https://h%d.test/"/>`, many/2)+rssClose)
	add("50,000 links to be made absolute", rssOpen+repeat(`<item><link>a</link><enclosure url="b"/></item>`, many/2)+rssClose)
	add("100,000 images in a description", rssOpen+"<item><description>"+repeat(`&lt;img src="a"&gt;`, many)+"</description></item>"+rssClose)
	add("an attribute of HTML without end", rssOpen+"<item><description>&lt;a href=\""+repeat("x", 4<<20)+"</description></item>"+rssClose)
	add("a srcset of 100,000", rssOpen+`<item><description>&lt;img srcset="`+repeat("a 1x, ", many)+`"&gt;</description></item>`+rssClose)
	add("a guid of 4 MB", rssOpen+"<item><guid>"+repeat("g", 4<<20)+"</guid></item>"+rssClose)
	add("10 MiB, and a byte", feed+repeat("\n", 10<<20-len(feed)+1))
	add("10 MiB, exactly", strings.Replace(feed, "Good", repeat("G", 10<<20-len(feed)+4), 1))
	for _, what := range []struct{ name, body string }{
		{"nested arrays", jsonOpen + `"x":` + repeat("[", deep) + repeat("]", deep) + "," + jsonClose}, {"nested arrays without end", jsonOpen + `"x":` + repeat("[", deep)},
		{"nested objects", jsonOpen + `"x":` + repeat(`{"a":`, deep) + "1" + repeat("}", deep) + "," + jsonClose}, {"nested items", jsonOpen + `"items":` + repeat("[", deep)}, {"nested hubs", jsonOpen + `"hubs":` + repeat(`[{"a":`, deep)},
		{"200,000 null items", jsonOpen + `"items":[` + repeat("null,", 2*many) + "null]}"}, {"200,000 empty items", jsonOpen + `"items":[` + repeat("{},", 2*many) + "{}]}"}, {"items of numbers", jsonOpen + `"items":[` + repeat("1,", many) + "1]}"},
		{"200,000 members", jsonOpen + numbered(`"m%d":1,`, 2*many) + jsonClose}, {"one member, 200,000 times", jsonOpen + repeat(`"m":1,`, 2*many) + jsonClose}, {"a number of 4 MB", jsonOpen + `"x":` + repeat("9", 4<<20) + "," + jsonClose},
		{"a fraction of 1 MB", jsonOpen + `"x":0.` + repeat("9", 1<<20) + "," + jsonClose}, {"an exponent of 1 MB", jsonOpen + `"x":1e` + repeat("9", 1<<20) + "," + jsonClose}, {"1e999999999", jsonOpen + `"x":1e999999999,` + jsonClose},
		{"a string of escapes", jsonOpen + `"x":"` + repeat(`\u0000`, many) + `",` + jsonClose}, {"a string of 4 MB", jsonOpen + `"x":"` + repeat("x", 4<<20) + `",` + jsonClose}, {"a name of 4 MB", jsonOpen + `"` + repeat("x", 4<<20) + `":1,` + jsonClose},
		{"50,000 hubs", jsonOpen + `"hubs":[` + repeat(`{"type":"WebSub","url":"https://x.test/"},`, many/2) + `{}],` + jsonClose}, {"50,000 attachments", jsonOpen + `"items":[{"id":"1","attachments":[` + repeat(`{"url":"a"},`, many/2) + `{}]}]}`}, {"white space", repeat(" ", 5<<20) + jsonOpen + jsonClose},
	} {
		list = append(list, document{"JSON: " + what.name, what.body, "application/feed+json"})
	}
	return list
}

// lies are hints, dates and links that want something of the gateway that it must not do.
func lies() (list []document) {
	digits := repeat("9", 400)
	in := func(kind, element string, values ...string) {
		for _, v := range values {
			list = append(list, document{name: fmt.Sprintf("%s %.40q (%d)", kind, v, len(v)), body: rssOpen + fmt.Sprintf(element, v) + rssClose})
		}
	}
	numbers := []string{"-1", "0", digits, "1e9", "0x10", "NaN", "Infinity", "1.5", "٣", "", "1 2", "9223372036854775807", "9223372036854775808", "1\x0060"}
	in("ttl", "<ttl>%s</ttl>", numbers...)
	in("hour", "<skipHours><hour>%s</hour></skipHours>", append(numbers, "24", "25", "23</hour><hour>0")...)
	in("day", "<skipDays><day>%s</day></skipDays>", "Monday", "Fantabuday", "", repeat("Monday", 10_000), "0")
	in("frequency", "<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>%s</sy:updateFrequency>", numbers...)
	in("period", "<sy:updatePeriod>%s</sy:updatePeriod>", "secondly", "", "never", repeat("hourly", 10_000))
	in("base", "<sy:updateBase>%s</sy:updateBase>", "0000-00-00T00:00+00:00", digits, "9999-12-31T23:59+00:00", "-1")
	in("all hours", "<skipHours>%s</skipHours>", numbered("<hour>%d</hour>", 24))
	in("all days", "<skipDays>%s</skipDays>", "<day>Monday</day><day>Tuesday</day><day>Wednesday</day><day>Thursday</day><day>Friday</day><day>Saturday</day><day>Sunday</day>")
	in("rule", `<u:updateFrequency xmlns:u="https://podcastindex.org/namespace/1.0" rrule="%s">x</u:updateFrequency>`, "FREQ=SECONDLY", "FREQ=YEARLY;INTERVAL="+digits, "FREQ=DAILY;COUNT=0", "FREQ=DAILY;UNTIL=00000000", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31", "FREQ=DAILY;BYSETPOS="+repeat("1,", 50_000), "FREQ=MINUTELY;BYHOUR=25", "FREQ=DAILY;FREQ=DAILY", "RRULE:RRULE:", repeat("FREQ=DAILY;", 10_000), "FREQ=DAILY;INTERVAL=0", "FREQ=DAILY;INTERVAL=-1")
	in("complete", `<i:complete xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd">%s</i:complete>`, "yes", "YES", "maybe", repeat("yes", 10_000))
	urls := []string{"javascript:alert(1)", "data:text/html,hunter2", "file:///etc/passwd", "http://169.254.169.254/", "http://127.0.0.1:6379/", "//x.test/", "", " ", "\n", "http://" + repeat("a", 100_000), "http://x.test/" + repeat("../", 50_000), "http://[::1", "http://x.test/&lt;script&gt;", "http://user:hunter2@x.test/", "http://x.test/%00", "ldap://x.test/", "\u202ehttp://x.test/"}
	in("new-feed-url", `<i:new-feed-url xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd">%s</i:new-feed-url>`, urls...)
	in("hub", `<atom:link rel="hub" href="%s"/>`, urls...)
	in("self", `<atom:link rel="self" href="%s"/>`, urls...)
	in("link", "<link>%s</link>", urls...)
	in("enclosure", `<item><enclosure url="%s" length="-1" type="x"/></item>`, urls...)
	in("cloud", `<cloud domain="%s" port="22" path="/RPC2" registerProcedure="x" protocol="xml-rpc"/>`, "127.0.0.1", "169.254.169.254")
	in("date", "<item><pubDate>%s</pubDate></item>", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 31 Feb 2025 25:61:61 +9900", "0", digits, "-1", "", "now", "Thu, 01 Jan 0000 00:00:00 GMT", "2025-01-01T00:00:00+99:99", repeat("Mon, ", 50_000), "Mon, 01 Jan 2025 00:00:00 "+repeat("Z", 10_000), "01/02/03", "٠١/٠١/٢٠٢٥", "2025-W01-1", "1e300", "Thu, 01 Jan 2025 00:00:00 (((((((((", "24:00:00")
	in("ever newer dates", "%s", numbered("<item><guid>%d</guid><pubDate>Fri, 31 Dec 9999 23:59:59 GMT</pubDate></item>", 100))
	for _, doc := range []struct{ name, body, media string }{
		{"a log-in page", "<!DOCTYPE html><html><head><title>hunter2</title></head><body><form><input type=password></form></body></html>", "text/html"}, {"a log-in page, as RSS", "<!DOCTYPE html><html><head><title>hunter2</title></head></html>", ""}, {"a page with a feed in it", "<html><body>" + feed + "</body></html>", ""},
		{"a page with a feed behind it", "<html></html>" + feed, ""}, {"a page in XHTML", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><title>hunter2</title></html>`, ""}, {"SVG", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "image/svg+xml"}, {"MathML", `<math xmlns="http://www.w3.org/1998/Math/MathML"/>`, ""},
		{"XSLT", `<xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"/>`, ""}, {"SOAP", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>hunter2</s:Body></s:Envelope>`, ""}, {"OPML", `<opml version="2.0"><body><outline xmlUrl="http://x.test/"/></body></opml>`, ""}, {"a sitemap", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>`, ""},
		{"an S3 error", `<Error><Code>AccessDenied</Code><Message>hunter2</Message></Error>`, ""}, {"a plist", `<plist version="1.0"><dict><key>hunter2</key></dict></plist>`, ""}, {"RDF of something else", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>`, ""}, {"text", "db_password=hunter2", ""}, {"PHP", `<?php echo "hunter2"; ?>`, ""}, {"a JSON error", `{"error":"hunter2"}`, ""},
		{"JSONP", `alert({"version":"https://jsonfeed.org/version/1","items":[]})`, ""}, {"JSON and script", jsonOpen + jsonClose + "<script>alert(1)</script>", ""}, {"a JSON array", "[" + jsonOpen + jsonClose + "]", ""}, {"JSON of strings only", `"hunter2"`, ""}, {"a JSON version from elsewhere", `{"version":"https://evil.test/version/1","items":[]}`, ""}, {"JSON with two versions", `{"version":"https://jsonfeed.org/version/1","version":"x","items":[]}`, ""},
		{"JSON with items twice", jsonOpen + `"items":[{"id":"2"}],` + jsonClose, ""}, {"JSON in capitals", strings.ToUpper(jsonOpen + jsonClose), ""}, {"JSON without quotes", `{version:"https://jsonfeed.org/version/1",items:[]}`, ""}, {"JSON with a comma", jsonOpen + `"items":[],}`, ""}, {"JSON with comments", "/*hunter2*/" + jsonOpen + jsonClose, ""}, {"JSON with a prefix", ")]}'\n" + jsonOpen + jsonClose, ""},
		{"JSON: items of another type", jsonOpen + `"items":{"a":1}}`, ""}, {"JSON: null version", `{"version":null,"items":[]}`, ""}, {"JSON: numbers for all", jsonOpen + `"items":[{"id":7,"title":8,"url":9,"authors":10,"tags":11,"date_published":12,"attachments":13}]}`, ""}, {"JSON: null for all", jsonOpen + `"items":[{"id":null,"title":null,"url":null,"authors":[null],"tags":[null],"date_published":null,"attachments":[null]}],"authors":[null],"hubs":[null]}`, ""},
		{"a picture", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png"}, {"a picture of type RSS", "GIF89a" + feed, ""}, {"PDF", "%PDF-1.7 hunter2", "application/pdf"}, {"ELF", "\x7fELF\x02\x01\x01", ""}, {"a script", "#!/bin/sh\necho hunter2", ""}, {"an mbox", "From hunter2@x.test Mon Jan 1\n", ""}, {"iCalendar", "BEGIN:VCALENDAR\r\nSUMMARY:hunter2\r\n", ""}, {"CSV", "hunter2,1,2,3\n", ""}, {"YAML", "---\npassword: hunter2\n", ""}, {"a key", "-----BEGIN PRIVATE KEY-----\nhunter2\n", ""},
		{"a debugger's page", "<!-- Traceback: hunter2 --><html>", ""}, {"a conflict", strings.Replace(feed, "<item>", "<<<<<<< HEAD\n<item>", 1), ""}, {"Atom in RSS", rssOpen + atomOpen + atomClose + rssClose, ""}, {"RSS in Atom", atomOpen + feed + atomClose, ""}, {"an entry alone", `<entry xmlns="http://www.w3.org/2005/Atom"/>`, ""}, {"an unknown namespace", `<feed xmlns="urn:hunter2"><entry/></feed>`, ""}, {"RSS 99", strings.Replace(feed, "2.0", "99", 1), ""}, {"half a feed", feed[:len(feed)/2], ""}, {"a feed without an end", strings.TrimSuffix(feed, "</rss>"), ""},
		{"script", rssOpen + `<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>` + rssClose, "text/html"}, {"a stylesheet", `<?xml-stylesheet type="text/xsl" href="/evil.xsl"?>` + feed, "text/xml"}, {"a stylesheet in itself", `<?xml-stylesheet type="text/xsl" href="#s"?>` + rssOpen + `<xsl:stylesheet id="s" version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"/>` + rssClose, "application/xml"}, {"SVG with script in a feed", rssOpen + `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>` + rssClose, "image/svg+xml"}, {"events", rssOpen + `<x:img xmlns:x="http://www.w3.org/1999/xhtml" src="x" onerror="alert(1)"/>` + rssClose, "application/xhtml+xml"},
	} {
		list = append(list, document{doc.name, doc.body, doc.media})
	}
	return list
}

// TestHostileDocuments has origins answer with documents that are not feeds, with bad feeds,
// and with good ones that would cost much. Each is a feed to its readers, or a failure.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	bombsAtOnce := 8
	if *campaign {
		bombsAtOnce = 16
	}
	var all sync.WaitGroup // most of the time they wait
	defer all.Wait()
	for _, front := range []struct {
		name      string
		documents []document
		atOnce    int
	}{{"bombs", bombs(), bombsAtOnce}, {"lies", lies(), 64}} {
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
