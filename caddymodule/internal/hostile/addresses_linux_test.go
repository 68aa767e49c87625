// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
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
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", fmt.Sprintf("-campaign=%v", *campaign))
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
	mu    sync.Mutex // guards asked
	asked map[netip.Addr][]string
}

// Documents of private servers have this in them.
const secret = "payroll"

// newWorld listens at all addresses, at the ports of the web and at some others.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{asked: make(map[netip.Addr][]string)}
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

// connected records connections without a request too.
func (w *world) connected(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		w.record(localAddress(conn.LocalAddr()), "")
	}
}

func (w *world) record(a netip.Addr, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[a] = append(w.asked[a], what)
}

// ServeHTTP redirects if the path says so, /to/<status>/<URL>, and is a feed otherwise.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	here := localAddress(r.Context().Value(http.LocalAddrContextKey).(net.Addr))
	w.record(here, r.URL.Path)
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

// reached lists the addresses that were connected to, but for some.
func (w *world) reached(but ...string) (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.asked {
		if !slices.Contains(but, a.String()) {
			list = append(list, a.String())
		}
	}
	return list
}

func (w *world) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, asked := range w.asked {
		n += len(asked)
	}
	return n
}

// The addresses of the tests' public servers.
const (
	publicAddress = "93.184.216.34"
	otherPublic   = "93.184.216.35"
	publicIPv6    = "2606:2800:220:1::1"
)

func public(a netip.Addr) bool {
	return slices.Contains([]string{publicAddress, otherPublic, publicIPv6}, a.String())
}

// forbidden are addresses that no feed may be at, besides 10.9.9.9 in all spellings. Package upstream
// has tests of all kinds.
var forbidden = []string{
	"127.0.0.1", "169.254.169.254", "0.0.0.0", "2130706433", "0xa9fea9fe", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]",
}

// forbiddenIPv6 are others.
var forbiddenIPv6 = []string{
	"::", "::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%25lo", "fec0::1", "ff02::1", "2001:db8::1", "2001::1", "2001:10::1", "3fff::1", "100::1", "5f00::1", "4000::1",
	"0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::0.0.0.1", "fd12:3456:789a::1", "fe80::5efe:10.9.9.9", "fc00::5efe:10.9.9.9",
}

// spellings are the ways in which an IPv4 address can be written, and some that only look so.
func spellings(address string) []string {
	b := netip.MustParseAddr(address).As4()
	n := binary.BigEndian.Uint32(b[:])
	dots := func(format string) string {
		return fmt.Sprintf(strings.TrimSuffix(strings.Repeat(format+".", 4), "."), b[0], b[1], b[2], b[3])
	}
	wide := strings.NewReplacer("0", "０", "1", "１", "2", "２", "3", "３", "4", "４", "5", "５", "6", "６", "7", "７", "8", "８", "9", "９")
	circled := strings.NewReplacer("1", "①", "2", "②", "3", "③", "4", "④", "5", "⑤", "6", "⑥", "7", "⑦", "8", "⑧", "9", "⑨")
	return []string{
		address, address + ".", address + ":80", address + ":080", "x@" + address, "x:y@" + address, dots("%03d"), dots("0%o"), dots("0x%x"), dots("0X%X"), dots("%012d"),
		fmt.Sprint(n), fmt.Sprintf("0x%x", n), fmt.Sprintf("0X%08X", n), fmt.Sprintf("0%o", n), fmt.Sprint(uint64(n) + 1<<32), fmt.Sprintf("0x100000000%08x", n),
		fmt.Sprintf("%d.%d", b[0], n&0xffffff), fmt.Sprintf("%d.%d.%d", b[0], b[1], n&0xffff), fmt.Sprintf("0x%x.%d", b[0], n&0xffffff), fmt.Sprintf("%d.%d.%d.0x%x", b[0], b[1], b[2], b[3]), fmt.Sprintf("0%o.%d.0x%x.%d", b[0], b[1], b[2], b[3]),
		"[::ffff:" + address + "]", fmt.Sprintf("[::ffff:%x:%x]", n>>16, n&0xffff), fmt.Sprintf("[0:0:0:0:0:ffff:%x:%x]", n>>16, n&0xffff), "[::FFFF:" + address + "]", "[::" + address + "]", "[::ffff:0:" + address + "]",
		"[64:ff9b::" + address + "]", fmt.Sprintf("[64:ff9b::%x:%x]", n>>16, n&0xffff), "[64:ff9b:1::" + address + "]", fmt.Sprintf("[2002:%x:%x::]", n>>16, n&0xffff), fmt.Sprintf("[2002:%x:%x::1]", n>>16, n&0xffff),
		fmt.Sprintf("[2001:0:%x:%x::1]", n>>16, n&0xffff), fmt.Sprintf("[2001:0:1:2:0:0:%x:%x]", ^n>>16, ^n&0xffff), "[::ffff:" + address + "%25lo]", "[::ffff:" + address + "]:80",
		strings.ReplaceAll(address, ".", "%2e"), strings.ReplaceAll(address, ".", "。"), strings.ReplaceAll(address, ".", "．"), strings.ReplaceAll(address, ".", "｡"), wide.Replace(address), circled.Replace(address),
		address + "%00.example.com", address + "%0a", address + "%20", address + "#.example.com", address + "?.example.com", address + "\\.example.com", "example.com@" + address, "example.com%40" + address,
		"[" + address + "]", address + ",example.com", address + ".nip.io.", address + ":80:80", address + ":", fmt.Sprintf("%%%02x", address[0]) + address[1:],
	}
}

