// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// document is the feed that all servers give.
type document struct {
	identity, gzip []byte
	etag           string
	lastModified   string
}

// documentSize is that of a feed with the full text of some twenty entries, in bytes.
const documentSize = 80_000

// newDocument makes a feed that compresses as feeds do, to a third, which is what plain text does.
func newDocument() *document {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2500)
	for i := range words {
		letters := make([]byte, 2+r.IntN(9))
		for j := range letters {
			letters[j] = "eeeeetttaaooiinnsshhrrdlcumwfgypbvk"[r.IntN(35)]
		}
		words[i] = string(letters)
	}
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?>` + "\n<rss version=\"2.0\"><channel><title>A feed</title><link>https://feed.example/</link><description>For measuring</description>\n")
	day := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	for n := 0; b.Len() < documentSize; n++ {
		fmt.Fprintf(&b, "<item><title>Entry %d</title><link>https://feed.example/entries/%d</link><guid isPermaLink=\"false\">tag:feed.example,2026:%d</guid><pubDate>%s</pubDate><description>",
			n, n, n, day.AddDate(0, 0, -n).Format(time.RFC1123Z))
		for range 8 {
			b.WriteString("&lt;p&gt;")
			for range 60 {
				// Some words are much more frequent than others.
				b.WriteString(words[int(float64(len(words))*r.Float64()*r.Float64()*r.Float64())])
				b.WriteByte(' ')
			}
			b.WriteString("&lt;/p&gt;\n")
		}
		b.WriteString("</description></item>\n")
	}
	b.WriteString("</channel></rss>\n")
	d := &document{identity: b.Bytes(), etag: `"first"`, lastModified: day.Format(http.TimeFormat)}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(d.identity) // into memory
	_ = w.Close()
	d.gzip = packed.Bytes()
	return d
}

// origin is what the caches get the document from.
type origin struct {
	net.Listener
	requests atomic.Int64
}

func startOrigin(d *document) (*origin, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &origin{Listener: l}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:errcheck // ends with the listener
		o.requests.Add(1)
		h := w.Header()
		h.Set("Content-Type", "application/rss+xml")
		h.Set("Cache-Control", "max-age=86400")
		h.Set("Vary", "Accept-Encoding")
		h.Set("Last-Modified", d.lastModified)
		h.Set("ETag", d.etag)
		body := d.identity
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("ETag", strings.TrimSuffix(d.etag, `"`)+`-packed"`)
			h.Set("Content-Encoding", "gzip")
			body = d.gzip
		}
		h.Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body)
	}))
	return o, nil
}
