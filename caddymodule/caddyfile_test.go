// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"
	_ "github.com/caddyserver/caddy/v2/modules/logging" // files

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

var update = flag.Bool("update", false, "write the JSON of the Caddyfile tests")

// separator stands between a Caddyfile and its JSON in testdata/caddyfile.
const separator = "----------\n"

// Each file in testdata/caddyfile is a Caddyfile, a line of dashes, and the JSON
// that it adapts to. The names of the files are the index.
func TestCaddyfileToJSON(t *testing.T) {
	files, err := filepath.Glob("testdata/caddyfile/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			caddyfile, want, _ := strings.Cut(string(text), separator)
			config, err := stage.Adapt(t, caddyfile)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, config, "", "\t"); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			if *update {
				if err := os.WriteFile(file, []byte(caddyfile+separator+got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != want {
				t.Errorf("if this is meant, run the test with -update, which writes %s again: got\n%s\nwant\n%s", file, got.String(), want)
			}
		})
	}
}

func TestCaddyfileErrors(t *testing.T) {
	t.Setenv("POLLARD_TEST_SECRET", "s3cret-of-alice-0001")
	app := func(lines string) string { return "{\n\tpollard {\n" + lines + "\n\t}\n}\n" }
	shield := func(lines string) string {
		return "http://a.test {\n\tfeed_shield {\n" + lines + "\norigin {\nrespond x\n}\n\t}\n}\n"
	}
	gateway := func(lines string) string { return "http://a.test {\n\tfeed_gateway {\n" + lines + "\n\t}\n}\n" }
	tests := []struct {
		name      string
		caddyfile string
		want      string
	}{
		{"app: unknown line", app("polite"), `unrecognized subdirective "polite": expected one of concurrency, contact, default_interval, disk, host, idle_after, jitter, max_body, max_interval, memory, min_interval, polls, prefetch, private_upstreams, proxy, spacing, store, timeout, unvalidated_interval, user_agent, websub, at Caddyfile:3`},
		{"app: a line of a gateway", app("token alice s3cret-of-alice-0001"), "token does not belong here: write it in a feed_gateway, at Caddyfile:3"},
		{"gateway: a line of the app", gateway("contact https://example.com/"), "contact does not belong here: write it in the global option pollard, at Caddyfile:3"},
		{"shield: a line of the origin", "http://a.test {\n\tfeed_shield {\nreverse_proxy localhost:1\n\t}\n}\n", "reverse_proxy does not belong here: write it into the block of origin, at Caddyfile:3"},
		{"gateway: two tokens with one secret", gateway("token alice s3cret-of-alice-0001\ntoken bob s3cret-of-alice-0001"), "token bob: it has the secret of alice: give each person another one, at Caddyfile:4"},
		{"gateway: two tokens with one secret in the environment", gateway("token alice s3cret-of-alice-0001\ntoken bob {env.POLLARD_TEST_SECRET}"), "token bob: it has the secret of alice: give each person another one, at Caddyfile:4"},
		{"app: no URL of a database", app("store postgres localhost"), "at Caddyfile:3"},
		{"websub", app("websub feeds.example.com"), `websub: "feeds.example.com" is not the URL of a gateway: expected the URL at which hubs reach a gateway, such as https://feeds.example.com, at Caddyfile:3`},
		{"websub: a query", app("websub https://feeds.example.com/?a"), `websub: "https://feeds.example.com/?a" is not the URL of a gateway`},
		{"websub: a token", app("websub https://feeds.example.com/~secret"), `websub: the URL has a token, which hubs must not learn: write it without, at Caddyfile:3`},
		{"app: arguments", "{\n\tpollard now\n}\n", `pollard: unexpected "now": it takes no argument, at Caddyfile:2`},
		{"app: twice", "{\n\tpollard {\n\t}\n\tpollard {\n\t}\n}\n", "pollard is configured already: write one block with all lines, at Caddyfile:4"},
		{"a line twice", app("min_interval 1h\nmin_interval 2h"), "min_interval is given twice in one block, at Caddyfile:4"},
		{"duration: words", app("min_interval often"), `min_interval: "often" is not a duration: expected a number with a unit, such as 30s, 15m, 2h or 1d, at Caddyfile:3`},
		{"duration: no unit", app("timeout 30"), `timeout: "30" is not a duration: expected a number with a unit, such as 30s, 15m, 2h or 1d, at Caddyfile:3`},
		{"duration: zero", app("idle_after 0"), `idle_after: "0" is not a positive duration: expected one such as 30s, 15m, 2h or 1d, at Caddyfile:3`},
		{"duration: negative", app("max_interval -1h"), `max_interval: "-1h" is not a positive duration`},
		{"duration: missing", app("min_interval"), "min_interval: expected a duration such as 30s, 15m, 2h or 1d, at Caddyfile:3"},
		{"duration: two", app("min_interval 1 h"), `min_interval: unexpected "h": expected a duration such as 30s, 15m, 2h or 1d and nothing more, at Caddyfile:3`},
		{"duration: centuries", app("min_interval 36500d\nmax_interval 36500d"), "pollard: min_interval is longer than a year"},
		{"size", app("memory lots"), `memory: "lots" is not a size: expected one such as 512KiB, 64MiB or 1GB, at Caddyfile:3`},
		{"size: no unit", app("memory 64"), `memory: "64" has no unit: expected one such as 64MiB, at Caddyfile:3`},
		{"size: zero", app("max_body 0"), `max_body: "0" is not a size`},
		{"percentage: no sign", app("jitter 10"), `jitter: "10" is not a percentage: expected 0 or one from 0% to 100%, such as 10%, at Caddyfile:3`},
		{"percentage: too much", app("jitter 200%"), `jitter: "200%" is not a percentage`},
		{"percentage: not a number", app("jitter NaN%"), `jitter: "NaN%" is not a percentage`},
		{"intervals crossed", app("min_interval 2h\nmax_interval 1h"), "pollard: min_interval 2h is greater than max_interval 1h, at Caddyfile:5"},
		{"cap below the inherited floor", app("max_interval 30m"), "pollard: max_interval 30m is less than the min_interval 1h that holds here: write a min_interval too, at Caddyfile:4"},
		{"flag off", app("prefetch off"), "prefetch: leave the line out to switch it off, at Caddyfile:3"},
		{"flag with an argument", app("prefetch on"), `prefetch: unexpected "on": it takes no argument, at Caddyfile:3`},
		{"app: readers", app("readers off"), "readers was removed: only shields have statistics of readers: remove the line, at Caddyfile:3"},
		{"readers off", gateway("readers off"), "readers: leave the line out to switch it off, at Caddyfile:3"},
		{"readers with an argument", gateway("readers on"), `readers: unexpected "on": it takes no argument, at Caddyfile:3`},
		{"store: unknown", app("store redis"), `store: unknown engine "redis": expected sqlite [<directory>], or postgres <url>, at Caddyfile:3`},
		{"store: sqlite twice", app("store sqlite /a /b"), `sqlite: unexpected "/b": expected a directory and nothing more, at Caddyfile:3`},
		{"store: postgres", app("store postgres"), "postgres: expected the URL of a database such as postgres://user:password@host/database?sslmode=verify-full, at Caddyfile:3"},
		{"store: bolt", app("store bolt"), "store: bolt was removed: write `store sqlite`."},
		{"store: missing", app("store"), "store: expected sqlite [<directory>], or postgres <url>, at Caddyfile:3"},
		{"contact", app("contact me"), `contact: "me" is not a contact: expected the URL of a page such as https://example.com/about, or an e-mail address, at Caddyfile:3`},
		{"cidr", app("private_upstreams 10.0.0.0/99"), `private_upstreams: "10.0.0.0/99" is not an address range: expected one such as 192.168.0.0/16 or 2001:db8::/32, or private_ranges for all private ones, at Caddyfile:3`},
		{"host: pattern", app("host https://example.com {\n}"), `host: "https://example.com" is no host pattern: there is a slash in it: expected a host such as example.com, *.example.com for all hosts below it, or *, at Caddyfile:3`},
		{"host: twice", app("host example.com {\nspacing 1s\n}\nhost Example.COM {\n}"), "host Example.COM is given twice, at Caddyfile:6"},
		{"host: no lines", app("host example.com"), "host example.com has no lines, so it changes nothing: write some into its block, such as host example.com { spacing 1m }, at Caddyfile:3"},
		{"host: unknown line", app("host example.com {\nmemory 1MiB\n}"), `unrecognized subdirective "memory": expected one of concurrency, default_interval, jitter, max_body, max_interval, min_interval, proxy, spacing, timeout, unvalidated_interval, at Caddyfile:4`},
		{"host: concurrency", app("host example.com {\nconcurrency 0\n}"), `concurrency: "0" is not a number of 1 or more, at Caddyfile:4`},
		{"host: spacing", app("host example.com {\nspacing -2s\n}"), `spacing: "-2s" is not a positive duration`},
		{"proxy: scheme", app("proxy socks4://u:secret@127.0.0.1"), `proxy: a proxy cannot have the scheme "socks4": expected http, https, socks5 or socks5h and a host, as in socks5h://127.0.0.1:9050, or off, at Caddyfile:3`},
		{"host: proxy", app("host *.onion {\nproxy 127.0.0.1:9050\n}"), "proxy: it is not the URL of a proxy: expected http, https, socks5 or socks5h and a host, as in socks5h://127.0.0.1:9050, or off, at Caddyfile:4"},
		{"host: intervals crossed", app("host example.com {\nmin_interval 2h\nmax_interval 1h\n}"), "host example.com: min_interval 2h is greater than max_interval 1h, at Caddyfile:6"},

		{"gateway: unknown line", gateway("feeds /a https://example.com/"), `unrecognized subdirective "feeds": did you mean feed? Expected one of allow, clients, cors, deny, feed, opml, pages, token, at Caddyfile:3`},
		{"gateway: rewrite off", gateway("rewrite off"), "rewrite was removed: a gateway always makes links absolute, and a shield never changes a byte. Delete the line, at Caddyfile:3"},
		{"gateway: arguments", "http://a.test {\n\tfeed_gateway https://example.com/\n}\n", `feed_gateway: unexpected "https://example.com/": it takes no argument, at Caddyfile:2`},
		{"feed: no URL", gateway("feed /a"), "feed: expected a path and the URL of the feed, at Caddyfile:3"},
		{"feed: path", gateway("feed a.xml https://example.com/"), "feed a.xml: the path must begin with a slash: expected feed <path> <url>, at Caddyfile:3"},
		{"feed: a placeholder in the path", gateway("feed /{http.request.uri} https://example.com/"), "without query, fragment, star or placeholder, at Caddyfile:3"},
		{"feed: the path of a page", gateway("feed /-/feeds https://example.com/"), "paths below /-/ are pages of the gateway: choose another one, at Caddyfile:3"},
		{"feed: star in the path", gateway("feed /a/* https://example.com/"), "feed /a/*: expected a path without query, fragment, star or placeholder, at Caddyfile:3"},
		{"feed: path twice", gateway("feed /a https://example.com/\nfeed /%61 https://example.org/"), "feed /%61 is given twice, at Caddyfile:4"},
		{"feed: URL", gateway("feed /a ftp://example.com/feed"), "feed /a: not a feed URL: it must begin with http:// or https://, at Caddyfile:3"},
		{"feed: host of the URL", gateway("feed /a https:///feed"), "feed /a: not a feed URL: it names no host, at Caddyfile:3"},
		{"feed: leftovers", gateway("feed /a https://example.com/ 1h"), `feed: unexpected "1h": expected a path and the URL of the feed and nothing more, at Caddyfile:3`},
		{"feed: unknown line", gateway("feed /a https://example.com/ {\nspacing 1s\n}"), `unrecognized subdirective "spacing": expected one of default_interval, jitter,`},
		{"feed: cap below the inherited floor", gateway("feed /a https://example.com/ {\nmax_interval 10m\n}"), "feed /a: max_interval 10m is less than the min_interval 1h that holds here: write a min_interval too, at Caddyfile:5"},
		{"feed: cap below the floor of its host", "{\npollard {\nmin_interval 5m\nhost example.com {\nmin_interval 20m\n}\n}\n}\n" + gateway("feed /a https://example.net/ {\nmax_interval 10m\n}\nfeed /b https://example.com/ {\nmax_interval 10m\n}"),
			"feed /b: max_interval 10m is less than the min_interval 20m that holds here: write a min_interval too, at Caddyfile:16"},
		{"feed: intervals crossed", gateway("feed /a https://example.com/ {\nmin_interval 2d\nmax_interval 1d\n}"), "feed /a: min_interval 48h is greater than max_interval 24h, at Caddyfile:6"},
		{"allow: pattern", gateway("allow *example.com"), `allow: "*example.com" is no host pattern: a star stands only at the beginning, for whole labels`},
		{"deny: pattern", gateway("deny example.com:80"), `deny: "example.com:80" is no host pattern: a port cannot be part of it`},
		{"allow: missing", gateway("allow"), "allow: expected hosts such as example.com or *.example.com, at Caddyfile:3"},
		{"clients", gateway("clients home"), `clients: "home" is not an address range: expected one such as 192.168.0.0/16 or 2001:db8::/32, or one of private, any, at Caddyfile:3`},
		{"clients: any and more", gateway("clients any private"), `clients: "any" includes all others: write it alone`},
		{"token: no secret", gateway("token alice"), "token: expected a name and a secret, such as {env.POLLARD_TOKEN}, at Caddyfile:3"},
		{"token: short", gateway("token alice a"), "token alice: the secret has 1 characters, and can be guessed: expected at least 8"},
		{"token: a slash", gateway("token alice 0123456789/abcdef"), "token alice: the secret may hold letters, digits and signs"},
		{"token: twice", gateway("token alice 0123456789abcdef\ntoken alice 0123456789abcdef"), "token alice is given twice, at Caddyfile:4"},
		{"gateway: policy line", gateway("min_interval 1h"), "min_interval does not belong here: write it in the global option pollard, or in the block of a feed line, at Caddyfile:3"},
		{"gateway: a line of the site", gateway("log"), "log does not belong here: write it in the block of the site, outside of feed_gateway, at Caddyfile:3"},
		{"gateway: prefetch", gateway("prefetch"), "prefetch does not belong here: write it in the global option pollard, at Caddyfile:3"},
		{"opml: a URL", gateway("opml https://example.com/s.opml"), `opml: "https://example.com/s.opml" is not a file: download the list, and name that file, at Caddyfile:3`},
		{"opml: two files", gateway("opml a.opml b.opml"), `opml: unexpected "b.opml": expected an OPML file and nothing more, at Caddyfile:3`},
		{"pages", gateway("pages on"), `pages: "on" is not known: expected off, at Caddyfile:3`},

		{"gateway: a feed beside its matcher", "http://a.test {\n\tfeed_gateway /feeds/* {\n\t\tfeed /feeds/a https://example.com/\n\t\tfeed /b https://example.com/\n\t}\n}\n", "feed_gateway: feed /b: the gateway gets no request for it, because its matcher does not match it, at Caddyfile:"},
		{"gateway: by URL beside its matcher", "http://a.test {\n\tfeed_gateway /feeds/* {\n\t\tclients any\n\t}\n}\n", "feed_gateway: feeds by URL are at /https://host/path, which the matcher /feeds/* does not match: put the gateway, without a matcher, into handle_path /feeds/*, at Caddyfile:"},
		{"gateway: pages that are off", "http://a.test {\n\tfeed_gateway /-/* {\n\t\tpages off\n\t}\n}\n", "which the matcher /-/* does not match"},
		{"gateway: by URL beside a named matcher", "http://a.test {\n\t@mine {\n\t\tpath /a/* /b/c/*\n\t\theader X-Mine 1\n\t}\n\tfeed_gateway @mine\n}\n", "which the matcher /a/* does not match"},
		{"shield: status beside its matcher", "http://a.test {\n\tfeed_shield /feed.xml {\n\t\torigin {\n\t\t\treverse_proxy localhost:1\n\t\t}\n\t\tstatus /st\n\t}\n}\n", "status: the shield gets no request for /st/feeds, because its matcher does not match it: write @feeds path /feed.xml /st*, and feed_shield @feeds, at Caddyfile:"},
		{"shield: unknown line", shield("cache 1h"), `unrecognized subdirective "cache": expected one of default_interval, defend, jitter, max_body, max_interval, min_interval, origin, ping, query, status, timeout, unvalidated_interval, vary, at Caddyfile:3`},
		{"shield: a pattern", "http://a.test {\n\tfeed_shield *.xml\n}\n", `feed_shield: unexpected "*.xml": a matcher is one path that begins with a slash, or a name: for other paths write @feeds path *.xml /rss, and feed_shield @feeds, at Caddyfile:2`},
		{"shield: two matchers", "http://a.test {\n\tfeed_shield /a/* /b/*\n}\n", `feed_shield: unexpected "/b/*": a matcher is one path that begins with a slash`},
		{"shield: intervals crossed", shield("min_interval 2h\nmax_interval 1h"), "min_interval 2h is greater than max_interval 1h, at Caddyfile:8"},
		{"shield: cap below its own floor", shield("max_interval 30s"), "max_interval 30s is less than the min_interval 1m that holds here: write a min_interval too, at Caddyfile:7"},
		{"shield: host", shield("host a.test"), "host was removed: polls are for the host that readers use. Delete the line; if the site must answer for one host alone, write that as its address, at Caddyfile:3"},
		{"shield: name", shield("name blog"), "name was removed: a shield is known by its origin block. Delete the line, at Caddyfile:3"},
		{"shield: a named route in its origin", "&(r) {\n\trespond x\n}\nhttp://a.test {\n\tfeed_shield {\n\t\torigin {\n\t\t\tinvoke r\n\t\t}\n\t}\n}\n", "invoke is not possible here, because changes of a named route would go unnoticed: use a snippet"},
		{"shield: ping beside its matcher", "http://a.test {\n\tfeed_shield /feed/* {\n\t\torigin {\n\t\t\treverse_proxy localhost:1\n\t\t}\n\t\tping /ping\n\t}\n}\n", "ping: the shield gets no request for /ping, because its matcher does not match it: write @feeds path /feed/* /ping, and feed_shield @feeds, at Caddyfile:"},
		{"shield: ping is no path", shield("ping on"), "ping: expected a path such as /feed/ping, without query, star and escapes, at Caddyfile:3"},
		{"shield: status with a star", shield("status /a*"), "status: expected a path such as /feed/status, without query, star and escapes, at Caddyfile:3"},
		{"shield: ping below status", shield("status /feed\nping /feed/feeds"), "ping: /feed/feeds is below status, which has the pages: expected another path, at Caddyfile:"},
		{"shield: vary", shield("vary User-Agent"), `vary: expected ignore and names of header fields, such as ignore User-Agent, at Caddyfile:3`},
		{"shield: vary keep", shield("vary keep Accept"), `vary: "keep" is not known: expected ignore and names of header fields, at Caddyfile:3`},
		{"shield: vary ignore everything", shield("vary ignore *"), "vary ignore: * cannot be ignored: such a response is for one request, at Caddyfile:3"},
		{"shield: vary ignore credentials", shield("vary ignore Accept authorization"), "vary ignore: Authorization cannot be ignored: requests with it are never shared, at Caddyfile:3"},
		{"shield: vary ignore no field", shield("vary ignore a:b"), "vary ignore: expected names of header fields, such as User-Agent, not a:b, at Caddyfile:3"},
		{"shield: rfc9111", shield("rfc9111"), "rfc9111 was removed: a shield stores feeds only. Delete the line; for other content, put an HTTP cache such as Varnish in front of the site, at Caddyfile:3"},
		{"shield: no origin", "http://a.test {\n\tfeed_shield\n\treverse_proxy localhost:8081\n}\n", "put the handlers of the site into a block of it, such as origin { reverse_proxy localhost:8080 }, on three lines, at Caddyfile:2"},
		{"shield: an empty origin", "http://a.test {\n\tfeed_shield {\n\t\torigin\n\t}\n}\n", "feed_shield needs an origin"},
		{"shield: an origin with an argument", "http://a.test {\n\tfeed_shield {\n\t\torigin localhost:8081\n\t}\n}\n", `origin: unexpected "localhost:8081": expected a block of directives, such as reverse_proxy localhost:8080, at Caddyfile:3`},
		{"shield: unknown directive", "http://a.test {\n\tfeed_shield {\n\t\torigin {\n\t\t\tproxy x\n\t\t}\n\t}\n}\n", "unrecognized directive: proxy"},
		{"shield: query", shield("query drop"), `query: "drop" is not known: expected ignore, or keep and names of parameters, at Caddyfile:3`},
		{"shield: query keep nothing", shield("query keep"), "query keep: expected names of parameters, at Caddyfile:3"},
		{"defend: unknown line", shield("defend {\nban all\n}"), `unrecognized subdirective "ban": expected one of exempt, fleet, max_rate, require_compression, require_user_agent, skip_hours, unconditional, at Caddyfile:4`},
		{"defend: argument", shield("defend all"), `defend: unexpected "all": write its rules into a block, such as defend { unconditional 4h }, which it means without one, at Caddyfile:3`},
		{"max_rate: one argument", shield("defend {\nmax_rate 5\n}"), "max_rate: expected a number of requests and a duration, such as 12 1h, at Caddyfile:4"},
		{"max_rate: zero", shield("defend {\nmax_rate 0 1h\n}"), `max_rate: "0" is not a number of 1 or more, at Caddyfile:4`},
		{"max_rate: swapped", shield("defend {\nmax_rate 1h 5\n}"), `max_rate: "1h" is not a number of 1 or more, at Caddyfile:4`},
		{"max_rate: no unit", shield("defend {\nmax_rate 5 60\n}"), `max_rate: "60" is not a duration: expected a number with a unit`},
		{"unconditional: missing", shield("defend {\nunconditional\n}"), "unconditional: expected a duration such as 30s, 15m, 2h or 1d, at Caddyfile:4"},
		{"skip_hours: argument", shield("defend {\nskip_hours 1 2\n}"), `skip_hours: unexpected "1": it takes no argument, at Caddyfile:4`},
		{"fleet: missing", shield("defend {\nfleet\n}"), "fleet: expected the beginning of a User-Agent, and address ranges, at Caddyfile:4"},
		{"fleet: short", shield("defend {\nfleet cur\n}"), `defend: fleet "cur": expected at least 4 characters of a User-Agent, and no less than its name, at Caddyfile:4`},
		{"fleet: twice", shield("defend {\nfleet Amazon Music\nfleet Amazon Music 10.0.0.0/8\n}"), "defend: fleet Amazon Music: named twice: write all its address ranges on one line, at Caddyfile:5"},
		{"fleet: ranges first", shield("defend {\nfleet 10.0.0.0/8 iTMS\n}"), `fleet: expected the beginning of a User-Agent, and address ranges after it, not "10.0.0.0/8 iTMS", at Caddyfile:4`},
		{"fleet: mistyped range", shield("defend {\nfleet iTMS 10.0.0.0/99\n}"), `fleet: "10.0.0.0/99" is not an address range`},
		{"exempt: missing", shield("defend {\nskip_hours\nexempt\n}"), "exempt: expected a matcher, address ranges, or the beginning of a User-Agent, and rules, at Caddyfile:5"},
		{"exempt: empty", shield("defend {\nskip_hours\nexempt \"\"\n}"), "exempt: expected a matcher, an address range, or the beginning of a User-Agent, at Caddyfile:5"},
		{"exempt: rules alone", shield("defend {\nexempt unconditional\n}"), "exempt: expected a matcher, an address range, or the beginning of a User-Agent before unconditional, at Caddyfile:4"},
		{"exempt: unknown rule", shield("defend {\nexempt /feed all\n}"), `exempt: "all" is not a rule: expected one of max_rate, require_compression, require_user_agent, skip_hours, unconditional, at Caddyfile:4`},
		{"exempt: everybody", shield("defend {\nskip_hours\nexempt *\n}"), "exempt *: all readers would be exempt: leave the block out, at Caddyfile:5"},
		{"exempt: unknown matcher", shield("defend {\nskip_hours\nexempt @friends\n}"), "unrecognized matcher name: @friends, at Caddyfile:5"},
		{"exempt: mistyped range", shield("defend {\nskip_hours\nexempt 10.0.0.0/99\n}"), `defend: exempt: "10.0.0.0/99" is not an address range: expected one such as 192.168.0.0/16 or 2001:db8::/32, at Caddyfile:5`},
		{"exempt: ranges and a name", shield("defend {\nskip_hours\nexempt 10.0.0.0/8 Feedly\n}"), `defend: exempt: "10.0.0.0/8 Feedly" is not an address range`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := stage.Adapt(t, tt.caddyfile)
			if err == nil {
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got\n%s\nwant\n%s", err, tt.want)
			}
			if !strings.Contains(err.Error(), "Caddyfile:") {
				t.Errorf("without file and line: %s", err)
			}
		})
	}
}

