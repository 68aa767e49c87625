// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard" // the directives of Caddyfiles

	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

const hinted = `<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><link>https://example.com/</link>` +
	`<atom:link rel="self" href="https://example.com/feed.xml"/><ttl>120</ttl><skipHours><hour>24</hour><hour>11</hour></skipHours><skipDays><day>Sunday</day></skipDays>` +
	`<item><title>One</title><link>https://example.com/1</link><pubDate>Fri, 20 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>`

// explainArgs runs `feeds explain` and returns what it prints, and its exit code.
func explainArgs(t *testing.T, stdin string, args ...string) (out string, code int) {
	t.Helper()
	return runCommand(t, explainCommand(), stdin, args...)
}

// An instance on the machine of the tests must not answer them.
func TestMain(m *testing.M) {
	caddy.DefaultAdminListen = "unix//nonexistent/admin.sock"
	os.Exit(m.Run())
}

// runCommand runs a command and returns what it prints, and its exit code.
func runCommand(t *testing.T, cmd *cobra.Command, stdin string, args ...string) (out string, code int) {
	t.Helper()
	out, _, code = runWithErrors(t, cmd, stdin, args...)
	return out, code
}

// runWithErrors is runCommand for those who read the standard error as well.
func runWithErrors(t *testing.T, cmd *cobra.Command, stdin string, args ...string) (out, errors string, code int) {
	t.Helper()
	cmd.SetFlagErrorFunc(usageError)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var printed, told bytes.Buffer
	cmd.SetOut(&printed)
	cmd.SetErr(&told)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(append([]string{}, args...)) // nil would be the arguments of the test itself
	err := cmd.ExecuteContext(t.Context())
	out, errors = printed.String(), told.String()
	if err == nil {
		return out, errors, exitDone
	}
	// Caddy's type for exit codes above 1 is not exported. It is the outermost then.
	two := usageError(cmd, io.EOF)
	if reflect.TypeOf(err) == reflect.TypeOf(two) {
		return out, errors, exitUsage
	}
	return out, errors, exitFailed
}

