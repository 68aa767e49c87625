// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/caddymodule/door"
)

// loopField is the field by which requests are recognized that come back (RFC 8586).
const loopField = "Cdn-Loop"

// loop recognizes the requests that a shield has handed to its origin.
type loop struct {
	id     atomic.Pointer[string] // of the shield, which strangers cannot make; nil: not known yet
	last   atomic.Int64           // when a request came back, in Unix seconds; 0: never
	logged rate.Sometimes
}

// loopID returns the ID that stands for the shield in [loopField], the same on all nodes; "" before the
// store is open.
func (s *Shield) loopID() string {
	if id := s.loop.id.Load(); id != nil {
		return *id
	}
	mark := s.engine.Mark("loop " + s.identity)
	if mark == "" {
		return ""
	}
	id := "id=" + base64.RawURLEncoding.EncodeToString([]byte(mark[:12]))
	s.loop.id.Store(&id)
	return id
}

// markLoop adds the shield to the field of a request to its origin.
func (s *Shield) markLoop(h http.Header) {
	if id := s.loopID(); id != "" {
		h.Add(loopField, "pollard; "+id)
	}
}

// cameBack reports whether the shield has handed a request to its origin before.
func (s *Shield) cameBack(h http.Header) bool {
	passed := h[loopField]
	if passed == nil {
		return false
	}
	id := s.loopID()
	return id != "" && strings.Contains(strings.Join(passed, ","), id)
}

// refuseLoop answers a request that would come back again.
func (s *Shield) refuseLoop(w http.ResponseWriter, r *door.Request) error {
	s.loop.last.Store(time.Now().Unix())
	s.loop.logged.Do(func() {
		s.log.Error("the origin block leads back to its own shield: write the address of the site itself there", zap.String("host", r.Host), zap.Strings("upstreams", s.upstreams))
	})
	return s.refuse(w, r, "", &door.Refusal{
		Status: http.StatusLoopDetected, Reason: fmt.Sprintf("the origin block of feed_shield at %s leads back to the shield: it must lead to the site itself", r.Host),
	})
}

// loopNotice is the notice on the page, or "".
func (s *Shield) loopNotice() string {
	if s.loop.last.Load() == 0 {
		return ""
	}
	return "Your origin block leads back to this shield (" + strings.Join(s.upstreams, ", ") + "), so feeds get status 508. Write the address of the site itself into it."
}
