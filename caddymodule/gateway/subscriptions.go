// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
)

// checkInterval is the least time between two checks whether a subscription list has changed.
const checkInterval = 10 * time.Second

// subscriptions are the feeds of a subscription list. If the file has changed, the next request
// reads it again. A file that cannot be read changes nothing.
type subscriptions struct {
	path string
	log  *zap.Logger

	feeds   atomic.Pointer[map[string]bool] // by canonical URL
	origins atomic.Pointer[map[string]bool] // of these feeds
	all     atomic.Pointer[[]opml.Outline]  // with canonical URLs
	checked atomic.Int64                    // when the file was checked last, in Unix nanoseconds
	state   atomic.Pointer[string]          // of the file when it was read last: time and size
}

// readSubscriptions reads a list for the first time.
func readSubscriptions(path string, log *zap.Logger) (*subscriptions, error) {
	s := &subscriptions{path: path, log: log}
	s.checked.Store(time.Now().UnixNano())
	_, err := s.read()
	return s, err
}

func (s *subscriptions) has(canonical string) bool {
	if s == nil {
		return false
	}
	listed := (*s.feeds.Load())[canonical]
	now, checked := time.Now(), s.checked.Load()
	if now.UnixNano()-checked < int64(checkInterval) || !s.checked.CompareAndSwap(checked, now.UnixNano()) {
		return listed
	}
	if listed {
		go s.refresh() // the request need not wait
		return true
	}
	s.refresh() // it may have been added
	return (*s.feeds.Load())[canonical]
}

// hasAt reports whether a feed of the list is at an origin.
func (s *subscriptions) hasAt(origin string) bool {
	if s == nil {
		return false
	}
	s.has("") // reads a changed list
	return (*s.origins.Load())[origin]
}

// outlines returns the feeds of the list that keep accepts, in their folders.
func (s *subscriptions) outlines(keep func(feed *opml.Outline) bool) []opml.Outline {
	if s == nil {
		return nil
	}
	s.has("") // reads a changed list
	return opml.Pruned(*s.all.Load(), keep)
}

func (s *subscriptions) refresh() {
	defer func() {
		if p := recover(); p != nil { // the parser reads foreign input
			s.log.Error("reading the subscription list panicked", zap.String("opml", s.path), zap.Any("panic", p))
		}
	}()
	switch changed, err := s.read(); {
	case err != nil:
		s.log.Warn("cannot read the changed subscription list; the previous one stays in use", zap.String("opml", s.path), zap.Error(err))
	case changed:
		s.log.Info("read the changed subscription list", zap.String("opml", s.path), zap.Int("feeds", len(*s.feeds.Load())))
	}
}

// read reads the list, and reports whether it has changed. A file that cannot be read is not read
// again until it changes.
func (s *subscriptions) read() (changed bool, err error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return false, err // names the path already
	}
	state := fmt.Sprint(info.ModTime(), info.Size())
	if before := s.state.Swap(&state); before != nil && *before == state {
		return false, nil
	}
	all, feeds, skipped, err := readOPMLFile(s.path)
	if err != nil {
		return false, err
	}
	if skipped > 0 {
		s.log.Warn("skipped outlines without a URL that can be polled", zap.String("opml", s.path), zap.Int("outlines", skipped))
	}
	origins := make(map[string]bool)
	for feed := range feeds {
		origins[feedurl.MustParse(feed).Origin()] = true
	}
	s.origins.Store(&origins)
	if len(feeds) == 0 {
		s.log.Warn("the subscription list has no feeds, so only those that `allow` covers can be requested by URL", zap.String("opml", s.path))
	}
	s.feeds.Store(&feeds)
	s.all.Store(&all)
	return true, nil
}

const maxOPMLFeeds = 100_000

// readOPMLFile returns the feeds of a subscription list in their folders, and by canonical URL, and the
// number of outlines that were skipped because their URL cannot be polled.
func readOPMLFile(path string) (all []opml.Outline, feeds map[string]bool, skipped int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, 0, err // names the path already
	}
	defer f.Close()
	list, err := io.ReadAll(io.LimitReader(f, opml.MaxSize+1))
	if err == nil {
		all, err = opml.Outlines(list)
	}
	if err != nil {
		return nil, nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	feeds = make(map[string]bool)
	all = opml.Pruned(all, func(o *opml.Outline) bool {
		feed, err := feedurl.ParseWritten(o.URL)
		if err != nil {
			skipped++
			return false
		}
		o.URL = feed.String()
		feeds[o.URL] = true
		return true
	})
	if len(feeds) > maxOPMLFeeds {
		return nil, nil, 0, fmt.Errorf("reading %s: it lists more than %d feeds", path, maxOPMLFeeds)
	}
	return all, feeds, skipped, nil
}
