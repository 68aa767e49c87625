// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// firefox is a window of Firefox, by its own protocol Marionette: commands of WebDriver as JSON, each
// behind its length and a colon.
type firefox struct {
	conn net.Conn
	in   *bufio.Reader
	sent int
}

// openFirefox starts Firefox, and skips the test if it is not installed.
func openFirefox(t *testing.T, n Network) *firefox {
	t.Helper()
	esr, _ := exec.LookPath("firefox-esr")
	other, _ := exec.LookPath("firefox")
	path := cmp.Or(esr, other)
	if path == "" {
		t.Skip("no Firefox is installed: apt-get install firefox-esr")
	}
	profile := t.TempDir()
	prefs := map[string]any{
		"marionette.port": 0, "network.dns.localDomains": strings.Join(n.Names, ","), "network.socket.forcePort": "80=" + n.HTTP,
		"network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false, "app.update.enabled": false,
		"dom.security.https_first": false, "datareporting.policy.dataSubmissionEnabled": false, "browser.download.always_ask_before_handling_new_types": false,
		"browser.download.folderList": 2, "browser.download.dir": t.TempDir(), "remote.prefs.recommended": true,
	}
	var lines strings.Builder
	for name, value := range prefs {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "user_pref(%q, %s);\n", name, text)
	}
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // a busy machine takes its time
	command := exec.CommandContext(ctx, path, "--headless", "--marionette", "--no-remote", "--profile", profile)
	command.Env = append(os.Environ(), "HOME="+profile)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = command.Wait() })
	f := &firefox{conn: dialMarionette(ctx, t, filepath.Join(profile, "MarionetteActivePort"))}
	t.Cleanup(func() { f.conn.Close() })
	f.in = bufio.NewReader(f.conn)
	if _, err := f.read(); err != nil { // its greeting
		t.Fatal(err)
	}
	f.call(t, "WebDriver:NewSession", map[string]any{"acceptInsecureCerts": true})
	return f
}

// dialMarionette connects to the port that Firefox writes into a file once it listens.
func dialMarionette(ctx context.Context, t *testing.T, file string) net.Conn {
	t.Helper()
	for {
		port, _ := os.ReadFile(file)
		if conn, err := net.Dial("tcp", "127.0.0.1:"+strings.TrimSpace(string(port))); len(port) > 0 && err == nil {
			return conn
		}
		select {
		case <-ctx.Done():
			t.Fatal("Firefox does not listen")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (f *firefox) read() ([]byte, error) {
	length, err := f.in.ReadString(':')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
	if err != nil {
		return nil, err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(f.in, text)
	return text, err
}

// try sends a command and returns its result, or Firefox's error.
func (f *firefox) try(t *testing.T, command string, parameters any) (json.RawMessage, error) {
	t.Helper()
	f.sent++
	text, err := json.Marshal([]any{0, f.sent, command, parameters})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(f.conn, "%d:%s", len(text), text); err != nil {
		t.Fatal(err)
	}
	if text, err = f.read(); err != nil {
		t.Fatal(err)
	}
	var answer [4]json.RawMessage // its kind, the number of the command, an error, the result
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	if string(answer[2]) != "null" {
		return nil, fmt.Errorf("%s: %.300s", command, answer[2])
	}
	return answer[3], nil
}

func (f *firefox) call(t *testing.T, command string, parameters any) json.RawMessage {
	t.Helper()
	result, err := f.try(t, command, parameters)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (f *firefox) Open(t *testing.T, address string) {
	t.Helper()
	f.call(t, "WebDriver:Navigate", map[string]string{"url": address})
}

// find returns the reference of an element, once it is there: Firefox itself waits in the page of the time.
func (f *firefox) find(t *testing.T, selector string) (id string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		var found struct{ Value map[string]string }
		result, err := f.try(t, "WebDriver:FindElement", map[string]string{"using": "css selector", "value": selector})
		if err == nil {
			err = json.Unmarshal(result, &found)
		}
		for _, id = range found.Value {
			return id
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

func (f *firefox) Choose(t *testing.T, selector, file string) {
	t.Helper()
	f.call(t, "WebDriver:ElementSendKeys", map[string]string{"id": f.find(t, selector), "text": file})
}

func (f *firefox) Click(t *testing.T, selector string) {
	t.Helper()
	// Its own command for a click waits for a page, which a download is not.
	f.call(t, "WebDriver:ExecuteScript", map[string]any{"script": "document.querySelector(arguments[0]).click()", "args": []string{selector}})
}

func (f *firefox) Wait(t *testing.T, selector string) { t.Helper(); f.find(t, selector) }
