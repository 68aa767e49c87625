// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// enclosed says that this process has a network of its own.
const enclosed = "POLLARD_HOSTILE_ENCLOSED"

// enclose runs a test again in a network that has only a loopback device with all addresses,
// so that each connection attempt arrives and is seen. It reports whether this is that run.
func enclose(t *testing.T) bool {
	t.Helper()
	if os.Getenv(enclosed) != "" {
		for _, line := range []string{"link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo"} {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v %s", line, err, out)
			}
		}
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no program ip is installed: apt-get install iproute2")
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), enclosed+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		Pdeathsig:   syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := again.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EACCES):
		t.Skipf("this system gives a process no network of its own: %v", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	default:
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "_test.go:") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
	return false
}

// world is every server of an enclosed network, at all addresses.
type world struct {
	mu    sync.Mutex          // guards asked
	asked map[netip.Addr]bool // the addresses that were connected to
}

// Documents of private servers have this in them.
const secret = "payroll"

// newWorld listens at all addresses, at the ports of the web and at some others.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{asked: make(map[netip.Addr]bool)}
	for _, port := range []string{"80", "22", "25", "6379", "8080"} {
		l, err := net.Listen("tcp", "[::]:"+port)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: w, ConnState: w.connected}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
	}
	return w
}

func localAddress(a net.Addr) netip.Addr {
	return netip.MustParseAddrPort(a.String()).Addr().Unmap()
}

// connected records connections, with or without a request.
func (w *world) connected(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked[localAddress(conn.LocalAddr())] = true
	}
}

// ServeHTTP redirects if the path says so, /to/<status>/<URL>, and is a feed otherwise.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	here := localAddress(r.Context().Value(http.LocalAddrContextKey).(net.Addr))
	var status int
	if rest, ok := strings.CutPrefix(r.URL.Path, "/to/"); ok {
		if number, _, ok := strings.Cut(rest, "/"); ok {
			_, _ = fmt.Sscan(number, &status)
			rw.Header().Set("Location", r.URL.Query().Get("u"))
			rw.WriteHeader(status)
			return
		}
	}
	rw.Header().Set("Content-Type", "application/rss+xml")
	rw.Header().Set("ETag", `"`+here.String()+`"`)
	said := "at " + here.String()
	if !public(here) {
		said = secret + " " + said
	}
	fmt.Fprint(rw, strings.Replace(feed, "Good", said, 1))
}

// to is a path that redirects.
func to(status int, target string) string {
	return fmt.Sprintf("/to/%d/x?u=%s", status, url.QueryEscape(target))
}

// reached lists the addresses that were connected to and are not public.
func (w *world) reached() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.asked {
		if !public(a) {
			list = append(list, a.String())
		}
	}
	return list
}

// The addresses of the tests' public servers.
const (
	publicAddress = "93.184.216.34"
	publicIPv6    = "2606:2800:220:1::1"
)

// redirecting are the addresses of servers that redirect, from1.test and so on. Each has one of its own,
// because polls of one address are spaced.
var redirecting = netip.MustParsePrefix("93.185.0.0/16")

func public(a netip.Addr) bool {
	return a.String() == publicAddress || a.String() == publicIPv6 || redirecting.Contains(a)
}

// hiding are hosts of 10.9.9.9 in other spellings, hosts that only look like it, other addresses that no
// feed may be at, and names of such addresses. Package upstream has tests of all kinds of addresses.
var hiding = []string{
	"10.9.9.9", "10.9.9.9.", "10.9.9.9:080", "x:y@10.9.9.9", "example.com@10.9.9.9", "010.009.009.009", "012.011.011.011", "0xa.0x9.0x9.0x9", "168364297", "0x0a090909", "4463331593", "10.9.2313",
	"[::ffff:10.9.9.9]", "[::ffff:a09:909]:80", "[::10.9.9.9]", "[64:ff9b::a09:909]", "[2002:a09:909::1]", "[2001:0:1:2:0:0:f5f6:f6f6]", "10%2e9%2e9%2e9", "10。9。9。9", "１０.9.9.9",
	"10.9.9.9%00.example.com", "10.9.9.9#.example.com", "10.9.9.9\\.example.com", "10.9.9.9,example.com",
	"127.0.0.1", "169.254.169.254", "0.0.0.0", "2130706433", "0xa9fea9fe", "[::]", "[::1]", "[fd00:ec2::254]:8080", "[fe80::1%25lo]", "[ff02::1]", "[2001:db8::1]",
	"private.test", "PRIVATE.test.", "loopback.test", "loopback6.test", "metadata.test", "metadata6.test", "mapped.test", "translated.test", "tunnelled.test", "unspecified.test", "local6.test", "localhost",
	"private.test:8080", "pri%76ate.test", "private.test%00.example.com", "private.test\\@public.test", "private.test%23@public.test", "metadata.google.internal", "nothing.test", "*.test",
	publicAddress + ":22", publicAddress + ":25", publicAddress + ":6379", publicAddress + ":0", publicAddress + ":65536",
}