// addressesOf are the addresses of names, by their first label.
var addressesOf = map[string][]string{
	"public": {publicAddress}, "other": {otherPublic}, "six": {publicIPv6}, "listed": {"10.1.2.3"},
	"private": {"10.9.9.9"}, "localtest": {"10.9.9.9"}, "nip": {"10.9.9.9"}, "loopback": {"127.0.0.1"}, "loopback6": {"::1"},
	"metadata": {"169.254.169.254"}, "metadata6": {"fd00:ec2::254"}, "unspecified": {"0.0.0.0"}, "unspecified6": {"::"}, "local6": {"fe80::1"},
	"mapped": {"::ffff:10.9.9.9"}, "translated": {"64:ff9b::a09:909"}, "tunnelled": {"2002:a09:909::1"},
	"mixed": {"10.9.9.9", publicAddress, "127.0.0.1"}, "families": {publicAddress, "fd00::1"},
}

// namesOf are the name server's answers to the nth question for a name.
func namesOf(name string, n int) (addresses []netip.Addr, hangs bool) {
	label, _, _ := strings.Cut(name, ".")
	list := addressesOf[label]
	switch {
	case label == "hangs":
		return nil, true
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
	return addresses, false
}

var badNames = []string{
	"private.test", "PRIVATE.test", "private.test.", "loopback.test", "loopback6.test", "metadata.test", "metadata6.test", "mapped.test", "translated.test", "tunnelled.test",
	"unspecified.test", "unspecified6.test", "local6.test", "localhost", "LOCALHOST", "localhost.", "private.test:22", "private.test:8080", "pri%76ate.test", "prıvate.test", "listed.test:80",
	"metadata", "metadata.google.internal", "kubernetes.default.svc", "nothing.test", "a..test", ".test", "-.test", "*.test", "_.test", "xn--a.test", "private.test%00.example.com", "private.test%2eexample.com:80", "private.test\\@public.test", "private.test%23@public.test",
	strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 130) + "test", "hangs.test",
}

