// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowUpload is a list that never ends, on a connection with a deadline.
type slowUpload struct {
	*httptest.ResponseRecorder
	late chan struct{}
}

func (u *slowUpload) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		time.AfterFunc(time.Until(at), func() { close(u.late) })
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
				w := &slowUpload{httptest.NewRecorder(), make(chan struct{})}
				r := httptest.NewRequest("POST", "/-/opml", io.MultiReader(strings.NewReader(head), w))
				r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
				p.ServeHTTP(w, r, at, "opml")
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
