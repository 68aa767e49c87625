// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

const address = "https://origin.test/feed.xml"

func get(t *testing.T, r *origintest.Reader, address string) origintest.Response {
	t.Helper()
	got, err := r.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestReaderAsksConditionally(t *testing.T) {
	o := new(origintest.Origin)
	for _, transport := range []http.RoundTripper{o, origintest.Transport(o)} { // the first sees whole URLs
		t.Run(fmt.Sprintf("%T", transport), func(t *testing.T) {
			o.Answer = origintest.InOrder(
				origintest.Versioned(origintest.Feed(1, ""), `"1"`, "Last-Modified", "Mon, 02 Mar 2026 10:00:00 GMT"),
				origintest.Versioned(origintest.Feed(1, ""), `"1"`),
				origintest.Versioned(origintest.Feed(2, ""), `"2"`),
			)
			r := &origintest.Reader{Transport: transport, Header: http.Header{"User-Agent": {"test"}}}
			for i, want := range []int{200, 304, 200, 304} {
				if got := get(t, r, address); got.Status != want || (got.Body == "") != (want == 304) {
					t.Errorf("response %d: %d with %d bytes, want %d", i, got.Status, len(got.Body), want)
				}
			}
			if last, ok := r.Last(address); !ok || last.Body != origintest.Feed(2, "") {
				t.Errorf("the reader has %q", last.Body)
			}
		})
	}
	requests := o.Requests()
	if len(requests) != 8 || requests[0].Header.Get("If-None-Match") != "" || requests[1].Header.Get("If-None-Match") != `"1"` ||
		requests[1].Header.Get("If-Modified-Since") == "" || requests[3].Header.Get("If-Modified-Since") != "" {
		t.Errorf("%+v", requests)
	}
	if requests[0].URL != address || requests[0].Header.Get("User-Agent") != "test" {
		t.Errorf("%+v", requests[0])
	}
}

func TestServer(t *testing.T) {
	o := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		switch r.URL.Path {
		case "/moved":
			return origintest.Redirect(301, "/feed")
		case "/broken":
			return origintest.Fail(errors.New("broken"))
		}
		return origintest.OK("body", "Content-Type", "")
	}}
	server := o.Start(t)
	var r origintest.Reader
	if got := get(t, &r, server.URL+"/moved"); got.Status != 301 || got.Header.Get("Location") != "/feed" {
		t.Errorf("%+v", got)
	}
	if got := get(t, &r, server.URL+"/feed?a"); got.Status != 200 || got.Body != "body" || strings.Contains(got.Header.Get("Content-Type"), "rss") {
		t.Errorf("%+v", got)
	}
	if got, err := r.Get(server.URL + "/broken"); err == nil {
		t.Errorf("%+v", got)
	}
	if n := len(o.For(server.URL + "/feed?a")); n != 1 {
		t.Errorf("%d requests in %+v", n, o.Requests())
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &origintest.Reader{Transport: origintest.New(origintest.Status(503).After(time.Minute))}
		began := time.Now()
		if got := get(t, r, address); got.Status != 503 || time.Since(began) != time.Minute {
			t.Errorf("%+v after %v", got, time.Since(began))
		}
	})
}

func TestDocuments(t *testing.T) {
	newest := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	for _, format := range []origintest.Format{origintest.RSS, origintest.Atom, origintest.JSONFeed} {
		d := origintest.Document{Format: format, Title: `"A" & B`, Entries: 3, Newest: newest, Volatile: "noise 1"}
		text := d.String()
		var err error
		if format == origintest.JSONFeed {
			err = json.Unmarshal([]byte(text), new(any))
		} else {
			err = xml.Unmarshal([]byte(text), new(struct{}))
		}
		if err != nil {
			t.Errorf("%s: %v in %s", format.ContentType(), err, text)
		}
		for _, part := range []string{"https://origin.test/1", "Entry 3", "noise 1", "28", "https://origin.test/"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %s in %s", format.ContentType(), part, text)
			}
		}
		d.Volatile = ""
		if strings.Contains(d.String(), "noise") {
			t.Errorf("%s: noise in %s", format.ContentType(), d)
		}
	}
}