// Directives are accepted wherever they are in a site: what requests reach is decided by Caddy.
func TestDirectivesAreTaken(t *testing.T) {
	const shield = "feed_shield /feed* {\norigin {\nreverse_proxy localhost:1\n}\n}\n"
	for _, block := range []string{
		"feed_gateway\nrespond /health ok\nfile_server\n",
		"route {\nfeed_gateway\nrespond hello\n}\n",
		"route {\n@outside not remote_ip 127.0.0.1\nrespond @outside 403\nrespond /health ok\nfeed_gateway\n}\n",
		"handle /x* {\nrespond /health ok\n" + shield + "reverse_proxy localhost:2\n}\nhandle {\nrespond hello\n}\n",
		"handle_path /x/* {\n" + shield + "feed_gateway\n}\nhandle {\nrespond hello\n}\n",
		"route {\nhandle /x* {\nrespond hello\n}\nhandle {\n" + shield + "}\n}\n",
		"feed_gateway {\nfeed /a https://localhost:8081/a\nfeed /b http://a.test/b/c\n}\n",
		"feed_gateway /https://example.com/*\n", "feed_gateway /http*\n", "feed_gateway /~me/*\n", "feed_gateway /\n", "feed_gateway /-/*\n",
		"feed_gateway /feeds/* {\nfeed /feeds/a https://example.com/\n}\n",
		"@mine path {env.POLLARD_TEST_PATH}/*\nfeed_gateway @mine\n", "@some expression path('/a/*')\nfeed_gateway @some {\nfeed /b https://example.com/\n}\n",
		"@feeds path /feed.xml /st*\nfeed_shield @feeds {\norigin {\nreverse_proxy localhost:1\n}\nstatus /st\n}\n",
		"feed_shield {\norigin {\nreverse_proxy localhost:1\n}\nstatus /st/\n}\n",
		"route {\nfile_server {\npass_thru\n}\nfeed_gateway\n}\n", "reverse_proxy localhost:1 {\n@notfound status 404\nhandle_response @notfound {\n" + shield + "}\n}\n",
	} {
		if _, err := stage.Adapt(t, "http://a.test, http://:8080 {\n"+block+"}\n"); err != nil {
			t.Errorf("%s\n%v", block, err)
		}
	}
}

