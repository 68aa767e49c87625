// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

// Reader is a User-Agent family, or one reader of a feed.
type Reader struct {
	Family           string   `json:"family"`
	UserAgent        string   `json:"user_agent"` // of the latest request
	Network          string   `json:"network,omitempty"`
	Token            string   `json:"token,omitempty"` // its name
	Feeds            int64    `json:"feeds,omitempty"`
	Subscribers      int64    `json:"subscribers,omitempty"` // as declared in the User-Agent
	Requests         int64    `json:"requests"`
	Bytes            int64    `json:"bytes"`
	ShareConditional float64  `json:"share_conditional"`  // 0 to 1, of its requests
	MedianGap        Seconds  `json:"median_gap_seconds"` // between two requests; 0: not known
	Score            string   `json:"score"`              // A to F; "-": too few requests
	Reasons          []string `json:"reasons,omitempty"`  // for the score
}
