// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// connectTimeout is how long the admin endpoint has to accept a connection.
const connectTimeout = 3 * time.Second

// asking are the flags of commands that ask a running instance.
type asking struct {
	address string
	json    bool
}

func (a *asking) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.address, "address", "", "address of the running instance's admin endpoint; default: "+caddy.DefaultAdminListen)
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON document")
}

// instance is a running Pollard, seen through Caddy's admin endpoint.
type instance struct {
	address string // for people
	origin  string // of the URLs of requests
	socket  bool   // it is behind a unix socket
	client  *http.Client
}

// instance prepares to ask the running instance, without connecting to it.
func (a *asking) instance() (*instance, error) {
	given := strings.TrimSuffix(strings.TrimPrefix(a.address, "http://"), "/")
	address, err := caddycmd.DetermineAdminAPIAddress(given, nil, "", "")
	if err != nil {
		return nil, err
	}
	parsed, err := caddy.ParseNetworkAddressWithDefaults(address, "tcp", 2019)
	if err != nil || parsed.PortRangeSize() > 1 || parsed.IsFdNetwork() {
		return nil, wrongUsage("--address %q: expected one such as %s or unix//run/pollard/admin.sock", address, caddy.DefaultAdminListen)
	}
	i := &instance{address: address, origin: "http://" + parsed.JoinHostPort(0)}
	target := parsed.JoinHostPort(0)
	if parsed.IsUnixNetwork() {
		i.origin, i.socket = "http://127.0.0.1", true
		target, _, _ = strings.Cut(parsed.Host, "|") // behind it are the socket's permissions
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	i.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, parsed.Network, target)
		},
	}}
	return i, nil
}

// refused is an error that the instance answered with.
type refused struct {
	status  int
	message string
}

func (e *refused) Error() string { return e.message }

// do sends a request about the feed with a name or, if that is empty, about all feeds. A name is the
// feed's URL, its path at a gateway, or its address there. The caller closes the body. A feed's URL
// may have credentials, so it is sent as a form: Caddy logs the URLs of admin requests.
func (i *instance) do(ctx context.Context, path, name string) (*http.Response, error) {
	if name != "" && !strings.HasPrefix(name, "/") {
		u, err := feedArgument(name)
		if err != nil {
			return nil, err
		}
		name = u.String()
	}
	method, form := http.MethodGet, ""
	if name != "" {
		method, form = http.MethodPost, url.Values{"url": {name}}.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, i.origin+path, strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	if !i.socket { // there Caddy accepts no Origin
		r.Header.Set("Origin", i.origin)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := i.client.Do(r)
	if err != nil {
		if opErr, ok := errors.AsType[*net.OpError](err); ok && opErr.Op == "dial" {
			return nil, fmt.Errorf("no running instance at %s (%w): start one with `pollard run`, or give its admin endpoint with --address", i.address, opErr.Err)
		}
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL in it says nothing new
		}
		return nil, fmt.Errorf("asking the instance at %s: %w", i.address, err)
	}
	if resp.StatusCode < 400 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, i.refusal(resp)
}

// show sends a request, and prints the response: as it is for --json, otherwise decoded into a value and
// by text, which prints that.
func (a *asking) show(ctx context.Context, out io.Writer, path, name string, into any, text func() error) error {
	i, err := a.instance()
	if err != nil {
		return err
	}
	resp, err := i.do(ctx, path, name)
	if err != nil {
		return err
	}
	if a.json {
		return copyJSON(out, resp)
	}
	if err := decodeJSON(resp, into); err != nil {
		return err
	}
	return text()
}

func copyJSON(out io.Writer, resp *http.Response) error {
	defer resp.Body.Close()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("printing the response of the instance: %w", err)
	}
	return nil
}

func (i *instance) refusal(resp *http.Response) error {
	var answer struct {
		Error string `json:"error"`
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // half a message is better than none
	switch err := json.Unmarshal(body, &answer); {
	case err != nil && resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s is a Caddy without Pollard", i.address)
	case err != nil || answer.Error == "":
		return fmt.Errorf("the instance at %s answered %s", i.address, resp.Status)
	}
	return &refused{resp.StatusCode, answer.Error}
}

func isRefused(err error, status int) bool {
	r, ok := errors.AsType[*refused](err)
	return ok && r.status == status
}

// feedArgument returns the URL of a feed. A single word is an error: it may be a host, but is more
// likely a mistake.
func feedArgument(argument string) (feedurl.URL, error) {
	if !strings.ContainsAny(argument, ".:/") {
		return feedurl.URL{}, wrongUsage("%q is no URL: write one such as https://example.com/feed.xml", argument)
	}
	u, err := feedurl.ParseWritten(argument)
	if err != nil && !strings.Contains(argument, ":") {
		u, err = feedurl.Parse("https://" + argument) // a path without its slash, perhaps: the instance says what was meant
	}
	if err != nil {
		return feedurl.URL{}, wrongUsage("%q is %v", argument, err)
	}
	return u, nil
}

func decodeJSON(resp *http.Response, into any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the response of the instance: %w", err)
	}
	return nil
}
