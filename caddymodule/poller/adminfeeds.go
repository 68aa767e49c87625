// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"encoding/json"
	"net/http"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
)

// listPage is how many feeds are read from the store at a time.
const listPage = 500

// listFeeds writes feeds page by page, so that memory does not depend on their number.
func listFeeds(w http.ResponseWriter, r *http.Request, e *Engine, c *cache.Cache) error {
	list, after, more, err := c.Statuses(r.Context(), store.ID{}, listPage)
	if err != nil {
		return apiErrorOf(w, err)
	}
	w.Header().Set("Content-Type", "application/json")
	separator := "[\n\t"
	for {
		for _, feed := range list {
			body, err := json.MarshalIndent(e.complete(feed), "\t", "\t")
			if err != nil {
				return apiErrorOf(w, err)
			}
			if _, err := w.Write(append([]byte(separator), body...)); err != nil {
				return nil // the client is gone
			}
			separator = ",\n\t"
		}
		if !more {
			break
		}
		if list, after, more, err = c.Statuses(r.Context(), after, listPage); err != nil {
			panic(http.ErrAbortHandler) // so that the client sees that the list is incomplete
		}
	}
	end := "\n]\n"
	if separator[0] == '[' {
		end = "[]\n"
	}
	_, _ = w.Write([]byte(end))
	return nil
}
