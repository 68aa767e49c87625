// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// blocksOf returns the blocks of a page in docs, by heading and language: "nginx: nginx".
func blocksOf(t *testing.T, name string) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	blocks, heading, language := make(map[string]string), "", ""
	for line := range strings.Lines(string(page)) {
		switch name := heading + ": " + language; {
		case strings.HasPrefix(line, "```") && language == "":
			language = strings.TrimSpace(line[len("```"):])
			if name = heading + ": " + language; blocks[name] != "" {
				t.Fatalf("two blocks %q: this test knows one of a language under a heading", name)
			}
		case strings.HasPrefix(line, "```"):
			language = ""
		case language != "":
			blocks[name] += line
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(line[len("## "):])
		}
	}
	return blocks
}

// notRun are blocks of docs/proxies.md that no test runs, as the page says.
var notRun = []string{"Traefik: yaml", "A Cloudflare tunnel: yaml"}

// page runs blocks of a page in docs.
type page struct {
	t      *testing.T
	blocks map[string]string
	used   map[string]bool
	app    string // lines of the app pollard
	tls    string // a line of a site, with a certificate
	ran    int    // less than all if the flag -run selects some
	all    int
}

// run runs a subtest.
func (p *page) run(name string, test func(t *testing.T)) {
	p.all++
	p.t.Run(name, func(t *testing.T) { p.ran++; test(t) })
}

// replaced returns a block with other texts in place of some. Each must be there.
func (p *page) replaced(t *testing.T, name string, pairs ...string) string {
	t.Helper()
	text := p.blocks[name]
	p.used[name] = true
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the block %q has no %q:\n%s", name, pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// caddy runs a Caddyfile of the page. Its store, log and admin endpoint are the test's. There may be more global
// options.
func (p *page) caddy(t *testing.T, c *child, text, options string) {
	t.Helper()
	own := fmt.Sprintf("admin %s\npersist_config off\nauto_https off\ndefault_bind 127.0.0.1\nlog tests {\noutput file %s\n}\n%s\n", c.admin, c.log, options)
	app := fmt.Sprintf("pollard {\nstore sqlite %s\n%s\n", c.dir, p.app)
	if before, after, has := strings.Cut(text, "\tpollard {\n"); has {
		text = before + app + after
	} else {
		own += app + "}\n"
	}
	if rest, global := strings.CutPrefix(text, "{\n"); global {
		text = "{\n" + own + rest
	} else {
		text = "{\n" + own + "}\n" + text
	}
	stage.WriteFile(t, c.file, text)
	c.start()
}

// nginx runs nginx with a site of the page, which listens with TLS for clients that send the PROXY protocol.
func (p *page) nginx(t *testing.T, name, pollard string, more ...string) (proxy string) {
	t.Helper()
	proxy = loopback.FreeAddress(t)
	site := p.replaced(t, name, append(more, "listen 443 ssl;", "listen "+proxy+" ssl proxy_protocol;", "http://127.0.0.1:8080", "http://"+pollard)...)
	files := strings.Fields(p.tls)
	for line := range strings.Lines(site) {
		if field := strings.Fields(line); len(field) == 2 && strings.HasPrefix(field[0], "ssl_certificate") {
			file := files[1]
			if field[0] == "ssl_certificate_key" {
				file = files[2]
			}
			site = strings.Replace(site, line, field[0]+" "+file+";\n", 1)
		}
	}
	runNginx(t, proxy, site)
	return proxy
}

// pem is a file with certificate and key, as HAProxy wants it.
func (p *page) pem(t *testing.T) string {
	t.Helper()
	var all []byte
	for _, file := range strings.Fields(p.tls)[1:] {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	file := filepath.Join(t.TempDir(), "all.pem")
	stage.WriteFile(t, file, string(all))
	return file
}

// ask sends a request through a proxy, as a client at an address does.
func (p *page) ask(t *testing.T, proxy, client, method, address string, body io.Reader, header ...string) answered {
	t.Helper()
	r, err := http.NewRequest(method, "https://"+proxy, body)
	if err != nil {
		t.Fatal(err)
	}
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
	r.Host, r.URL.Opaque = host, "/"+path // as it is written
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dialFrom(client), TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: host}}
	defer transport.CloseIdleConnections()
	a, err := doBy(&http.Client{Transport: transport, Timeout: time.Minute}, r)
	if err != nil {
		t.Errorf("%s: %v", address, err)
	}
	return a
}

// expectGateway fails unless a gateway works through a proxy at the address that people know: for those
// at home, with links to itself, feeds as their URLs are written and long subscription lists; and not for strangers.
func (p *page) expectGateway(t *testing.T, proxy, address, home string) {
	t.Helper()
	asked := ""
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		_, _ = io.WriteString(w, stage.Sample)
	}))
	defer origin.Close()
	if a := p.ask(t, proxy, home, "GET", address+"-/", nil, "Accept", "application/json"); a.Status != 200 || !strings.Contains(a.Body, `"gateway": "`+address+`"`) {
		t.Errorf("its home page does not have its address %s: %v", address, a)
	}
	const path = "/a%2Fb//c.xml?d=e%20f"
	if a := p.ask(t, proxy, home, "GET", address+origin.URL+path, nil); a.Status != 200 || asked != path {
		t.Errorf("a feed by URL: %v, and its site was asked for %s", a, asked)
	}
	var form bytes.Buffer
	fields := multipart.NewWriter(&form)
	file, err := fields.CreateFormFile("opml", "all.opml")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(file, `<opml version="2.0"><body><outline type="rss" text="%s" xmlUrl="https://blog.example/feed"/></body></opml>`, strings.Repeat("x", 2<<20))
	fields.Close()
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
	a := p.ask(t, proxy, home, "POST", address+"-/opml", &form, "Content-Type", fields.FormDataContentType(), "Origin", "https://"+host)
	if a.Status != 200 || !strings.Contains(a.Body, address+"https://blog.example/feed") {
		t.Errorf("a subscription list of 2 MiB: %v", a)
	}
	for _, header := range [][]string{nil, {"X-Forwarded-For", "192.168.1.5"}, {"Forwarded", "for=192.168.1.5"}, {"Cf-Connecting-Ip", "192.168.1.5"}} {
		if a := p.ask(t, proxy, stranger, "GET", address+"-/feeds", nil, header...); a.Status != 403 {
			t.Errorf("a stranger with %q: %v", header, a)
		}
	}
}

