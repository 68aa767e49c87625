// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// A lease that a hub does not name is defaultLease, and none is longer than maxLease.
	defaultLease = 24 * time.Hour
	maxLease     = 14 * 24 * time.Hour
	// deniedFor is how long a hub is left alone that has denied a subscription.
	deniedFor = 7 * 24 * time.Hour
	// maxChallenge is the longest challenge, in bytes.
	maxChallenge = 1 << 10
	// pushTimeout is how long a hub may take to send a push.
	pushTimeout = 10 * time.Second
)

// ServeHub answers a request to the callback with a token: the question whether a request to a hub
// was ours, or a push. If hubs are not asked for anything (any more), it reports false for tokens
// that are not of this store, and has written nothing.
func (c *Cache) ServeHub(w http.ResponseWriter, r *http.Request, token string) bool {
	off := c.settings.Load().WebSub == ""
	f, p, key, err := c.subscribed(r.Context(), token)
	switch {
	case err != nil:
		refuseHub(w, http.StatusServiceUnavailable, "the store cannot be read")
	case f == nil && off:
		return false
	case f == nil:
		refuseHub(w, http.StatusNotFound, "no such subscription")
	case off:
		refuseHub(w, http.StatusGone, "subscriptions are off")
	default:
		f = f.use()
		defer f.leave()
		switch r.Method {
		case http.MethodGet:
			f.answerHub(w, r, p, key)
		case http.MethodPost:
			f.takePush(w, r, p, key)
		default:
			w.Header().Set("Allow", "GET, POST")
			refuseHub(w, http.StatusMethodNotAllowed, "a callback takes GET and POST")
		}
	}
	return true
}

func refuseHub(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, reason, status)
}

// subscribed finds the feed and the subscription of a token. The feed is nil if there is none. The
// record says it, as another node may have made the request.
func (c *Cache) subscribed(ctx context.Context, token string) (f *Feed, p feedstate.Subscription, key hubKey, err error) {
	id, ok := idOfToken(token)
	if !ok {
		return nil, p, nil, nil
	}
	if err := c.table.loading.Acquire(ctx, 1); err != nil {
		return nil, p, nil, err
	}
	records, err := c.store.Lookup(c.life, []store.ID{id}) // a call that is cancelled costs a connection to PostgreSQL
	c.table.loading.Release(1)
	if err != nil || len(records) == 0 {
		return nil, p, nil, err
	}
	s := feedstate.FromRecord(records[0], c.elapsed())
	if s.Feed.Push.Mode == "" {
		return nil, p, nil, nil
	}
	if key, err = c.secret(ctx); err != nil {
		return nil, p, nil, err
	}
	p = c.subscription(id, s)
	if ended := s.Feed.Push.Ended; ended.Mode != "" && hmac.Equal([]byte(token), []byte(key.token(id, ended))) {
		p = feedstate.Subscription{HubRequest: ended, State: feedstate.HubState{Answered: ended.At}}
	} else if !hmac.Equal([]byte(token), []byte(key.token(id, p.HubRequest))) {
		return nil, p, nil, nil
	}
	f, err = c.Feed(ctx, records[0].URL)
	return f, p, key, err
}

// answerHub answers whether a request to the hub was ours (W3C WebSub section 5.3), and takes denials
// (section 5.2). Any client may ask, so only the right answer has something of the question.
func (f *Feed) answerHub(w http.ResponseWriter, r *http.Request, p feedstate.Subscription, key hubKey) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	one := func(name string) string {
		if values := query[name]; len(values) == 1 {
			return values[0]
		}
		return ""
	}
	now, mode, challenge := f.cache.now().Round(0).UTC(), one("hub.mode"), one("hub.challenge")
	if now.Before(p.At) {
		now = p.At // by the clock of another node
	}
	update := feedstate.HubState{For: key.mark(f.id, p.HubRequest), Answered: now, Lease: now}
	switch {
	case err != nil, one("hub.topic") != p.Topic:
	case mode == "denied" && p.Mode == feedstate.ModeSubscribe:
		if !p.State.Wait.After(now) {
			update.Refused, update.Wait, update.Why = now, now.Add(deniedFor), "the hub has denied it"
			if why := one("hub.reason"); why != "" {
				update.Why += ": " + feedurl.RedactText(feedurl.Short(why, 100))
			}
			f.logHub("hub has denied a subscription", p)
			if f.setHub(update); p.Live(now) {
				f.pollPushed(update) // what it has not announced any more
			}
		}
		w.WriteHeader(http.StatusOK)
		return
	case mode == p.Mode && now.Sub(p.At) < feedstate.ConfirmedWithin && challenge != "" && len(challenge) <= maxChallenge:
		if p.State.Answered.Before(p.At) { // it may ask twice
			if mode == feedstate.ModeSubscribe {
				update.Lease = now.Add(leaseOf(one("hub.lease_seconds")))
			}
			f.logHub("hub has confirmed a request", p)
			f.setHub(update)
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		io.WriteString(w, challenge) //nolint:errcheck // the hub may be gone
		return
	}
	refuseHub(w, http.StatusNotFound, "there is no such request")
}