// addressesOf are the addresses of names, by their first label.
var addressesOf = map[string][]string{
	"public": {publicAddress}, "six": {publicIPv6},
	"private": {"10.9.9.9"}, "loopback": {"127.0.0.1"}, "loopback6": {"::1"},
	"metadata": {"169.254.169.254"}, "metadata6": {"fd00:ec2::254"}, "unspecified": {"0.0.0.0"}, "local6": {"fe80::1"},
	"mapped": {"::ffff:10.9.9.9"}, "translated": {"64:ff9b::a09:909"}, "tunnelled": {"2002:a09:909::1"},
	"mixed": {"10.9.9.9", publicAddress, "127.0.0.1"}, "families": {publicAddress, "fd00::1"},
}

// namesOf are the name server's answers to the nth question for a name.
func namesOf(name string, n int) (addresses []netip.Addr) {
	label, _, _ := strings.Cut(name, ".")
	list := addressesOf[label]
	number, redirects := strings.CutPrefix(label, "from")
	switch {
	case redirects:
		list = []string{"93.185." + number + ".1"}
	case label == "rebind" && n%2 == 0, label == "turncoat" && n == 0:
		list = []string{publicAddress}
	case label == "rebind":
		list = []string{"10.9.9.9"}
	case label == "turncoat": // once it is known to be good
		list = []string{"169.254.169.254"}
	}
	for _, a := range list {
		addresses = append(addresses, netip.MustParseAddr(a))
	}
	return addresses
}

// TestHostileAddresses tries to reach private addresses through a gateway: by all spellings, by names, by
// names that change and names of several addresses, and by redirects to them. There is a server at each
// of them, which records connections. Each time, the address counts that is connected to.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	if !enclose(t) {
		return
	}
	w, names := newWorld(t), newNameServer(t)
	c := start(t, setup{
		app:  strings.Replace(quick, "private_upstreams 127.0.0.0/8", "", 1),
		site: gatewayByURL,
		env:  []string{resolverAddress + "=" + names.conn.LocalAddr().String()},
	})
	if a := c.get("/http://public.test/good.xml"); a.Status != 200 || !strings.Contains(a.Body, "at "+publicAddress) {
		t.Fatalf("the network does not work: %v", a)
	}
	var all sync.WaitGroup
	for _, name := range []string{"rebind.test", "turncoat.test", "mixed.test", "families.test", "six.test"} {
		all.Go(func() {
			good := false
			for range 6 {
				a := c.get("/http://" + name + "/feed")
				good = good || a.Status == 200
				if strings.Contains(a.Body, secret) {
					t.Errorf("%s: %v", name, a)
				}
				time.Sleep(1100 * time.Millisecond) // until it is due again
			}
			if !good {
				t.Errorf("%s: its public address was never asked", name)
			}
		})
	}
	for i, host := range hiding {
		first, second := fmt.Sprintf("http://from%d.test", 2*i), fmt.Sprintf("http://from%d.test", 2*i+1)
		var forms sync.WaitGroup
		for form, path := range []string{
			"/http://" + host + "/feed",
			"/?url=" + url.QueryEscape("http://"+host+"/query"),
			"/" + first + to(302, "http://"+host+"/redirect"),
			"/" + first + to(301, second+to(308, "//"+host+"/hop")),
		} {
			forms.Go(func() {
				if got := c.get(path); got.Status < 400 && form < 2 && !strings.Contains(got.Body, "at "+publicAddress) || strings.Contains(got.Body, secret) {
					t.Errorf("%s: %v", path, got)
				}
			})
		}
		forms.Wait()
	}
	all.Wait()
	if reached := w.reached(); len(reached) > 0 {
		t.Errorf("there were connections to %v", reached)
	}
	if last := netip.MustParseAddr(fmt.Sprintf("93.185.%d.1", 2*len(hiding)-1)); !w.asked[last] {
		t.Errorf("the second redirect was not followed to %v", last)
	}
	names.mu.Lock()
	defer names.mu.Unlock()
	if names.asked["turncoat.test"] < 2 || names.asked["rebind.test"] < 2 {
		t.Errorf("the names were asked for %v", names.asked)
	}
}
