// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

// Status returns the status of the feed with a key, and the body of its version if it
// has at most most bytes. It returns [cache.ErrUnknownFeed] if the feed is not known.
func (e *Engine) Status(ctx context.Context, c *cache.Cache, key string, most int) (status.Feed, []byte, error) {
	f, body, err := c.Details(ctx, key, most)
	if err != nil {
		return status.Feed{}, nil, err
	}
	f.Subscribers = int64(e.Subscribers(key))
	f.Readers = e.readersOf(ctx, key)
	return e.complete(f), body, nil
}

// complete completes the status of a feed for the operator.
func (e *Engine) complete(f status.Feed) status.Feed {
	f.Address = e.addressOf(string(f.URL))
	return Complete(f)
}

// Complete completes the status of a feed from the cache with the URL that readers request
// and with the reason for its next poll.
func Complete(f status.Feed) status.Feed {
	f.Shield = strings.HasPrefix(string(f.URL), ShieldCommon)
	f.URL = shownURL(string(f.URL))
	f.Reason = f.Explain(time.Now(), time.UTC)
	return f
}

// maxReaders bounds the readers of a feed that are shown.
const maxReaders = 20

func (e *Engine) readersOf(ctx context.Context, key string) []status.Reader {
	return e.Readers(ctx, readers.ReportOptions{Feed: key, Limit: maxReaders, Changes: e.Changes}).Readers
}