// TestHostileAddresses tries to reach private addresses through a gateway: by all
// spellings, by names, by names that change, and by redirects to them from everywhere.
// There is a server at each of them, which records connections.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	if !enclose(t) {
		return
	}
	w, names := newWorld(t), newNameServer(t, namesOf)
	var tokens strings.Builder
	for i := range 8 {
		fmt.Fprintf(&tokens, "token t%d %016d\n", i, i) // each has a share of its own
	}
	c := start(t, setup{
		app:  "timeout 10s\nmin_interval 1s\nmax_interval 2s\njitter 0\nhost * {\n\tspacing 0\n\tconcurrency 64\n}\nhost hangs.test {\n\ttimeout 2s\n}",
		site: "feed_gateway {\nfeed /good.xml http://public.test/good.xml\nclients any\n" + tokens.String() + "}\n",
		env:  []string{resolverAddress + "=" + names.conn.LocalAddr().String()},
	})
	if a := c.get("/good.xml"); a.Status != 200 || !strings.Contains(a.Body, "at "+publicAddress) {
		t.Fatalf("the network does not work: %v", a)
	}
	targets := slices.Concat(spellings("10.9.9.9"), forbidden, badNames)
	for i, address := range forbiddenIPv6 {
		targets = append(targets, []string{"[" + address + "]", "[" + address + "]:80", "[" + strings.ToUpper(address) + "]:8080"}[i%3])
	}
	for _, port := range []string{"22", "25", "6379", "0", "65536", "-1", "http"} {
		targets = append(targets, publicAddress+":"+port)
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)

	took := c.costs(maxReaderCPU)
	attacks := 0
	for i, target := range targets {
		took.measure(target, func() {
			var all sync.WaitGroup
			for form, path := range []string{
				fmt.Sprintf("/~%016d/http://%s/feed", i%4, target),
				fmt.Sprintf("/~%016d/?url=%s", i%4, url.QueryEscape("http://"+target+"/query")),
				fmt.Sprintf("/~%016d/http://public.test%s", 4+i%4, to(302, "http://"+target+"/redirect")),
				fmt.Sprintf("/~%016d/http://public.test%s", 4+i%4, to(301, "http://other.test"+to(308, "//"+target+"/hop"))),
			} {
				attacks++
				all.Go(func() {
					if got := c.get(path); got.Status < 400 && form < 2 && !strings.Contains(got.Body, "at "+publicAddress) || strings.Contains(got.Body, secret) {
						t.Errorf("%s: %v", path, got)
					}
				})
			}
			all.Wait()
		})
	}
	took.finish(w.total(), fmt.Sprintf("%d targets, %d attacks", len(targets), attacks))
	if reached := w.reached(publicAddress, otherPublic, "127.0.0.1"); len(reached) > 0 {
		t.Errorf("there were connections to %v", reached)
	}
	w.mu.Lock()
	for _, what := range w.asked[netip.MustParseAddr("127.0.0.1")] { // nothing of this test is there
		t.Errorf("there was a request to 127.0.0.1 for %q", what)
	}
	w.mu.Unlock()
}

// Names that change what they stand for, and names of several addresses: what counts is
// the address that is connected to, each time.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	if !enclose(t) {
		return
	}
	w, names := newWorld(t), newNameServer(t, namesOf)
	c := start(t, setup{
		app:  strings.Replace(quick, "private_upstreams 127.0.0.0/8", "", 1),
		site: gatewayByURL,
		env:  []string{resolverAddress + "=" + names.conn.LocalAddr().String()},
	})
	took := c.costs(maxOriginCPU)
	end := took.begin("all of them")
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
	all.Wait()
	end()
	took.finish(w.total(), "5 names that change")
	if reached := w.reached(publicAddress, publicIPv6); len(reached) > 0 {
		t.Errorf("there were connections to %v", reached)
	}
	names.mu.Lock()
	defer names.mu.Unlock()
	if names.asked["turncoat.test"] < 2 || names.asked["rebind.test"] < 2 {
		t.Errorf("the names were asked for %v", names.asked)
	}
}