// Lines that are accepted and do not do what they seem to cause a warning, with file, line and remedy.
// Lines that are right do not.
func TestCaddyfileWarnings(t *testing.T) {
	dir := t.TempDir()
	log, file := filepath.Join(dir, "log"), filepath.Join(dir, "Caddyfile")
	writer, err := json.Marshal(map[string]any{"output": "file", "filename": log})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Run(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: new(false)}}, Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{WriterRaw: writer, Level: "WARN"}}}}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	}()
	site := func(lines string) string { return "http://a.test:8080 {\n" + lines + "\n}\n" }
	gateway := func(lines string) string { return site("feed_gateway {\n" + lines + "\n}") }
	const shield = "feed_shield /feed* {\norigin {\nreverse_proxy localhost:1\n}\n}\n"
	t.Setenv("POLLARD_TEST_CHANGEME", "changeme")
	for _, tt := range []struct {
		name, caddyfile, want string // empty: no warning
	}{
		{"hubs that cannot reach the gateway", "{\npollard {\nwebsub https://feeds.home.arpa\n}\n}\n", "websub: hubs on the internet cannot reach feeds.home.arpa, which is in a private network: write a URL that they reach, or delete the line, at FILE:3"},
		{"hubs that can", "{\npollard {\nwebsub https://feeds.example.com\n}\n}\n", ""},
		{"a handle for all before a gateway", site("handle {\nrespond hi\n}\nfeed_gateway"), "feed_gateway gets no request: the handle at line 2 takes them all: write feed_gateway into it, or into a handle of its own, at FILE:5"},
		{"a handle for all before a shield", site(shield + "handle /api/* {\nrespond api\n}\nhandle {\nreverse_proxy localhost:2\n}"), "feed_shield gets no request: the handle at line 10 takes them all"},
		{"within another handle", site("handle_path /x/* {\nfeed_gateway\nhandle {\nrespond hi\n}\n}"), "feed_gateway gets no request: the handle at line 4"},
		{"within a route", site("route {\nrespond hi\nfeed_gateway\n}"), "feed_gateway gets no request: the respond at line 3"},
		{"imported", "(gw) {\nfeed_gateway\n}\n" + site("import gw\nhandle {\nrespond hi\n}"), "feed_gateway gets no request: the handle at line 6"},
		{"feeds by URL in a handle", site("handle /feeds/* {\nfeed_gateway\n}"), "feed_gateway in handle /feeds/*: feeds by URL are at /https://host/path, which the matcher /feeds/* does not match: put the gateway, without a matcher, into handle_path /feeds/*, at FILE:3"},
		{"two gateways", site("feed_gateway {\nfeed /a.xml https://b.test/a\n}\nfeed_gateway {\nfeed /b.xml https://b.test/b\n}"), "feed_gateway: the one at line 2 answers feeds by URL and has the pages, so most lines of this one have no effect: write all lines into one, at FILE:5"},
		{"a feed in place of the home page", gateway("feed / https://b.test/feed"), "feed /: it takes the place of the gateway's home page, which is at /-/ then"},
		{"a feed of this gateway", gateway("feed /a.xml http://A.test:8080/a.xml"), "feed /a.xml: its URL is an address of this gateway, which would poll itself"},
		{"a feed of a gateway at any host", ":8080 {\nfeed_gateway {\nfeed /a.xml http://localhost:8080/https://b.test/feed\n}\n}\n", "feed /a.xml: its URL is an address of this gateway"},
		{"a private feed's site for everyone", "http://127.0.0.1:8180 {\nrespond x\n}\n" + gateway("feed /a.xml http://127.0.0.1:8180/a.xml"), "feed /a.xml: the site http://127.0.0.1:8180 is open to others: it answers at every address of this machine to all who send its name as Host: write bind 127.0.0.1 into it, at FILE:5"},
		{"for this machine", "http://127.0.0.1:8180 {\nbind 127.0.0.1\nrespond x\n}\n" + gateway("feed /a.xml http://127.0.0.1:8180/a.xml"), ""},
		{"for this machine by default", "{\ndefault_bind 127.0.0.1\n}\nhttp://127.0.0.1:8180 {\nrespond x\n}\n" + gateway("feed /a.xml http://127.0.0.1:8180/a.xml"), ""},
		{"a site that is meant for everyone", ":8180 {\nrespond x\n}\n" + gateway("feed /a.xml http://127.0.0.1:8180/a.xml"), ""},
		{"a range without its length", gateway("clients 192.168.0.0"), "clients: 192.168.0.0 is one address, and looks like the first of a range: write 192.168.0.0/24, or how long the range is, at FILE:3"},
		{"an empty User-Agent", "{\npollard {\nuser_agent \"\"\n}\n}\n", "user_agent: it is empty, so polls have Pollard's own: delete the line, or write a text, at FILE:3"},
		{"a token without a name", gateway(`token "" s3cret-of-alice-0001`), "token: its name is empty, so it admits nobody: write token <name> <secret>, at FILE:3"},
		{"a token as a shell has it", gateway("token alice $ALICE_TOKEN"), "token alice: its secret looks like a placeholder, which others can guess: write what `openssl rand -hex 16` prints, or {env.NAME} for a secret of the environment, at FILE:3"},
		{"a token in brackets", gateway("token alice <the-secret>"), "token alice: its secret looks like a placeholder"},
		{"a token in capitals", gateway("token alice ALICE_TOKEN"), "token alice: its secret looks like a placeholder"},
		{"a token to change", gateway("token alice ChangeMe"), "token alice: its secret looks like a placeholder"},
		{"a token of the environment to change", gateway("token alice {env.POLLARD_TEST_CHANGEME}"), "token alice: its secret looks like a placeholder"},
		{"the contact of an example", "{\npollard {\ncontact https://Example.com/about\n}\n}\n", "contact: publishers cannot reach you at https://Example.com/about: write the URL of a page of yours, or your e-mail address, at FILE:3"},
		{"an e-mail address of an example", "{\npollard {\ncontact me@mail.example.org\n}\n}\n", "contact: publishers cannot reach you at me@mail.example.org"},
		{"a block that is not closed", strings.TrimSuffix(gateway("cors"), "}\n"), "a } is missing at the end of FILE: write one for each {, at FILE:2"},
		{"a port without its colon", "8080 {\nfeed_gateway\n}\n", "the site address 8080 is the name of a host: write :8080 for that port, at FILE:2"},
		{"a misspelt rule", site("feed_shield {\norigin {\nrespond x\n}\ndefend {\nunconditional 4h\nexempt iTMS unconditonal\n}\n}"), `exempt: \"unconditonal\" counts as a part of the User-Agent, as it is not a rule: did you mean unconditional?, at FILE:8`},
		{"an address beside a User-Agent", site("feed_shield {\norigin {\nrespond x\n}\ndefend {\nunconditional 4h\nexempt 10.0.0.1 iTMS\n}\n}"), "write addresses and User-Agents on lines of their own, at FILE:8"},
		{"a port that there is not", "{\npollard {\nproxy socks5://[::1]:99999\n}\n}\n", "proxy: 99999 is no port, so no poll gets through: expected 1 to 65535, at FILE:3"},
		{"the port 0", "{\npollard {\nproxy http://proxy.test:0\n}\n}\n", "proxy: 0 is no port, so no poll gets through: expected 1 to 65535, at FILE:3"},
		{"a field that polls do not have", site("request_header X-Tenant acme\n" + shield), "feed_shield: polls do not have what request_header at line 2 sets: write it into the origin block, at FILE:3"},
		{"a list that is missing", gateway("opml none.opml"), "opml: there is no file DIR/none.opml here: export a list from a feed reader, and put it there, at FILE:3"},

		{"an empty placeholder", gateway("token alice {env.POLLARD_TEST_EMPTY}"), "{env.POLLARD_TEST_EMPTY} is empty here: set it in the environment of the service, and restart the service, at FILE:3"},
		{"a line of the version before", gateway("readers"), "readers does nothing any more: "},

		{"a contact", "{\npollard {\ncontact https://myexample.com/example.com\n}\n}\n", ""},
		{"tokens", gateway("token alice 0f21aac6c5fa40a9\ntoken bob GOOD_SECRET_2\ntoken carol correct_horse_battery"), ""},
		{"braces in texts", site("header X \"{\"\nfeed_gateway"), ""},
		{"a gateway before other handlers", site("feed_gateway\nrespond /health ok\nfile_server"), ""},
		{"a route that is not sorted", site("route {\nfeed_gateway\nrespond hello\n}"), ""},
		{"a handle beside one for all", site("handle /x* {\n" + shield + "reverse_proxy localhost:2\n}\nhandle {\nrespond hello\n}"), ""},
		{"a gateway in a handle for all", site("handle_path /x/* {\nfeed_gateway\n}\nhandle {\nfeed_gateway\n}"), ""},
		{"chosen feeds in a handle", site("handle /feeds/* {\nfeed_gateway {\nfeed /feeds/a.xml https://b.test/a\n}\n}"), ""},
		{"an order of its own", "{\norder feed_gateway first\n}\n" + site("feed_gateway\nrespond hi"), ""},
		{"feeds of other sites", gateway("feed /a.xml http://a.test:8081/a.xml\nfeed /b.xml http://c.test:8080/a.xml\nfeed /c.xml http://a.test:8080/blog.xml"), ""},
		{"clients", gateway("clients 192.168.1.5 10.0.0.0/8 ::1 ::ffff:10.0.0.0/104"), ""},
		{"rules", site("feed_shield {\norigin {\nrespond x\n}\ndefend {\nunconditional 4h\nexempt Amazon Music Podcast unconditional\nexempt 10.0.0.1\n}\n}"), ""},
	} {
		if err := os.WriteFile(file, []byte(tt.caddyfile), 0o644); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(log)
		if _, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(tt.caddyfile), map[string]any{"filename": file}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		after, _ := os.ReadFile(log)
		got, want := string(after[len(before):]), strings.NewReplacer("FILE", file, "DIR", dir).Replace(tt.want)
		if lines := strings.Count(got, "\n"); want == "" && got != "" || want != "" && (lines != 1 || !strings.Contains(got, want)) {
			t.Errorf("%s: got %s, want %q", tt.name, got, want)
		}
	}
}
