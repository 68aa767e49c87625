// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/feedpollard/pollard/internal/status"
)

// Incidents are a feed like any other: entries with IDs that last, an ETag, a 304. An entry
// changes only when its incident ends, and no ID names the feed or the gateway.
func TestIncidents(t *testing.T) {
	began := time.Now().Add(-50 * time.Hour)
	failing := status.Feed{ID: "1f", URL: "https://news.example/secret/feed", Title: "News", Failures: 3, Incident: &status.Incident{Kind: status.IncidentFailing, Began: began, Cause: "status 500"}}
	moved := status.Feed{ID: "2f", URL: "https://old.example/feed", Alias: "https://new.example/feed", Incident: &status.Incident{Kind: status.IncidentMoved, Began: began.Add(time.Hour)}}
	list := []status.Feed{failing, moved}
	fake := &fakeSource{now: time.Now()}
	fake.list = func(q status.Query) (status.FeedList, error) {
		if !q.Incident {
			t.Errorf("asked for %+v", q)
		}
		return status.FeedList{Feeds: append([]status.Feed(nil), list...)}, nil
	}
	at := Place{Home: "/~secret/", Below: "/~secret/-/", Gateway: "http://feeds.home.arpa/~secret/", Token: true, Member: true}
	p := &Pages{Source: fake}
	read := func() (*gofeed.Feed, http.Header) {
		t.Helper()
		w := ask(p, at, http.MethodGet, "incidents")
		feed, err := gofeed.NewParser().ParseString(w.Body.String())
		if err != nil || w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/atom+xml") {
			t.Fatalf("%d %v: %v: %s", w.Code, w.Header(), err, w.Body)
		}
		return feed, w.Header()
	}
	feed, header := read()
	if len(feed.Items) != 3 || feed.Items[0].Title != "https://old.example/feed has moved" || feed.Items[1].Title != "News has failed for a day" {
		t.Fatalf("%v", feed)
	}
	if link := feed.Items[1].Link; link != "http://feeds.home.arpa/~secret/-/feeds?id=1f" {
		t.Errorf("it links to %s", link)
	}
	for _, i := range feed.Items {
		if !strings.HasPrefix(i.GUID, "tag:") || strings.Contains(i.GUID, "example") || strings.Contains(i.GUID, "home.arpa") {
			t.Errorf("ID %s", i.GUID)
		}
	}
	again := func(r *http.Request) { r.Header.Set("If-None-Match", header.Get("Etag")) }
	failing.Failures, list[0] = 4, failing
	if w := ask(p, at, http.MethodGet, "incidents", again); w.Code != http.StatusNotModified {
		t.Errorf("another failure changes it: %d %s", w.Code, w.Body)
	}
	failing.Incident = &status.Incident{Kind: status.IncidentFailing, Began: began, Ended: time.Now().Add(-time.Minute), Cause: "status 500"}
	list[0] = failing
	if ended, _ := read(); ended.Items[0].GUID != feed.Items[1].GUID || ended.Items[0].Title != "News works again" || ended.Items[0].Updated == feed.Items[1].Updated {
		t.Errorf("after its end: %v", ended.Items[0])
	}
	list = nil
	if empty, _ := read(); len(empty.Items) != 1 || empty.Items[0].GUID != feed.Items[2].GUID {
		t.Errorf("without incidents: %v", empty)
	}
	at.Unlisted = true
	if w := ask(p, at, http.MethodGet, "incidents"); w.Code != http.StatusNotFound {
		t.Errorf("with clients any: %d", w.Code)
	}
}
