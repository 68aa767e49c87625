// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard" // the directives of Caddyfiles
)

func init() {
	caddy.RegisterModule(failing{})
	// Listeners on void get no connections. Unlike sockets they let the clock of a bubble go on.
	caddy.RegisterNetwork("void", func(context.Context, string, string, string, uint, net.ListenConfig) (any, error) {
		return new(Network).Listen("void"), nil
	})
}

// failing is an app that does not start.
type failing struct{}

func (failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "failing", New: func() caddy.Module { return failing{} }}
}
func (failing) Start() error { return errors.New("failing as it should") }
func (failing) Stop() error  { return nil }

// Get sends a request to the server of the running configuration.
func Get(t *testing.T, target, client string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr = net.JoinHostPort(client, "1234")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	app.(*caddyhttp.App).Servers["srv0"].ServeHTTP(w, r)
	return w
}

// Adapt makes JSON of a Caddyfile.
func Adapt(t *testing.T, caddyfile string) ([]byte, error) {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	return config, err
}

// Server is a server of the app http, by its number.
func Server(app any, number int) http.Handler {
	return app.(*caddyhttp.App).Servers[fmt.Sprint("srv", number)]
}
