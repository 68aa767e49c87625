// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// HubRequest is a request that a hub received.
type HubRequest struct {
	Time   time.Time
	URL    string
	Header http.Header
	Form   url.Values
}

// Hub is a WebSub hub that does only what a test has it do. It is an [http.Handler] for servers and an
// [http.RoundTripper] for clients.
type Hub struct {
	// Callbacks is where its own requests go.
	Callbacks http.Handler
	// Answer returns the response to a request. Nil: 202, and Confirm before it.
	Answer func(r HubRequest) Answer

	mu       sync.Mutex // guards requests
	requests []HubRequest
}

// Requests returns the requests so far.
func (h *Hub) Requests() []HubRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Last returns the last request.
func (h *Hub) Last() HubRequest {
	all := h.Requests()
	return all[len(all)-1]
}

func (h *Hub) respond(r *http.Request) Answer {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	request := HubRequest{time.Now(), r.URL.String(), r.Header.Clone(), form}
	h.mu.Lock()
	h.requests = append(h.requests, request)
	h.mu.Unlock()
	if h.Answer != nil {
		return h.Answer(request)
	}
	h.Confirm(request)
	return Status(http.StatusAccepted)
}

func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.respond(r).write(w, r) }

// RoundTrip implements [http.RoundTripper].
func (h *Hub) RoundTrip(r *http.Request) (*http.Response, error) { return h.respond(r).response(r) }

// Ask sends a GET to a callback with these parameters.
func (h *Hub) Ask(callback string, parameters url.Values) *httptest.ResponseRecorder {
	return h.send(httptest.NewRequest(http.MethodGet, callback+"?"+parameters.Encode(), nil))
}

// Confirm asks whether a request was the subscriber's, with a lease of what it asked for.
func (h *Hub) Confirm(r HubRequest) *httptest.ResponseRecorder {
	return h.Ask(r.Form.Get("hub.callback"), url.Values{
		"hub.mode": r.Form["hub.mode"], "hub.topic": r.Form["hub.topic"], "hub.lease_seconds": r.Form["hub.lease_seconds"],
		"hub.challenge": {"challenge"},
	})
}

// Push sends a push with a valid signature.
func (h *Hub) Push(r HubRequest, body string) *httptest.ResponseRecorder {
	mac := hmac.New(sha256.New, []byte(r.Form.Get("hub.secret")))
	io.WriteString(mac, body)
	return h.Deliver(r, body, "sha256="+hex.EncodeToString(mac.Sum(nil)))
}

// Deliver sends a push with these signatures.
func (h *Hub) Deliver(r HubRequest, body string, signatures ...string) *httptest.ResponseRecorder {
	push := httptest.NewRequest(http.MethodPost, r.Form.Get("hub.callback"), strings.NewReader(body))
	push.Header["X-Hub-Signature"] = signatures
	return h.send(push)
}

func (h *Hub) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.Callbacks.ServeHTTP(w, r)
	return w
}
