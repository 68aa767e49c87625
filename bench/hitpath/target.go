// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// kind is a kind of request that is measured.
type kind struct {
	name   string
	status int
	gzip   bool
	byETag bool
	byDate bool
}

var kinds = []kind{
	{name: "200 identity", status: 200},
	{name: "200 gzip", status: 200, gzip: true},
	{name: "304 by ETag", status: 304, gzip: true, byETag: true},
	{name: "304 by date", status: 304, gzip: true, byDate: true},
}

// target is a server as readers see it.
type target struct {
	name    string
	process *rig.Process
	urls    map[string]string // by kind; that of "" is for all others
	plain   bool              // its gzip is text of the same length

	etag, lastModified string // of its gzip answer
	fields             map[string]http.Header
}

func (t *target) url(k kind) string {
	if u, ok := t.urls[k.name]; ok {
		return u
	}
	return t.urls[""]
}

// header is what readers send.
func (t *target) header(k kind) http.Header {
	h := http.Header{"User-Agent": {"FreshRSS/1.24.1 (Linux; https://freshrss.org)"}, "Accept": {"application/rss+xml, */*;q=0.1"}}
	if k.gzip {
		h["Accept-Encoding"] = []string{"gzip"}
	}
	if k.byETag {
		h["If-None-Match"] = []string{t.etag}
	}
	if k.byDate {
		h["If-Modified-Since"] = []string{t.lastModified}
	}
	return h
}

// verify checks the answer to a request, twice: the first one may be fetched.
func (t *target) verify(k kind, d *document) error {
	for range 2 {
		if err := t.verifyOnce(k, d); err != nil {
			return err
		}
	}
	return nil
}

var client = &http.Client{Transport: &http.Transport{DisableCompression: true}}

func (t *target) verifyOnce(k kind, d *document) error {
	r, err := http.NewRequest(http.MethodGet, t.url(k), nil)
	if err != nil {
		return err
	}
	r.Header = t.header(k)
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != k.status {
		return fmt.Errorf("got %s: %.200s", resp.Status, body)
	}
	if t.fields == nil {
		t.fields = make(map[string]http.Header)
	}
	t.fields[k.name] = resp.Header
	if k.status == 304 {
		return nil
	}
	want := d.identity
	if k.gzip {
		if t.etag = resp.Header.Get("ETag"); t.etag == "" {
			t.etag = d.etag
		}
		if t.lastModified = resp.Header.Get("Last-Modified"); t.lastModified == "" {
			t.lastModified = d.lastModified
		}
		if t.plain {
			if len(body) != len(d.gzip) {
				return fmt.Errorf("got %d bytes, want %d", len(body), len(d.gzip))
			}
			return nil
		}
		if resp.Header.Get("Content-Encoding") != "gzip" {
			return fmt.Errorf("the answer is not compressed")
		}
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err
		}
		if body, err = io.ReadAll(z); err != nil {
			return err
		}
	}
	if !bytes.Equal(body, want) {
		return fmt.Errorf("got another document, of %d bytes", len(body))
	}
	return nil
}
