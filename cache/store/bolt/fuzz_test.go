// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// FuzzRecord reads values of the file of records, and files of bodies, that may be
// damaged. What is read must be written and read again as the same.
func FuzzRecord(f *testing.F) {
	id := numbered(1)
	for _, feed := range []schedule.Feed{
		{State: store.StateFresh, Token: 7, Version: 3, File: 9, Size: 100, Next: 1, Hold: time.Hour, Host: store.Host{Name: "a.example.com", Domain: "example.com"}, Facts: []byte("{}")},
		{State: "odd", Configured: true, Here: true, Host: store.Host{Name: "b", Domain: "elsewhere", Spacing: time.Second}},
		*presumed(5),
	} {
		f.Add(encodeFeed(id, &feed))
	}
	f.Add(encodeText(id, schedule.Text{URL: "https://example.com/", Memo: []byte("{}")}))
	f.Add(encodeBody(id, store.Body{Version: 3, Coding: "gzip", Data: []byte("data")}))
	f.Add(stamp{scale: 5, wall: time.Unix(7, 8)}.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		var feed, again schedule.Feed
		if decodeFeed(id, value, &feed) == nil {
			if err := decodeFeed(id, encodeFeed(id, &feed), &again); err != nil || !reflect.DeepEqual(feed, again) {
				t.Errorf("%+v was written, and read as %+v, %v", feed, again, err)
			}
			if len(feed.Facts)+len(feed.Host.Name) > len(value) {
				t.Errorf("%d bytes have become %+v", len(value), feed)
			}
		}
		text := decodeText(id, value)
		if got := decodeText(id, encodeText(id, text)); got.URL != text.URL || !bytes.Equal(got.Memo, text.Memo) {
			t.Errorf("%+v was written, and read as %+v", text, got)
		}
		if body, err := decodeBody(value, id); err == nil && !bytes.Equal(encodeBody(id, body), value) {
			t.Errorf("%q is another file than that of %+v", value, body)
		}
		if at, ok := decodeStamp(value); ok && !bytes.Equal(at.encode(), value) {
			t.Errorf("%q is another moment than %+v", value, at)
		}
		if owner, file, ok := parseName(string(value)); ok {
			if got, number, ok := parseName(name(owner) + string(value[len(value)-17:])); !ok || got != owner || number != file {
				t.Errorf("%q names %x, %x", value, owner, file)
			}
		}
	})
}
