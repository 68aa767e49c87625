// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// document is the feed that all servers serve.
type document struct {
	identity, gzip []byte
	etag           string
	lastModified   string
}

// documentSize is that of a feed with the full text of some twenty entries, in bytes.
const documentSize = 80_000

// newDocument makes a feed that gzip compresses to a third, like most feeds.
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

// startOrigin serves the document to the caches.
func startOrigin(d *document) (*origintest.Origin, *httptest.Server) {
	o := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		fields := []string{"Cache-Control", "max-age=86400", "Vary", "Accept-Encoding", "Last-Modified", d.lastModified}
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			packed := append(fields, "ETag", strings.TrimSuffix(d.etag, `"`)+`-packed"`, "Content-Encoding", "gzip")
			return origintest.OK(string(d.gzip), packed...)
		}
		return origintest.OK(string(d.identity), append(fields, "ETag", d.etag)...)
	}}
	return o, httptest.NewServer(o)
}
