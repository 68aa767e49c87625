// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// Behind a trusted proxy that appends to X-Forwarded-For, what a client writes there makes it neither
// one of the house nor exempt nor of a fleet, gives it no second share, and takes none of another's.
func TestInventedAddressesBehindProxy(t *testing.T) {
	const options = "servers {\ntrusted_proxies static " + stage.Home + "\n}"
	const shield = `/feed* {
		status /feed/status
		defend {
			unconditional 4h
			exempt 192.168.0.0/16 198.51.100.0/24
			fleet Crawler 203.0.113.0/24
		}
	}`
	stage.RunWith(t, options, "", stage.ShieldedSite("http://blog.test", shield), stage.Feed(stage.Sample), func(s *stage.Stage) {
		from := func(target, agent, addresses string) *httptest.ResponseRecorder {
			r := stage.Request("GET", "http://blog.test"+target, "User-Agent", agent, "X-Forwarded-For", addresses)
			r.RemoteAddr = net.JoinHostPort(stage.Home, "1234")
			return s.Send(r)
		}
		for addresses, want := range map[string]int{"192.168.1.9": 200, "8.8.8.8": 403, "192.168.1.5, 8.8.8.8": 403} {
			if w := from("/feed/status", "Browser", addresses); w.Code != want || want == 403 && !strings.Contains(w.Body.String(), "You come as 8.8.8.8") {
				t.Errorf("the pages, from %s: %d %s, want %d", addresses, w.Code, w.Body, want)
			}
		}
		for _, tt := range []struct {
			name, agent string
			addresses   func(i int) string
			want        [4]int
		}{
			{"honest", "a", func(int) string { return "8.8.8.8" }, [4]int{200, 200, 429, 429}},
			{"invented", "b", func(i int) string { return fmt.Sprintf("7.7.7.%d, 8.8.8.8", i) }, [4]int{200, 200, 429, 429}},
			{"one of those that were invented", "b", func(int) string { return "7.7.7.1" }, [4]int{200, 200, 429, 429}},
			{"at home, invented", "c", func(int) string { return "192.168.1.5, 8.8.8.8" }, [4]int{200, 200, 429, 429}},
			{"at home", "d", func(int) string { return "192.168.1.5" }, [4]int{200, 200, 200, 200}},
			{"exempt", "e", func(int) string { return "198.51.100.9" }, [4]int{200, 200, 200, 200}},
			{"exempt, invented", "f", func(int) string { return "198.51.100.9, 8.8.8.8" }, [4]int{200, 200, 429, 429}},
			{"a fleet: one of a network", "Crawler", func(int) string { return "203.0.113.9" }, [4]int{200, 429, 429, 429}},
			{"a fleet, invented", "Crawler", func(int) string { return "203.0.113.9, 8.8.8.8" }, [4]int{200, 200, 429, 429}},
		} {
			var got [4]int
			for i := range got {
				got[i] = from("/feed", tt.agent, tt.addresses(i)).Code
			}
			if got != tt.want {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	})
}