// The addresses of private_upstreams may be reached, but by no redirect from outside; and a feed that
// the configuration names is for the readers of its path alone.
func TestHostileRedirectsToPrivateFeeds(t *testing.T) {
	t.Parallel()
	if !enclose(t) {
		return
	}
	w, names := newWorld(t), newNameServer(t, namesOf)
	c := start(t, setup{
		app: strings.Replace(quick, "127.0.0.0/8", "10.1.0.0/16", 1),
		site: `@inside path /inside/*
	handle_path /inside/* {
		feed_gateway {
			feed /payroll.xml http://10.9.9.9/payroll.xml
			feed /named.xml http://listed.test/named.xml
			feed /moved.xml http://public.test` + to(301, "http://10.9.9.9/moved.xml") + `
		}
	}
	handle_path /few/* {
		feed_gateway {
			clients any
			allow public.test other.test
		}
	}
	feed_gateway {
		clients any
		deny denied.test 10.1.66.66
	}`,
		env: []string{resolverAddress + "=" + names.conn.LocalAddr().String()},
	})
	for _, path := range []string{"/inside/payroll.xml", "/inside/named.xml"} {
		if a := c.get(path); a.Status != 200 || !strings.Contains(a.Body, secret) {
			t.Errorf("%s, which the operator has written down: %v", path, a)
		}
	}
	good := []string{
		"http://10.1.2.3/a", "http://[::ffff:10.1.2.3]/b", "http://listed.test/c", "http://10.1.2.3" + to(302, "http://10.1.9.9/d"), "http://10.1.2.3" + to(302, "http://public.test/e"), "http://listed.test" + to(301, "/f"),
	}
	for _, u := range good {
		if a := c.get("/" + u); a.Status != 200 {
			t.Errorf("%s, which is listed: %v", u, a)
		}
	}
	var bad []string
	for _, status := range []int{302, 308} {
		for _, target := range []string{"http://10.9.9.9/payroll.xml", "http://listed.test/named.xml", "http://private.test/named.xml", "http://10.1.2.3/a", "http://listed.test/c", "http://[::ffff:10.9.9.9]/payroll.xml", "http://10.9.9.9:80/payroll.xml", "http://10.1.66.66/x", "http://167905545/payroll.xml"} {
			bad = append(bad,
				"http://public.test"+to(status, target),
				"http://"+publicAddress+to(status, target+"?x"),
				"http://public.test"+to(302, "http://other.test"+to(status, target)),
				"http://10.1.2.3"+to(302, "http://public.test"+to(status, target)),
			)
		}
	}
	bad = append(bad, "http://10.9.9.9/payroll.xml", "http://private.test/named.xml", "http://10.9.9.9/other", "http://10.1.66.66/x", "http://10.1.2.3"+to(302, "http://10.9.9.9/payroll.xml"), "http://10.1.2.3"+to(301, "http://10.1.66.66/x"), "http://10.2.0.1/")
	// Readers may request these, and so may follow a redirect to them.
	open := []string{"http://10.1.2.3/a", "http://listed.test/c", "http://listed.test/named.xml"}
	follow := func(path string) (a answered, end string) {
		for range 10 { // each URL of the way is checked for itself
			if a = c.get(path); a.Header.Get("Location") == "" {
				break
			}
			path = a.Header.Get("Location")
		}
		_, end, _ = strings.Cut(path, "/http")
		return a, "http" + end
	}
	took := c.costs(maxReaderCPU)
	for round := range 2 { // the second time each is known, and due
		for _, u := range bad {
			took.measure(u, func() {
				if a, end := follow("/" + u); (a.Status < 400 || strings.Contains(a.Body, secret)) && !slices.Contains(open, end) && !strings.Contains(u, "listed.test") {
					t.Errorf("%s leads to %s: %v", u, end, a)
				}
				if a, end := follow("/few/" + u); a.Status < 400 || strings.Contains(a.Body, secret) {
					t.Errorf("%s, where few hosts are allowed, leads to %s: %v", u, end, a)
				}
			})
		}
		if round == 0 {
			time.Sleep(1100 * time.Millisecond)
		}
	}
	took.finish(w.total(), fmt.Sprintf("%d attacks, at two gateways, twice", 2*len(bad)))
	if a := c.get("/inside/moved.xml"); a.Status < 400 || strings.Contains(a.Body, secret) {
		t.Errorf("a configured feed that its origin moves inside: %v", a)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, what := range w.asked[netip.MustParseAddr("10.9.9.9")] {
		if what != "" && what != "/payroll.xml" {
			t.Errorf("10.9.9.9 was asked for %q", what)
		}
	}
}

// A name server that hangs delays feeds with such names, and no others.
func TestResolverThatHangs(t *testing.T) {
	t.Parallel()
	if !enclose(t) {
		return
	}
	w, names := newWorld(t), newNameServer(t, namesOf)
	c := start(t, setup{
		app:  strings.Replace(quick, "private_upstreams 127.0.0.0/8", "", 1),
		site: "feed_gateway {\n\tfeed /good.xml http://public.test/good.xml\n\tclients any\n}\n",
		env:  []string{resolverAddress + "=" + names.conn.LocalAddr().String()},
	})
	if a := c.get("/good.xml"); a.Status != 200 {
		t.Fatal(a)
	}
	const many = 300
	took := c.costs(maxOriginCPU)
	end := took.begin("all of them")
	served := make(chan int, many)
	for i := range many {
		go func() {
			a, _ := c.ask("GET", fmt.Sprintf("/http://hangs.test%d.test/feed", i)) // it ends in an error
			served <- a.Status
		}()
	}
	asked := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.asked[netip.MustParseAddr(publicAddress)])
	}
	polled := asked()
	for tries := 0; tries < 5 || asked() == polled && tries < 60; tries++ {
		if a := c.get("/good.xml"); a.Status != 200 {
			t.Errorf("a known feed: %v", a)
		}
		time.Sleep(time.Second) // after which it is due
	}
	if asked() == polled {
		t.Error("a known feed was not polled while names hung")
	}
	codes := make(map[int]int)
	for range many {
		codes[<-served]++
	}
	if codes[200] > 0 || codes[0] > 0 {
		t.Errorf("the readers of the others were answered %v", codes)
	}
	end()
	took.finish(0, fmt.Sprintf("%d names that hang: %v", many, codes))
}
