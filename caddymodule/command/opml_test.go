// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
)

const subscriptions = `<opml version="1.0"><body>
<outline text="News"><outline text="A" xmlUrl="https://a.example/feed?x=1&amp;y" private="1"/></outline>
<outline text="B" xmlUrl="http://bob:s3cret@b.example/"/><outline text="C" xmlUrl="exec:~/bin/&#155;feed"/>
</body></opml>
`

func TestOPMLCommand(t *testing.T) {
	file := write(t, "in.opml", subscriptions)
	there, told, code := runWithErrors(t, opmlCommand(), "", file, "--gateway", "https://feeds.example.com", "--token", "s3same")
	want := strings.NewReplacer("https://a", "https://feeds.example.com/~s3same/https://a", "http://bob", "https://feeds.example.com/~s3same/http://bob").Replace(subscriptions)
	if code != exitDone || there != want {
		t.Errorf("exit code %d:\n%s\nwant\n%s", code, there, want)
	}
	if told != "2 changed, 1 left as they are\n  exec:~/bin/�feed\n" {
		t.Errorf("told %q", told)
	}
	back, told, code := runWithErrors(t, opmlCommand(), there, "-", "--gateway", "https://Feeds.Example.com:443/", "--direct")
	if code != exitDone || back != subscriptions || !strings.HasPrefix(told, "2 changed, 1 left") {
		t.Errorf("exit code %d, %s:\n%s", code, told, back)
	}
}

func TestOPMLCommandFails(t *testing.T) {
	file := write(t, "in.opml", subscriptions)
	for _, tt := range []struct {
		name string
		args []string
		code int
		told string
	}{
		{"nothing", nil, exitUsage, "pollard: expected one subscription list, got 0 arguments\n"},
		{"no gateway", []string{file}, exitUsage, "pollard: --gateway is missing: give the URL of the gateway, such as http://feeds.home.arpa\n"},
		{"a gateway without a scheme", []string{file, "--gateway", "feeds.home.arpa"}, exitUsage, "pollard: --gateway \"feeds.home.arpa\": not a feed URL: it must begin with http:// or https://, as in http://feeds.home.arpa\n"},
		{"no such file", []string{file + "x", "--gateway", "http://g"}, exitFailed, "pollard: open " + file + "x: no such file or directory\n"},
		{"no OPML", []string{"-", "--gateway", "http://g"}, exitFailed, "pollard: reading -: not OPML: truncated\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, told, code := runWithErrors(t, opmlCommand(), "<rss", tt.args...)
			if code != tt.code || out != "" || told != tt.told {
				t.Errorf("exit code %d, printed %q, told %q, want %q", code, out, told, tt.told)
			}
		})
	}
}
