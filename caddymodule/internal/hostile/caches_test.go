// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// block returns the block of docs/shield.md in a language, for a cache that has its shield at an address
// and keeps feeds for a time.
func block(t *testing.T, language, shield, keep string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/shield.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n```"+language+"\n")
	if !found {
		t.Fatalf("docs/shield.md has no block in %s", language)
	}
	text, _, _ = strings.Cut(text, "\n```\n")
	host, port, _ := net.SplitHostPort(shield)
	replaced := strings.NewReplacer("127.0.0.1:8080", shield, `"127.0.0.1"`, `"`+host+`"`, `"8080"`, `"`+port+`"`,
		"/var/cache/nginx", t.TempDir(), " 1m;", " "+keep+";").Replace(text)
	if replaced == text || !strings.Contains(replaced, port) || !strings.Contains(text, " 1m;") {
		t.Fatalf("the block in %s is not what this test knows:\n%s", language, text)
	}
	return replaced
}

// behindNginx starts nginx with the block of docs/shield.md, and returns its address.
func behindNginx(t *testing.T, shield, keep string) string {
	t.Helper()
	address := loopback.FreeAddress(t)
	inHTTP, inServer, _ := strings.Cut(block(t, "nginx", shield, keep), "# in server\n")
	runNginx(t, address, inHTTP+"server { listen "+address+"; "+inServer+" }")
	return address
}

// behindVarnish starts Varnish with the block of docs/shield.md, and returns its address.
func behindVarnish(t *testing.T, shield, keep string) string {
	t.Helper()
	dir, address := t.TempDir(), loopback.FreeAddress(t)
	file := filepath.Join(dir, "default.vcl")
	stage.WriteFile(t, file, block(t, "vcl", shield, keep))
	run(t, address, "varnishd", "-F", "-j", "none", "-n", filepath.Join(dir, "run"), "-s", "malloc,16m", "-a", address, "-f", file)
	return address
}

// fetch requests a feed from a cache.
func fetch(t *testing.T, cache, path string, header ...string) answered {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+cache+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := do(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// members is a site with feeds for its members, who prove who they are in several ways, and one for
// all, which is good for a day.
func members(w http.ResponseWriter, r *http.Request) {
	name := "nobody"
	switch path := r.URL.Path; {
	case path == "/feed/password.xml", path == "/feed/guarded.xml":
		if _, _, ok := r.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="members"`)
			http.Error(w, "members only", http.StatusUnauthorized)
			return
		}
		name, _, _ = r.BasicAuth()
	case path == "/feed/cookie.xml":
		w.Header().Set("Vary", "Cookie")
		if c, err := r.Cookie("member"); err == nil {
			name = c.Value
		}
	case path == "/feed/field.xml", path == "/feed/unstored.xml":
		name = r.Header.Get("X-Member")
	}
	w.Header().Set("Content-Type", "application/rss+xml")
	switch r.URL.Path {
	case "/feed/shared.xml", "/feed/guarded.xml":
		w.Header().Set("Cache-Control", "max-age=86400")
	case "/feed/unstored.xml":
		w.Header().Set("Cache-Control", "no-store")
	default:
		w.Header().Set("Cache-Control", "private, max-age=3600")
	}
	fmt.Fprint(w, stage.FeedNamed("for "+name))
}

// The caches of docs/shield.md, in front of a shield, never give a reader what is another's, and share a
// feed that is for all: for the time that the page says, whatever the feed asks of readers.
func TestCachesInFrontOfAShield(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(members))
	defer site.Close()
	c := start(t, setup{anyHost: true, site: `
	basic_auth /feed/guarded.xml {
		alice $2a$04$JuMl3yp/W832xew5GVcyCu8xxk.pnaDWpRP9TXQIKxdyH.rGi9k36
	}
	feed_shield /feed/* {
		origin {
			reverse_proxy ` + site.Listener.Addr().String() + `
		}
	}`})
	c.get("/feed/shared.xml") // waits for the first poll
	for name, behind := range map[string]func(t *testing.T, shield, keep string) string{"nginx": behindNginx, "varnish": behindVarnish} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: c.address})
			counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				forward.ServeHTTP(w, r)
			}))
			defer counted.Close()
			shield := counted.Listener.Addr().String()
			cache := behind(t, shield, "1m")
			for _, tt := range []struct{ path, field, value string }{
				{"/feed/password.xml", "Authorization", "Basic YWxpY2U6c2VjcmV0"}, {"/feed/guarded.xml", "Authorization", "Basic YWxpY2U6c2VjcmV0"},
				{"/feed/cookie.xml", "Cookie", "member=alice"}, {"/feed/field.xml", "X-Member", "alice"}, {"/feed/unstored.xml", "X-Member", "alice"},
			} {
				fetch(t, cache, tt.path)
				if own := fetch(t, cache, tt.path, tt.field, tt.value); own.Status != 200 || !strings.Contains(own.Body, "for alice") {
					t.Errorf("%s: alice gets %v", tt.path, own)
				}
				if other := fetch(t, cache, tt.path); strings.Contains(other.Body, "alice") {
					t.Errorf("%s: what is alice's is given to others: %v", tt.path, other)
				}
			}
			fetch(t, cache, "/feed/shared.xml")
			before := requests.Load()
			for range 20 {
				if a := fetch(t, cache, "/feed/shared.xml"); a.Status != 200 || !strings.Contains(a.Body, "for nobody") {
					t.Fatalf("the feed for all: %v", a)
				}
			}
			if n := requests.Load() - before; n > 0 {
				t.Errorf("%d of 20 readers got the feed for all from the shield", n)
			}
			// The feed is good for a day, and the cache asks for it again.
			before, cache = requests.Load(), behind(t, shield, "1s")
			for deadline := time.Now().Add(time.Minute); requests.Load() < before+2; time.Sleep(50 * time.Millisecond) {
				if fetch(t, cache, "/feed/shared.xml"); time.Now().After(deadline) {
					t.Fatal("the cache does not ask again")
				}
			}
		})
	}
}
