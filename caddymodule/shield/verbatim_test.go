// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// Responses that are not shared pass through unchanged over real connections: ranges of large files,
// trailers, streams and upgrades.
func TestVerbatimOverTheNetwork(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/large.mp3", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "audio/mpeg")
		w.Header().Set("Etag", `"large"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(large))
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "Grpc-Status")
		w.Header().Set("Content-Type", "application/grpc")
		fmt.Fprintf(w, "%d bytes", len(sent))
		w.Header().Set("Grpc-Status", "0")
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html>")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, strings.ToUpper(line))
	})
	backend := httptest.NewUnstartedServer(mux)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	backend.Config.Protocols = protocols
	backend.Start()
	defer backend.Close()
	proxy := "reverse_proxy " + backend.URL + "\n"
	at := []string{loopback.FreeAddress(t), loopback.FreeAddress(t)}
	sites := "http://" + at[0] + " {\n" + proxy + "}\n" +
		"http://" + at[1] + " {\nfeed_shield {\norigin {\n" + proxy + "}\n}\n}\n"
	stage.RunInstance(t, "", sites, func(*stage.Stage, string) {
		client := &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: time.Minute}
		defer client.CloseIdleConnections()
		describe := func(address, method, path, body string, header ...string) string {
			r, err := http.NewRequestWithContext(context.Background(), method, "http://"+address+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			for _, name := range []string{"Date", "Cache-Status", "Via", "Server"} {
				resp.Header.Del(name)
			}
			return fmt.Sprint(resp.StatusCode, resp.Header, resp.Trailer, len(text), err, string(text[:min(len(text), 100)]))
		}
		for _, tt := range []struct {
			method, path, body string
			header             []string
		}{
			{"GET", "/large.mp3", "", []string{"Range", "bytes=15000000-15000999"}},
			{"GET", "/large.mp3", "", []string{"Range", "bytes=-10"}},
			{"GET", "/large.mp3", "", nil},
			{"HEAD", "/large.mp3", "", nil},
			{"POST", "/trailers", strings.Repeat("x", 100_000), nil},
			{"GET", "/trailers", "", nil},
			{"GET", "/hints", "", nil},
			{"GET", "/none", "", nil},
		} {
			want := describe(at[0], tt.method, tt.path, tt.body, tt.header...)
			for round := range 2 {
				asked.Store(0)
				if got := describe(at[1], tt.method, tt.path, tt.body, tt.header...); got != want {
					t.Errorf("round %d: %s %s %v: got %s\nwant %s", round, tt.method, tt.path, tt.header, got, want)
				}
				if n := asked.Load(); n > 1 {
					t.Errorf("the backend was asked %d times", n)
				}
			}
		}
		for i, address := range at {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(conn, "GET /echo HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello\n", address)
			answers := bufio.NewReader(conn)
			resp, err := http.ReadResponse(answers, nil)
			if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("site %d: %v, %v", i, resp, err)
			}
			if line, err := answers.ReadString('\n'); line != "HELLO\n" {
				t.Errorf("site %d: %q, %v", i, line, err)
			}
			conn.Close()
		}
	})
}
