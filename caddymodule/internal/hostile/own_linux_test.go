// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// inNamespace is the environment variable of the process that has a network of its own.
const inNamespace = "POLLARD_TEST_NAMESPACE"

// TestOwnAddresses gives a machine public addresses, and tries to reach what only that machine may reach
// there: other ports, and its neighbours. It runs in a network namespace, as the system's own network has
// neither.
func TestOwnAddresses(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		unshare := []string{"unshare", "--map-root-user", "--net", "--mount"}
		if out, err := exec.Command(unshare[0], append(unshare[1:], "ip", "link", "set", "lo", "up")...).CombinedOutput(); err != nil {
			t.Skipf("no network namespace with unshare and ip: %v %s", err, out)
		}
		c := exec.Command(unshare[0], append(unshare[1:], os.Args[0], "-test.run=^TestOwnAddresses$", "-test.v")...)
		c.Env = append(os.Environ(), inNamespace+"=1")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestOwnAddresses") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}

	hosts := filepath.Join(t.TempDir(), "hosts")
	stage.WriteFile(t, hosts, "127.0.0.1 localhost\n9.5.5.5 blog.test nas.test\n2a01:4f8:1:2::9 neighbour.test\n")
	for _, command := range []string{
		"ip link set lo up", "ip address add 9.5.5.5/32 dev lo", "ip address add 2a01:4f8:1:2::5/64 dev lo nodad",
		// Whatever is asked for in these networks is answered here.
		"ip -6 route add local 2a01:4f8:1:2::/64 dev lo", "ip route add local 9.6.0.0/16 dev lo",
		"mount --bind " + hosts + " /etc/hosts",
	} {
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", command, err, out)
		}
	}
	var mu sync.Mutex // guards reached
	var reached []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		reached = append(reached, r.Host+r.URL.Path)
		mu.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		fmt.Fprint(w, feed)
	})
	for _, address := range []string{":80", ":8088", ":8089"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: handler}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
	}
	list := filepath.Join(t.TempDir(), "list.opml")
	stage.WriteFile(t, list, `<opml version="2.0"><body><outline xmlUrl="http://neighbour.test:8089/listed.xml"/></body></opml>`)
	c := start(t, setup{app: quick, site: `
	handle_path /list/* {
		feed_gateway {
			clients any
			opml ` + list + `
		}
	}
	feed_gateway {
		clients any
		feed /chosen.xml http://nas.test:8088/feed?to=/feed/
		feed /elsewhere.xml http://nas.test:8088/elsewhere?to=http://nas.test:8089/secret
		feed /public.xml http://9.6.6.6:8089/public?to=http://blog.test/feed
	}`})
	const own, network = "an address of this machine: ", "an address of this machine's network: "
	for _, tt := range []struct{ path, want string }{ // want: "" for the feed, else part of the error
		{"/http://9.5.5.5:8088/secret", own + "private_upstreams 9.5.5.5"},
		{"/http://[2a01:4f8:1:2::5]:8088/secret", own + "private_upstreams 2a01:4f8:1:2::5"},
		{"/http://[2a01:4f8:1:2::9]/secret", network + "private_upstreams 2a01:4f8:1:2::9"},
		{"/http://blog.test:8089/secret", own + "add it to private_upstreams"},
		{"/http://9.6.6.6:8089/redirect?to=http://9.5.5.5:8089/secret", own},
		{"/http://9.6.6.6:8089/redirect?to=http://neighbour.test/secret", network},
		{"/elsewhere.xml", own},
		{"/http://blog.test/feed", ""}, {"/http://9.5.5.5/feed", ""}, {"/http://[2a01:4f8:1:2::5]/feed", ""}, {"/http://9.6.6.6:8088/feed", ""},
		{"/chosen.xml", ""}, {"/public.xml", ""}, {"/list/http://neighbour.test:8089/listed.xml", ""},
	} {
		switch got := c.get(tt.path); {
		case tt.want == "":
			if got.Status != 200 || got.Body != feed {
				t.Errorf("%s: %v, want the feed", tt.path, got)
			}
		case got.Status < 400 || !strings.Contains(got.Body, tt.want):
			t.Errorf("%s: %v, want an error with %q", tt.path, got, tt.want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if all := strings.Join(reached, " "); strings.Contains(all, "secret") {
		t.Errorf("what is private was reached: %s", all)
	}
}