func TestExplainJSON(t *testing.T) {
	t.Setenv("POLLARD_TEST_FEED", "https://private.example/feed.xml")
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(`{
	pollard {
		min_interval 3h
		host *.example.org {
			min_interval 4h
		}
	}
}
http://feeds.test {
	handle_path /x/* {
		feed_gateway {
			feed /a.xml https://example.com/feed.xml {
				min_interval 5h
			}
			feed /b.xml {env.POLLARD_TEST_FEED}
		}
	}
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(hinted, "example.com", "www.example.org")
	tests := []struct {
		name string
		body string
		args []string
		code int
		want map[string]any // of the decision, and problem
	}{
		{"a document alone", hinted, nil, 0, map[string]any{"winner": "ttl", "interval_seconds": 7200.0, "next_poll": "2026-11-21T10:00:00Z"}},
		{"a longer header", hinted, []string{"--header", "Cache-Control: public, max-age=10000"}, 0, map[string]any{"winner": "max-age", "interval_seconds": 10000.0}},
		{"out of skipHours", hinted, []string{"--header", "Cache-Control: max-age=10800"}, 0, map[string]any{"winner": "skip-hours", "next_poll": "2026-11-21T12:00:00Z"}},
		{"another answer before it", hinted, []string{"--status", "503", "--header", "Retry-After: 18000"}, 0, map[string]any{"winner": "retry-after", "interval_seconds": 18000.0}},
		{"not modified", hinted, []string{"--status", "304"}, 0, map[string]any{"winner": "ttl", "interval_seconds": 7200.0}},
		{"gone", hinted, []string{"--status", "410"}, 0, map[string]any{"winner": "gone", "interval_seconds": nil, "next_poll": nil}},
		{"two fields of one name", hinted, []string{"--header", "Cache-Control: no-cache", "--header", "Cache-Control: max-age=10000"}, 0, map[string]any{"winner": "max-age"}},
		{"rules of a feed", hinted, []string{"--config", config}, 0, map[string]any{"winner": "floor", "interval_seconds": 5 * 3600.0}},
		{"rules of a host", other, []string{"--config", config}, 0, map[string]any{"winner": "floor", "interval_seconds": 4 * 3600.0}},
		{"rules for all", stage.Sample, []string{"--config", config, "--header", "Cache-Control: max-age=60"}, 0, map[string]any{"winner": "floor", "interval_seconds": 3 * 3600.0}},
		{"no feed", "<!DOCTYPE html><html></html>", nil, 1, map[string]any{"winner": "back-off", "problem": "not a feed: an HTML page"}},
		{"nothing", "", nil, 1, map[string]any{"winner": "back-off", "problem": "status 200 without a body"}},
		{"an error page", "<html></html>", []string{"--status", "404"}, 1, map[string]any{"winner": "back-off", "problem": "not a feed: an HTML page"}},
		{"nothing, not modified", "", []string{"--status", "304", "--header", "Cache-Control: max-age=7200"}, 0, map[string]any{"winner": "max-age", "interval_seconds": 7200.0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"-", "--json", "--now", "2026-11-21T08:00:00Z"}, tt.args...)
			out, code := explainArgs(t, tt.body, args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			decision, _ := got["decision"].(map[string]any)
			for key, want := range tt.want {
				value := decision[key]
				if key == "problem" {
					value = got[key]
				}
				if value != want {
					t.Errorf("%s is %v, want %v, in %s", key, value, want, out)
				}
			}
			if _, list := decision["considered"].([]any); !list {
				t.Errorf("considered is no list in %s", out)
			}
			if again, _ := explainArgs(t, tt.body, args...); again != out {
				t.Error("a second time gives something else")
			}
		})
	}
}

func TestExplainFields(t *testing.T) {
	out, _ := explainArgs(t, hinted, "-", "--json", "--now", "2026-11-21T08:00:00Z")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "decision")
	left, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"entries":1,"format":"rss","hints":{"self":"https://example.com/feed.xml","skip_days":["Sunday"],"skip_hours":[0,11],"ttl_minutes":120},"newest":"2026-11-20T10:00:00Z","version":"2.0"}`
	if string(left) != want {
		t.Errorf("got\n%s\nwant\n%s", left, want)
	}
}

func TestExplainText(t *testing.T) {
	out, code := explainArgs(t, hinted, "-", "--now", "2026-11-21T08:00:00Z", "--header", "Cache-Control: max-age=10800")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"RSS 2.0, 1 entry, the newest of 2026-11-20T10:00:00Z.",
		"hours (GMT) in which it is not to be polled",
		"Sunday",
		"given: max-age=10800",
		"The feed asks not to be polled between 00:00 and 01:00 and between 11:00 and 12:00 GMT (skipHours).",
		"Next poll: 2026-11-21T12:00:00Z, 4h after this answer.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestExplainURL(t *testing.T) {
	origin := origintest.New(origintest.OK(stage.Sample, "Cache-Control", "max-age=9000"), origintest.Status(http.StatusNotFound))
	server := origin.Start(t)
	out, code := explainArgs(t, "", server.URL+"/feed.xml", "--json")
	if n := len(origin.Requests()); code != exitDone || !strings.Contains(out, `"winner": "max-age"`) || n != 1 {
		t.Errorf("exit code %d after %d requests: %s", code, n, out)
	}
	out, code = explainArgs(t, "", server.URL+"/nothing", "--json")
	if code != exitFailed || !strings.Contains(out, "404") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A feed that a running instance may know is not polled although the instance cannot read its store.
func TestExplainPollsNothingWhileTheStoreIsAway(t *testing.T) {
	instance := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"error":"the store cannot be read"}`)
	}))
	defer instance.Close()
	defer func(address string) { caddy.DefaultAdminListen = address }(caddy.DefaultAdminListen)
	caddy.DefaultAdminListen = strings.TrimPrefix(instance.URL, "http://")
	origin := origintest.New(origintest.OK(stage.Sample))
	_, told, code := runWithErrors(t, explainCommand(), "", origin.Start(t).URL+"/feed.xml")
	if n := len(origin.Requests()); n != 0 || code != exitFailed || !strings.Contains(told, "cannot be read") {
		t.Errorf("exit code %d after %d requests: %s", code, n, told)
	}
}

func TestExplainUsage(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
	}{
		{"no argument", nil, exitUsage},
		{"two arguments", []string{"a", "b"}, exitUsage},
		{"unknown flag", []string{"-", "--frob"}, exitUsage},
		{"time", []string{"-", "--now", "noon"}, exitUsage},
		{"status", []string{"-", "--status", "99"}, exitUsage},
		{"status in words", []string{"-", "--status", "gone"}, exitUsage},
		{"header", []string{"-", "--header", "max-age=1"}, exitUsage},
		{"flags of a file with a URL", []string{"https://example.com/", "--status", "304"}, exitUsage},
		{"no such file", []string{"testdata/none.xml"}, exitFailed},
		{"no such config", []string{"-", "--config", "testdata/none"}, exitFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if out, code := explainArgs(t, hinted, tt.args...); code != tt.code || out != "" {
				t.Errorf("exit code %d, want %d; printed %q", code, tt.code, out)
			}
		})
	}
}

// The error of a configuration that cannot be provisioned names what is missing.
func TestConfigurationWithoutEnvironment(t *testing.T) {
	config := write(t, "Caddyfile", "http://feeds.test {\n\tfeed_gateway {\n\t\tfeed /b.xml {env.POLLARD_TEST_UNSET}\n\t}\n}\n")
	_, err := loadConfiguration(config)
	if err == nil || !strings.Contains(err.Error(), "POLLARD_TEST_UNSET") || !strings.Contains(err.Error(), "environment of the service") {
		t.Errorf("got %v", err)
	}
}
