// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/upstream"
)

// Provision provisions an app without starting it, for a test of one handler. Its
// engine, which ends with the test, polls through the client. There may be more
// members of the app's JSON, each with a comma before it.
func Provision(t testing.TB, client *upstream.Client, members string) (caddy.Context, *poller.App) {
	t.Helper()
	dir := t.TempDir()
	release, err := poller.Adopt(dir, poller.Parts{Origin: client})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // the app holds on to it
		if err := release(); err != nil {
			t.Error(err)
		}
	}()
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin:   &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}}}},
		AppsRaw: caddy.ModuleMap{"pollard": json.RawMessage(fmt.Sprintf(`{"store":{"engine":"sqlite","directory":%q},"jitter":0%s}`, dir, members))},
	})
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("pollard")
	if err != nil {
		t.Fatal(err)
	}
	a := app.(*poller.App)
	t.Cleanup(func() {
		if err := a.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return ctx, a
}
