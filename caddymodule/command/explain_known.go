// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/status"
)

// askTimeout is how long an instance has to say what it knows, before the origin is
// asked in its place.
const askTimeout = 10 * time.Second

// explainKnown explains a feed of the running instance, without a poll. It reports false
// if there is no instance or it does not know the feed. With --address, it is an error if
// there is no instance.
func (o *explainOptions) explainKnown(ctx context.Context, argument string, out io.Writer) (known bool, err error) {
	i, err := o.instance()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := i.about(ctx, "/pollard/feeds", argument)
	if _, wrong := errors.AsType[*usage](err); wrong || o.address != "" && err != nil && !isUnknown(err) {
		return false, err
	}
	if err != nil {
		return false, nil
	}
	var f status.Feed
	if err := decodeJSON(resp, &f); err != nil {
		return false, err
	}
	e := explanationOf(f)
	if o.json {
		err = writeJSON(out, e)
	} else {
		err = writeFeed(out, f, time.Now())
	}
	if err != nil {
		return true, fmt.Errorf("writing the explanation: %w", err)
	}
	if e.Problem != "" {
		return true, errors.New(e.Problem)
	}
	return true, nil
}

// explanationOf returns the JSON form for a feed of an instance. The format comes from
// the content type.
func explanationOf(f status.Feed) explanation {
	e := explanation{Hints: f.Hints, Decision: summarize(f.Decision()), Push: f.Push}
	if f.Version == 0 {
		e.Problem = f.LastError
		return e
	}
	e.Entries = &f.Entries
	for _, format := range []string{"rss", "atom", "json"} {
		if strings.Contains(f.ContentType, format) {
			e.Format = format
		}
	}
	return e
}
