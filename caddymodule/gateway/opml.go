// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"io"
	"os"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
)

const maxOPMLFeeds = 100_000

// readOPMLFile returns the canonical URLs of the feeds of a subscription list, and the number of
// outlines that were skipped because their URL cannot be polled.
func readOPMLFile(path string) (feeds []string, skipped int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err // names the path already
	}
	defer f.Close()
	list, err := io.ReadAll(io.LimitReader(f, opml.MaxSize+1))
	if err == nil {
		feeds, skipped, err = feedsOfOPML(list)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return feeds, skipped, nil
}

func feedsOfOPML(list []byte) (feeds []string, skipped int, err error) {
	urls, err := opml.URLs(list)
	if err != nil {
		return nil, 0, err
	}
	listed := make(map[string]bool)
	for _, raw := range urls {
		feed, err := feedurl.Parse(raw)
		if err != nil {
			skipped++
			continue
		}
		if listed[feed.String()] {
			continue
		}
		if len(feeds) == maxOPMLFeeds {
			return nil, 0, fmt.Errorf("it lists more than %d feeds", maxOPMLFeeds)
		}
		listed[feed.String()] = true
		feeds = append(feeds, feed.String())
	}
	return feeds, skipped, nil
}
