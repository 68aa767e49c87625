// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/status"
)

// slowUpload is a list that never ends, on a connection with a deadline.
type slowUpload struct {
	*httptest.ResponseRecorder
	late  chan struct{}
	first sync.Once
}

func (u *slowUpload) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		time.AfterFunc(time.Until(at), func() { u.first.Do(func() { close(u.late) }) })
	}
	return nil
}

func (u *slowUpload) Read([]byte) (int, error) {
	<-u.late
	return 0, os.ErrDeadlineExceeded
}

// However many lists are sent, and however slowly, two at a time take memory, each for ten seconds.
func TestUploadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func(before chan struct{}) { uploads = before }(uploads)
		uploads = make(chan struct{}, cap(uploads)) // of this bubble
		p, _, at := newPages(t, 3)
		const head = "--b\r\nContent-Disposition: form-data; name=\"opml\"; filename=\"a\"\r\n\r\n<opml>"
		status := make(chan int, 8)
		for range cap(status) {
			go func() {
				w := &slowUpload{ResponseRecorder: httptest.NewRecorder(), late: make(chan struct{})}
				r := httptest.NewRequest("POST", "/-/opml", io.MultiReader(strings.NewReader(head), w))
				r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
				p.ServeHTTP(w, door.Read(r), at, "opml")
				status <- w.Code
			}()
		}
		synctest.Wait()
		if n := len(uploads); n != 2 {
			t.Errorf("%d lists at a time", n)
		}
		began, got := time.Now(), make(map[int]int)
		for range cap(status) {
			got[<-status]++
		}
		if took := time.Since(began); took > uploadWait+uploadTime || got[http.StatusRequestTimeout] < 2 || got[http.StatusServiceUnavailable] < 4 {
			t.Errorf("%v after %v", got, took)
		}
		if n := len(uploads); n != 0 {
			t.Errorf("%d places are not free again", n)
		}
	})
}

// While the store is away the list is not served: an empty or shorter one would end subscriptions of readers that
// follow it.
func TestNoListWhileTheStoreIsAway(t *testing.T) {
	p, source, at := newPages(t, 3)
	if w := ask(p, at, "GET", "opml"); w.Code != 200 || !strings.Contains(w.Body.String(), "<opml") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	source.trouble.StoreAway = true
	if w := ask(p, at, "GET", "opml"); w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "<opml") || w.Header().Get("Cache-Control") != "private, no-cache" {
		t.Errorf("the store is away: %d %v", w.Code, w.Header())
	}
	source.trouble.StoreAway = false
	source.list = func(status.Query) (status.FeedList, error) { return status.FeedList{}, errors.New("away") }
	if w := ask(p, at, "GET", "opml?asked"); w.Code != 503 {
		t.Errorf("the store fails: %d", w.Code)
	}
}

// Addresses of the gateway stay as they are in a list that goes through it, with a token or without.
func TestOwnAddressesAreNotRewritten(t *testing.T) {
	const own = "http://feeds.home.arpa/rachel.xml http://feeds.home.arpa/https://a.example/feed http://feeds.home.arpa/~secret-of-bob/https://a.example/feed http://feeds.home.arpa/~secret-of-alice/https://a.example/feed"
	var list strings.Builder
	for url := range strings.FieldsSeq(own) {
		list.WriteString(`<outline xmlUrl="` + url + `"/>`)
	}
	text := "<opml><body>" + list.String() + "</body></opml>"
	for _, at := range []Place{{Gateway: "http://feeds.home.arpa/"}, {Gateway: "http://feeds.home.arpa/~secret-of-alice/", Token: true}} {
		got, changed, left, err := throughGateway([]byte(strings.Replace(text, "</body>", `<outline xmlUrl="https://b.example/~carol/feed"/></body>`, 1)), at)
		want := strings.Replace(text, "</body>", `<outline xmlUrl="`+at.Gateway+`https://b.example/~carol/feed"/></body>`, 1)
		if err != nil || string(got) != want || changed != 1 || left != 4 {
			t.Errorf("through %s: %v\n%s, want\n%s", at.Gateway, err, got, want)
		}
	}
}
