// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// lookAgain is how often a subscription list is looked at for changes, at most.
const lookAgain = 10 * time.Second

// subscriptions are the feeds of a subscription list, which is read again when its
// file has changed and somebody asks. What cannot be read changes nothing.
type subscriptions struct {
	path string
	log  *zap.Logger

	feeds  atomic.Pointer[map[string]bool] // by canonical URL
	looked atomic.Int64                    // when the file was looked at last, in Unix nanoseconds
	state  atomic.Pointer[fileState]       // as it was read last
}

// fileState is by what a change of a file is noticed.
type fileState struct {
	modified time.Time
	size     int64
}

// readSubscriptions reads a list for the first time.
func readSubscriptions(path string, log *zap.Logger) (*subscriptions, error) {
	s := &subscriptions{path: path, log: log}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err // names the path already
	}
	if err := s.read(info); err != nil {
		return nil, err
	}
	s.looked.Store(time.Now().UnixNano())
	return s, nil
}

// has reports whether the list has a feed.
func (s *subscriptions) has(canonical string) bool {
	if s == nil {
		return false
	}
	listed := (*s.feeds.Load())[canonical]
	now, looked := time.Now(), s.looked.Load()
	if now.UnixNano()-looked < int64(lookAgain) || !s.looked.CompareAndSwap(looked, now.UnixNano()) {
		return listed
	}
	if listed {
		go s.look() // nobody waits for it
		return true
	}
	s.look() // it may have been added
	return (*s.feeds.Load())[canonical]
}

// look reads the list if it has changed.
func (s *subscriptions) look() {
	defer func() {
		if p := recover(); p != nil { // it reads what anybody may have written
			s.log.Error("reading the subscription list panicked", zap.String("opml", s.path), zap.Any("panic", p))
		}
	}()
	info, err := os.Stat(s.path)
	if err == nil && *s.state.Load() == (fileState{info.ModTime(), info.Size()}) {
		return
	}
	if err == nil {
		err = s.read(info)
	}
	if err != nil {
		s.log.Warn("subscription list cannot be read again, the last one stays in force", zap.String("opml", s.path), zap.Error(err))
		return
	}
	s.log.Info("subscription list has changed and was read again", zap.String("opml", s.path), zap.Int("feeds", len(*s.feeds.Load())))
}

func (s *subscriptions) read(info os.FileInfo) error {
	// Whatever comes of it, the same file is not read twice.
	s.state.Store(&fileState{info.ModTime(), info.Size()})
	feeds, skipped, err := readOPMLFile(s.path)
	if err != nil {
		return err
	}
	if skipped > 0 {
		s.log.Warn("outlines without a URL that can be polled were passed over", zap.String("opml", s.path), zap.Int("outlines", skipped))
	}
	listed := make(map[string]bool, len(feeds))
	for _, feed := range feeds {
		listed[feed] = true
	}
	s.feeds.Store(&listed)
	return nil
}
