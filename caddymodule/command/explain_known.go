// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// askTimeout is how long an instance has to say what it knows, before the origin is
// asked in its place.
const askTimeout = 10 * time.Second

// explainKnown explains a feed of the running instance, without a poll. It reports
// false where there is no instance, or none that knows the feed; where an address was
// given, there must be one.
func (o *explainOptions) explainKnown(ctx context.Context, argument string, out io.Writer) (known bool, err error) {
	i, err := o.instance()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := i.doFeed(ctx, http.MethodGet, "/pollard/feeds", argument)
	if _, wrong := errors.AsType[*usage](err); wrong || o.address != "" && err != nil && !isUnknown(err) {
		return false, err
	}
	if err != nil {
		return false, nil
	}
	var a account
	if err := decodeJSON(resp, &a); err != nil {
		return false, err
	}
	e := a.explanation()
	if o.json {
		err = writeJSON(out, e)
	} else {
		err = a.writeText(out, time.Now())
	}
	if err != nil {
		return true, fmt.Errorf("writing the explanation: %w", err)
	}
	if e.Problem != "" {
		return true, errors.New(e.Problem)
	}
	return true, nil
}

// explanation is the JSON form of what an instance knows. It keeps no document, so
// the format is that of the content type.
func (a *account) explanation() explanation {
	e := explanation{Hints: a.Hints, Decision: summarize(a.decision())}
	if a.Version > 0 {
		e.Entries = &a.Entries
		for _, format := range []string{"rss", "atom", "json"} {
			if strings.Contains(a.ContentType, format) {
				e.Format = format
			}
		}
	} else {
		e.Problem = a.LastError
	}
	return e
}
