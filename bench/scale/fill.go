// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/upstream"
)

// hot is how many feeds of a store are not due for a day: readers ask for them.
const hot = 200

// url is the address of a feed. Each has a host of its own: all of 127.0.0.0/8 is this
// machine.
func (n *node) url(i int) string {
	at := i + 1<<8 + 1
	return fmt.Sprintf("http://127.%d.%d.%d:%s/weblog/feeds/index.xml", 1+at>>16, at>>8&255, at&255, port)
}

// fill makes the store.
func (n *node) fill() {
	rig.Check(os.MkdirAll(n.dir, 0o755))
	began := time.Now()
	templates := n.templates()
	var db interface {
		store.Store
		io.Closer
	}
	if n.postgres == "" {
		db = rig.Must(sqlite.Open(filepath.Join(n.dir, "store"), sqlite.Options{}))
	} else {
		db = rig.Must(postgres.Open(context.Background(), postgres.Options{URL: n.postgres}))
	}
	const batch = 1000
	for from := 0; from < n.feeds; from += batch {
		var saved []store.Saved
		for i := from; i < min(from+batch, n.feeds); i++ {
			saved = append(saved, n.record(i, &templates[i%len(templates)]))
		}
		rig.Check(db.Restore(context.Background(), saved))
	}
	rig.Check(db.Close())
	n.filling = time.Since(began)
}

// record is the record of a feed: that of a template, under another URL.
func (n *node) record(i int, template *store.Saved) store.Saved {
	s := *template
	s.URL = n.url(i)
	u := rig.Must(feedurl.Parse(s.URL))
	s.Site = u.Site()
	s.ID = store.IDOf(s.URL)
	s.FeedState = bytes.ReplaceAll(template.FeedState, []byte(template.URL), []byte(s.URL))
	s.Asked = time.Duration(rand.Int64N(int64(24 * time.Hour)))
	switch {
	case i < hot || n.polls == 0:
		s.In = 24*time.Hour + time.Duration(rand.Int64N(int64(24*time.Hour)))
	case n.rate > 0:
		s.In = time.Duration(i-hot) * time.Second / time.Duration(n.rate)
	default:
		s.In = time.Duration(rand.Int64N(int64(time.Second))) - time.Second
	}
	return s
}

// templates are records of feeds of several kinds, with some polls behind them, as the
// engine has made them.
func (n *node) templates() (saved []store.Saved) {
	const (
		kinds = 40
		polls = 7 // after eight, the next one is unconditional
		apart = 26 * time.Hour
	)
	ctx := context.Background()
	now := time.Now().Add(-kinds * polls * apart) // the clock of a store never goes back
	clock := func() time.Time { return now }
	db := sqlite.NewMemory(clock)
	origin := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		var kind int
		fmt.Sscanf(r.URL.Host, "template-%d.", &kind)
		body := string(feed(kind, n.body*(60+2*kind)/100, kind))
		fields := []string{"Last-Modified", "Sun, 01 Nov 2026 09:00:00 GMT", "Cache-Control", fmt.Sprintf("max-age=%d", 300*(kind%3))}
		return origintest.Versioned(body, fmt.Sprintf(`"%x-%x"`, kind*7919, len(body)), fields...)
	}}
	client := upstream.New(upstream.WithTransport(origin), upstream.WithClock(clock))
	c := rig.Must(cache.New(cache.Options{Store: db, Origin: client, Now: clock, Suspended: func() time.Duration { return 0 }}))
	defer c.Close()
	for i := range kinds {
		f := rig.Must(c.Feed(ctx, fmt.Sprintf("http://template-%d.example/weblog/feeds/index.xml", i)))
		for range polls {
			f.Ask(0, true)
			rig.Must(f.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), cache.ServeOptions{}))
			now = now.Add(apart)
		}
	}
	for _, r := range rig.Must(db.Records(ctx, store.ID{}, kinds, false)) {
		body := rig.Must(store.ReadBody(ctx, db, r.ID))
		saved = append(saved, store.Saved{Record: r, Body: &body})
	}
	return saved
}

// feed makes a document of about a size. The kinds differ in hints, and the revisions
// of one kind in their title.
func feed(kind, size, revision int) []byte {
	extra := "<description>" + rig.Words(uint64(kind), size) + fmt.Sprintf("</description><ttl>%d</ttl>", 60*(kind%5))
	return []byte(origintest.Document{
		Title: fmt.Sprintf("Weblog %d.%d", kind, revision), Entries: 10, Newest: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC), Extra: extra, Text: "Notes",
	}.String())
}

// size is how many bytes the files of a directory take.
func size(dir string) (total int64) {
	for _, e := range rig.Must(os.ReadDir(dir)) {
		total += rig.Must(e.Info()).Size()
	}
	return total
}