func (f *Feed) logHub(message string, p feedstate.Subscription) {
	f.cache.log().Info(message, f.cache.urlField(f.key.String()), zap.String("hub", feedurl.Redact(p.Hub)), zap.String("mode", p.Mode))
}

func leaseOf(text string) time.Duration {
	seconds, ok := policy.ParseNumber(text)
	if !ok || seconds == 0 {
		return defaultLease
	}
	return time.Duration(min(seconds, int64(maxLease/time.Second))) * time.Second
}

// takePush answers a push (W3C WebSub section 7). Its body is only read to check the signature. The
// answer does not say whether that is right (section 7.1.1).
func (f *Feed) takePush(w http.ResponseWriter, r *http.Request, p feedstate.Subscription, key hubKey) {
	now := f.cache.now().Round(0).UTC()
	if !p.Live(now) {
		refuseHub(w, http.StatusGone, "there is no subscription")
		return
	}
	mac, want := signatureOf(r.Header["X-Hub-Signature"], key.secret(f.id, p.HubRequest))
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(pushTimeout)) // other servers have their own limits
	_, err := io.Copy(mac, http.MaxBytesReader(w, r.Body, f.rules().MaxBody))
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		refuseHub(w, http.StatusRequestEntityTooLarge, "the push is larger than max_body")
		return
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuseHub(w, http.StatusRequestTimeout, "the push did not arrive in time")
		return
	case err != nil:
		refuseHub(w, http.StatusBadRequest, "the push broke off")
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if want == nil || !hmac.Equal(mac.Sum(nil), want) {
		f.ignored.Add(1)
		f.cache.log().Debug("push without a valid signature", f.cache.urlField(f.key.String()))
		return
	}
	f.pollPushed(feedstate.HubState{For: key.mark(f.id, p.HubRequest), Pushed: now})
}

// signatureOf reads an X-Hub-Signature field: the method and the sum in hexadecimal. The sum is nil
// if there is not one field with a method that is known.
func signatureOf(fields []string, secret string) (mac hash.Hash, want []byte) {
	method, sum := "", ""
	if len(fields) == 1 {
		method, sum, _ = strings.Cut(fields[0], "=")
	}
	known := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}[method]
	want, err := hex.DecodeString(sum)
	if known == nil || err != nil || sum == "" {
		return sha256.New(), nil
	}
	return hmac.New(known, []byte(secret)), want
}

// pushFloor is the time between two polls that pushes cause.
const pushFloor = 5 * time.Minute

// pollPushed has the feed polled because of a push, unless a push has caused a poll in the last pushFloor: then it is
// polled after that. A feed that fails keeps its own schedule, and of one that points its target is the feed.
func (f *Feed) pollPushed(h feedstate.HubState) {
	f.note(h)
	f.setHub(h)
	s := f.state.Load()
	if s.Points != "" {
		return
	}
	ctx, cancel := context.WithTimeout(f.cache.open, hubTimeout)
	defer cancel()
	in := min(s.Feed.Push.Polled.Add(pushFloor).Sub(f.cache.now()), pushFloor)
	if f.sent() { // perhaps for the push before
		in = pushFloor
	}
	_ = f.poke(ctx, store.Poke{In: in, Patient: true})
}

// pushed reports whether the hub has sent a push since the last poll that one has caused.
func (f *Feed) pushed(s *feedstate.State) bool {
	return s.Feed.Push.State.With(f.hub.Load()).Pushed.After(s.Feed.Push.Polled)
}
