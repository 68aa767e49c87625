// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/command/replay"
)

// hourlyLog is a log of two readers that ask for /feed.xml every hour of two days,
// and of a reader of something else.
func hourlyLog() string {
	var b strings.Builder
	for hour := range 48 {
		at := time.Date(2026, time.March, 3, hour, 30, 0, 0, time.UTC).Format("02/Jan/2006:15:04:05 -0700")
		fmt.Fprintf(&b, "192.0.2.1 - - [%s] \"GET /feed.xml HTTP/1.1\" 200 900 \"-\" \"Rude/1.0\"\n", at)
		fmt.Fprintf(&b, "198.51.100.1 - - [%s] \"GET /feed.xml HTTP/1.1\" 200 900 \"-\" \"Other/1.0\"\n", at)
		fmt.Fprintf(&b, "203.0.113.1 - - [%s] \"GET /index.html HTTP/1.1\" 200 900 \"-\" \"Browser/1.0\"\n", at)
	}
	return b.String()
}

// write makes a file for a test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayCommand(t *testing.T) {
	log, feed := write(t, "access.log", hourlyLog()), write(t, "feed.xml", hinted)
	site := func(lines string) string {
		return write(t, "Caddyfile", "{\n\tadmin off\n}\nhttp://blog.test {\n"+lines+"\n\tfile_server\n}\n")
	}
	shield := site(`feed_shield /feed.xml {
		origin {
			respond hello
		}
		max_interval 1h
		defend {
			unconditional 4h
			skip_hours
		}
	}`)
	exempt := site(`@other client_ip 198.51.100.0/24
	feed_shield /feed.xml {
		origin {
			respond hello
		}
		defend {
			unconditional 4h
			exempt @other
			exempt Nobody
		}
	}`)
	elsewhere := site(`feed_shield /podcast/* {
		origin {
			respond hello
		}
		defend {
			require_compression
		}
	}
	feed_shield /feed.* {
		origin {
			respond hello
		}
		min_interval 12h
	}`)
	gateway := write(t, "Caddyfile", `http://feeds.test {
	feed_gateway {
		feed /a.xml https://example.com/feed.xml {
			min_interval 6h
			max_interval 6h
		}
	}
}
`)
	tests := []struct {
		name   string
		args   []string
		polls  [2]int64 // at least, at most
		served string
	}{
		{"a shield asks whenever a reader does", nil, [2]int64{48, 49}, "map[200:96]"}, // its feed's ttl is for readers
		{"an origin's header", []string{"--header", "Cache-Control: max-age=43200"}, [2]int64{3, 4}, "map[200:96]"},
		{"a shield", []string{"--config", shield}, [2]int64{24, 25}, "map[200:48 429:48]"},
		{"a shield and who is exempt", []string{"--config", exempt}, [2]int64{48, 49}, "map[200:72 429:24]"},
		{"the shield on the path", []string{"--config", elsewhere}, [2]int64{3, 4}, "map[200:96]"},
		{"a gateway", []string{"--config", gateway}, [2]int64{6, 8}, "map[200:96]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"--log", log, "--feed", feed, "--path", "/feed.xml", "--json"}, tt.args...)
			out, code := runCommand(t, replayCommand(), "", args...)
			var r replay.Report
			if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDone {
				t.Fatalf("code %d, %v: %s", code, err, out)
			}
			if r.Requests != 96 || r.OtherPaths != 48 || fmt.Sprint(r.Served) != tt.served {
				t.Errorf("%d requests, %d others, served %v, want %s", r.Requests, r.OtherPaths, r.Served, tt.served)
			}
			if r.OriginRequests < tt.polls[0] || r.OriginRequests > tt.polls[1] {
				t.Errorf("%d polls, want %v", r.OriginRequests, tt.polls)
			}
		})
	}
}

func TestReplayCommandReadsStandardInput(t *testing.T) {
	out, code := runCommand(t, replayCommand(), hourlyLog(), "--log", "-", "--feed", write(t, "feed.xml", hinted), "--change-every", "0")
	if code != exitDone || !strings.Contains(out, "96 requests for /feed.xml") || !strings.Contains(out, "it never changes") {
		t.Errorf("code %d: %s", code, out)
	}
}

func TestReplayCommandFails(t *testing.T) {
	log, feed := write(t, "access.log", hourlyLog()), write(t, "feed.xml", hinted)
	tests := []struct {
		name string
		args []string
		code int
	}{
		{"nothing given", nil, exitUsage},
		{"no feed", []string{"--log", log}, exitUsage},
		{"an argument", []string{"--log", log, "--feed", feed, "more"}, exitUsage},
		{"an unknown flag", []string{"--log", log, "--feed", feed, "--speed", "9"}, exitUsage},
		{"a path that is none", []string{"--log", log, "--feed", feed, "--path", "feed.xml"}, exitUsage},
		{"a header that is none", []string{"--log", log, "--feed", feed, "--header", "ETag"}, exitUsage},
		{"a change that is none", []string{"--log", log, "--feed", feed, "--change-every", "often"}, exitUsage},
		{"no such log", []string{"--log", log + "x", "--feed", feed}, exitFailed},
		{"a folder", []string{"--log", filepath.Dir(log), "--feed", feed}, exitFailed},
		{"no such feed", []string{"--log", log, "--feed", feed + "x"}, exitFailed},
		{"a feed that is none", []string{"--log", log, "--feed", log}, exitFailed},
		{"a log that is none", []string{"--log", feed, "--feed", feed}, exitFailed},
		{"a path that nobody asks for", []string{"--log", log, "--feed", feed, "--path", "/x"}, exitFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if out, code := runCommand(t, replayCommand(), "", tt.args...); code != tt.code || out != "" {
				t.Errorf("code %d, want %d: %s", code, tt.code, out)
			}
		})
	}
}

// The likeliest paths stand below each other, and above the error.
func TestReplayListsPaths(t *testing.T) {
	log := strings.ReplaceAll(hourlyLog(), "/index.html", "/\u202eodd")
	_, told, code := runWithErrors(t, replayCommand(), "", "--log", write(t, "access.log", log), "--feed", write(t, "feed.xml", hinted), "--path", "/x")
	want := "The likeliest paths of the first 144 lines:\n      96 requests: /feed.xml\n      48 requests: /\ufffdodd\npollard: no request to replay: no line asks for /x\n"
	if code != exitFailed || !strings.HasSuffix(told, want) {
		t.Errorf("exit code %d, %q", code, told)
	}
}
