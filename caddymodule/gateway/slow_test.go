// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// A reader who takes nothing of a large feed for a minute is sent no more. Who pauses for less gets all of it.
func TestReadersWhoTakeNothing(t *testing.T) {
	large := stage.FeedNamed(strings.Repeat("word ", 8<<20/5))
	origin := func(*http.Request) (int, string, http.Header) { return http.StatusOK, large, nil }
	stage.RunGateways(t, origin, func(t *testing.T, o *stage.Stage) {
		network := new(stage.Network)
		network.Use()
		if err := o.LoadSites("servers {\nprotocols h1 h2c\n}", "", "http://feeds.test {\nbind mem/feeds\nfeed_gateway {\nfeed /large.xml https://origin.test/\n}\n}"); err != nil {
			t.Fatal(err)
		}
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
			for pause, whole := range map[time.Duration]bool{59 * time.Second: true, 61 * time.Second: false} {
				client := &http.Transport{DialContext: network.Dial, DisableCompression: true, Protocols: new(http.Protocols)}
				client.Protocols.SetHTTP1(protocol == "HTTP/1.1")
				client.Protocols.SetUnencryptedHTTP2(protocol == "HTTP/2.0")
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://feeds/large.xml", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = "feeds.test"
				resp, err := client.RoundTrip(r)
				if err != nil || resp.Proto != protocol {
					t.Fatal(protocol, err)
				}
				time.Sleep(pause)
				body, err := io.ReadAll(resp.Body)
				if resp.Body.Close(); (err == nil) != whole || whole && string(body) != large {
					t.Errorf("%s: after %v: %d of %d bytes, %v", protocol, pause, len(body), len(large), err)
				}
				client.CloseIdleConnections()
			}
		}
	})
}
