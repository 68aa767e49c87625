// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestConditional(t *testing.T) {
	o := New(Versioned("body", `"1"`, "Last-Modified", "Mon, 02 Mar 2026 10:00:00 GMT"))
	for _, tt := range []struct {
		field, value string
		want         int
	}{
		{"If-None-Match", `"1"`, 304},
		{"If-None-Match", `"0", "1"`, 304},
		{"If-None-Match", `W/"1"`, 200},
		{"If-Modified-Since", "Mon, 02 Mar 2026 10:00:00 GMT", 304},
		{"If-Modified-Since", "Mon, 02 Mar 2026 10:00:01 GMT", 200},
		{"User-Agent", "test", 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "https://origin.test/feed.xml", nil)
		r.Header.Set(tt.field, tt.value)
		w := httptest.NewRecorder()
		o.ServeHTTP(w, r)
		if w.Code != tt.want || (w.Body.Len() == 0) != (tt.want == 304) {
			t.Errorf("%s: %s: %d with %d bytes, want %d", tt.field, tt.value, w.Code, w.Body.Len(), tt.want)
		}
	}
	if len(o.For("https://origin.test/feed.xml")) != 6 {
		t.Errorf("%+v", o.Requests())
	}
}

func TestDocuments(t *testing.T) {
	newest := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	for _, format := range []Format{RSS, Atom, JSONFeed} {
		d := Document{Format: format, Title: `"A" & B`, Entries: 3, Newest: newest, Volatile: "noise 1"}
		text := d.String()
		var err error
		if format == JSONFeed {
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
