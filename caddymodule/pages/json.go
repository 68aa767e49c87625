// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"encoding/json"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// wantsJSON reports whether JSON is preferred to a page (RFC 9110 section 12.5.1).
// A browser names HTML and not JSON; a program that accepts anything gets HTML.
func (v *visit) wantsJSON() bool {
	if !v.hasJSON {
		return false
	}
	v.w.Header().Set("Vary", "Accept")
	var weights [2]int
	httpfield.Weights(v.r.Header.Values("Accept"), []string{"application/json", "text/html"}, weights[:])
	return weights[0] > weights[1]
}

func (v *visit) json(status int, value any) error {
	body, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	v.send(status, "application/json", append(body, '\n'))
	return nil
}

// answer sends a record: as JSON, or as the page of that name.
func (p *Pages) answer(v *visit, code int, name, title string, record, content any) error {
	if v.wantsJSON() {
		return v.json(code, record)
	}
	return p.render(v, code, name, title, content)
}