// The files of docs/proxies.md do what the page says, each with its proxy.
func TestProxiesPage(t *testing.T) {
	t.Parallel()
	p := &page{t: t, blocks: blocksOf(t, "proxies.md"), used: make(map[string]bool), app: "private_upstreams 127.0.0.0/8", tls: strings.TrimSpace(stage.TLS(t))}
	const usual, public = "What Pollard needs: caddyfile", "https://feeds.example.com/"
	// behind runs a Caddyfile of the page for a proxy, and returns its address.
	behind := func(t *testing.T, name string) string {
		c := configure(t, setup{})
		p.caddy(t, c, p.replaced(t, name, ".example.com:8080", ".example.com:"+portOf(c.address)), "")
		return c.address
	}
	p.run("nginx", func(t *testing.T) {
		p.expectGateway(t, p.nginx(t, "nginx: nginx", behind(t, usual)), public, home)
		silent := p.nginx(t, "nginx: nginx", behind(t, usual), "proxy_set_header X-Forwarded-For $remote_addr;", "")
		if a := p.ask(t, silent, home, "GET", public+"-/feeds", nil); a.Status != 403 || !strings.Contains(a.Body, "X-Forwarded-For $remote_addr") {
			t.Errorf("without the last line: %v", a)
		}
	})
	p.run("below a path", func(t *testing.T) {
		p.expectGateway(t, p.nginx(t, "Below a path: nginx", behind(t, "Below a path: caddyfile")), "https://www.example.com/feeds/", home)
	})
	p.run("another Caddy", func(t *testing.T) {
		pollard, front := behind(t, usual), configure(t, setup{})
		p.caddy(t, front, p.replaced(t, "Another Caddy: caddyfile", "127.0.0.1:8080", pollard, "feeds.example.com {", "https://feeds.example.com:"+portOf(front.address)+" {\n"+p.tls),
			"servers {\nlistener_wrappers {\nproxy_protocol {\nallow 127.0.0.1/32\n}\ntls\n}\n}")
		p.expectGateway(t, front.address, public, home)
	})
	p.run("HAProxy", func(t *testing.T) {
		proxy := loopback.FreeAddress(t)
		runHAProxy(t, proxy, p.replaced(t, "HAProxy: haproxy", "127.0.0.1:8080", behind(t, usual),
			"bind :443", "bind "+proxy+" accept-proxy", "/etc/haproxy/feeds.example.com.pem", p.pem(t)))
		p.expectGateway(t, proxy, public, home)
	})
	p.run("PROXY protocol", func(t *testing.T) {
		c, redirects, proxy := configure(t, setup{}), loopback.FreeAddress(t), loopback.FreeAddress(t)
		const name = "HAProxy and the PROXY protocol"
		p.caddy(t, c, p.replaced(t, name+": caddyfile", "http_port 8080", "http_port "+portOf(redirects), "https_port 8443", "https_port "+portOf(c.address),
			"feeds.example.com {", "feeds.example.com {\n"+p.tls), "")
		runHAProxy(t, proxy, p.replaced(t, name+": haproxy", "127.0.0.1:8080", redirects, "127.0.0.1:8443", c.address,
			"bind :80", "bind "+loopback.FreeAddress(t), "bind :443", "bind "+proxy+" accept-proxy"))
		p.expectGateway(t, proxy, public, home)
	})
	p.run("a Cloudflare tunnel", func(t *testing.T) {
		const secret = "s3cret-of-alice-0001"
		c := configure(t, setup{})
		p.caddy(t, c, p.replaced(t, "A Cloudflare tunnel: caddyfile", ".example.com:8080", ".example.com:"+portOf(c.address), "{env.ALICE_TOKEN}", secret), "")
		// What the tunnel sends, by its documentation.
		proxy := p.nginx(t, "nginx: nginx", c.address, "$remote_addr;", "$proxy_add_x_forwarded_for; proxy_set_header CF-Connecting-IP $remote_addr; proxy_http_version 1.1;")
		p.expectGateway(t, proxy, public, home)
		if a := p.ask(t, proxy, stranger, "GET", public+"~"+secret+"/-/feeds", nil); a.Status != 200 {
			t.Errorf("a client with a token: %v", a)
		}
	})
	p.run("Tailscale", func(t *testing.T) {
		c := configure(t, setup{})
		p.caddy(t, c, p.replaced(t, "Tailscale: caddyfile", ":8080", "http://feeds.example.com:"+portOf(c.address)), "servers {\ntrusted_proxies static 127.0.0.1\ntrusted_proxies_strict\n}")
		p.expectGateway(t, p.nginx(t, "nginx: nginx", c.address), public, "100.64.1.2")
	})
	p.expectAllUsed("docs/proxies.md", notRun...)
}

// expectAllUsed fails unless tests have run all blocks of a file but some.
func (p *page) expectAllUsed(file string, but ...string) {
	p.t.Helper()
	for name := range p.blocks {
		if p.ran == p.all && !p.t.Failed() && !p.used[name] && !slices.Contains(but, name) {
			p.t.Errorf("no test runs the block %q of %s", name, file)
		}
	}
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
