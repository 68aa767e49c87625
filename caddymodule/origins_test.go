// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
	"github.com/feedpollard/pollard/internal/origintest"
)

// A shield changes no byte of responses that are not shared: each request gets the same
// answer with and without it, from Caddy's file server and from PHP.
func TestOriginBehindShield(t *testing.T) {
	www := website(t)
	php := "root * " + www + "\nphp_fastcgi " + servePHP(t, www) + "\nfile_server"
	for name, tt := range map[string]struct {
		block    string
		requests []exchange
	}{
		"files": {"root * " + www + "\nfile_server", files()},
		"PHP":   {php, append(files(), programs()...)},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.block == php && installed("php-fpm") == "" {
				t.Skip("php-fpm is not installed")
			}
			bare, shielded := serveTwice(t, tt.block)
			for _, e := range tt.requests {
				want := e.send(t, bare)
				if strings.HasPrefix(want.head, "HTTP/1.1 5") {
					t.Fatalf("%s: without a shield: %s", e.request, want)
				}
				for range 2 {
					if got := e.send(t, shielded); got != want {
						t.Errorf("%s: got\n%s\nwithout a shield\n%s", e.request, got, want)
					}
				}
			}
			feed := exchange{request: "GET /feed.xml"}
			got := feed.send(t, shielded)
			// The first response shows that it is a feed, and is not shared.
			for began := time.Now(); !strings.Contains(got.head, "Cache-Status: Pollard; hit") && time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
				got = feed.send(t, shielded)
			}
			if !strings.Contains(got.head, "Cache-Status: Pollard; hit") || got.body != origintest.Feed(1, "") {
				t.Errorf("the feed is not served from the cache: %s", got)
			}
		})
	}
}

// serveTwice runs a Caddy with a block of handlers as two sites until the end of the test,
// and returns their addresses. The second one is behind a shield.
func serveTwice(t *testing.T, block string) (bare, shielded string) {
	t.Helper()
	bare, shielded = loopback.FreeAddress(t), loopback.FreeAddress(t)
	site := func(address, handlers string) string {
		_, port, _ := net.SplitHostPort(address)
		return fmt.Sprintf("http://blog.test:%s {\nbind 127.0.0.1\n%s\n}\n", port, handlers)
	}
	err := stage.LoadCaddyfile(fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	pollard {
		store sqlite %s
	}
}
`, stage.StoreDirectory(t)) + site(bare, block) + site(shielded, "feed_shield {\norigin {\n"+block+"\n}\n}"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return bare, shielded
}

// website writes files of several kinds and sizes, and programs in PHP, to a directory that
// other users may read.
func website(t *testing.T) (www string) {
	t.Helper()
	www, err := os.MkdirTemp("", "pollard-website")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(www) })
	for _, dir := range []string{www, filepath.Join(www, "sub")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(www, 0o755); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 4<<20)
	for i, rng := 0, rand.New(rand.NewPCG(1, 2)); i < len(large); i++ {
		large[i] = byte(rng.Uint32())
	}
	page := "<!DOCTYPE html><html><body>" + strings.Repeat("<p>some words</p>", 500) + "</body></html>"
	modified := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	for name, text := range map[string]string{
		"feed.xml": origintest.Feed(1, ""), "page.html": page, "sub/index.html": page, "large.mp3": string(large), "data.json": `{"a":[1,2,3]}`, "empty.txt": "",
		"echo.php": `<?php header('Content-Type: text/plain'); header('Cache-Control: no-store'); setcookie('a', 'b');
			ksort($_SERVER);
			foreach ($_SERVER as $name => $value) if (preg_match('/^(HTTP|REQUEST_[MU]|QUERY|CONTENT|SCRIPT|PATH_INFO|DOCUMENT|REMOTE_A|SERVER_NAME)/', $name)) echo "$name=$value\n";
			echo strlen(file_get_contents('php://input')), ' ', $_POST['a'] ?? '-';`,
		"moved.php":   `<?php header('Location: https://elsewhere.test/'); header('Cache-Control: no-store');`,
		"missing.php": `<?php http_response_code(404); header('Cache-Control: no-store'); echo 'not here';`,
		"slow.php":    `<?php header('Cache-Control: no-store'); echo '<!DOCTYPE html>'; for ($i = 0; $i < 4; $i++) { usleep(50000); echo "<p>$i"; flush(); }`,
	} {
		path := filepath.Join(www, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	return www
}

// files are requests for the files of the website.
func files() []exchange {
	return []exchange{
		{request: "GET /page.html"},
		{request: "HEAD /page.html"},
		{request: "GET /page.html\nAccept-Encoding: gzip"},
		{request: "GET /page.html\nIf-Modified-Since: Mon, 02 Mar 2026 10:00:00 GMT"},
		{request: "GET /page.html\nIf-Modified-Since: Mon, 02 Mar 2020 10:00:00 GMT"},
		{request: "GET /page.html\nIf-None-Match: \"another\""},
		{request: "GET /page.html\nIf-Match: \"another\""},
		{request: "GET /page.html?utm=1"},
		{request: "GET /sub"},
		{request: "GET /none"},
		{request: "GET /empty.txt"},
		{request: "GET /data.json"},
		{request: "GET /large.mp3\nRange: bytes=1000000-1000999"},
		{request: "GET /large.mp3\nRange: bytes=-10"},
		{request: "GET /large.mp3\nRange: bytes=9000000-"},
		{request: "GET /large.mp3\nRange: bytes=0-9,100-109"},
		{request: "GET /large.mp3\nRange: bytes=0-9\nIf-Range: \"another\""},
		{request: "HEAD /large.mp3"},
		{request: "GET /large.mp3"},
	}
}

// programs are requests for the programs of the website.
func programs() []exchange {
	all := []exchange{
		{request: "GET /echo.php?a=b&c=%20d"},
		{request: "GET /echo.php\nCookie: session=alice\nAccept-Language: de\nUser-Agent: One/1.0\nReferer: https://referer.test/\nX-Original-Url: /other"},
		{request: "GET /echo.php\nAuthorization: Bearer abc"},
		{request: "GET /echo.php\nX-Forwarded-For: 198.51.100.9\nForwarded: for=198.51.100.9"},
		{request: "HEAD /echo.php"},
		{request: "POST /echo.php\nContent-Type: application/x-www-form-urlencoded", body: "a=b"},
		{request: "POST /echo.php\nContent-Type: application/octet-stream\nExpect: 100-continue", body: strings.Repeat("x", 300_000)},
		{request: "PUT /echo.php", body: "put"},
		{request: "DELETE /echo.php"},
		{request: "OPTIONS /echo.php"},
		{request: "GET /moved.php"},
		{request: "GET /missing.php"},
		{request: "GET /slow.php"},
	}
	for i := range all {
		all[i].program = true
	}
	return all
}

// servePHP runs PHP-FPM, if it is installed, and returns its address.
func servePHP(t *testing.T, www string) (address string) {
	t.Helper()
	binary := installed("php-fpm")
	if binary == "" {
		return "127.0.0.1:1"
	}
	address = loopback.FreeAddress(t)
	user := ""
	if os.Geteuid() == 0 {
		user = "user = www-data\ngroup = www-data\n"
	}
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("[global]\nerror_log = /dev/stderr\ndaemonize = no\n[www]\nlisten = %s\npm = static\npm.max_children = 2\n%s", address, user)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	command := exec.Command(binary, "--nodaemonize", "--fpm-config", config, "--prefix", www)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it ends its children too
		_ = command.Wait()
	})
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address
		}
	}
	t.Fatalf("php-fpm does not listen: %s", output.String())
	return ""
}

// installed returns the path of a server's binary, of any version, or "". Debian puts them
// where not every user's PATH leads.
func installed(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if versions, _ := filepath.Glob("/usr/sbin/" + name + "[0-9]*"); len(versions) > 0 {
		return slices.Max(versions)
	}
	return ""
}

// exchange is a request, without the fields that all requests here have.
type exchange struct {
	request string // the request line without the version, and header lines
	body    string
	// program says that a program answers. Whether the server knows the length of the answer
	// when it sends the header depends on timing, so the fields for that are not compared.
	program bool
}

// answer is what a site answers, without what differs from answer to answer.
type answer struct {
	head     string // status line and header fields as they came
	body     string
	trailers string
}

func (a answer) String() string {
	return fmt.Sprintf("%s\n\n%.600s (%d bytes, %x)\n%s", a.head, a.body, len(a.body), crc32.ChecksumIEEE([]byte(a.body)), a.trailers)
}

var multipart = regexp.MustCompile(`(?m)^Content-Type: multipart/byteranges; boundary=(\S+)$`)

// send makes the request.
func (e exchange) send(t *testing.T, address string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	line, fields, _ := strings.Cut(e.request, "\n")
	if fields != "" {
		fields = strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n"
	}
	if e.body != "" {
		fields += fmt.Sprintf("Content-Length: %d\r\n", len(e.body))
	}
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: blog.test\r\nConnection: close\r\n%s\r\n%s", line, fields, e.body)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%s: %v", e.request, err)
	}
	head, _, _ := bytes.Cut(all, []byte("\r\n\r\n"))
	for bytes.HasPrefix(head, []byte("HTTP/1.1 100")) {
		all = all[len(head)+4:]
		head, _, _ = bytes.Cut(all, []byte("\r\n\r\n"))
	}
	method, _, _ := strings.Cut(line, " ")
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(all)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v in %.500q", e.request, err, all)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v after %d bytes", e.request, err, len(body))
	}
	lines := slices.DeleteFunc(strings.Split(string(head), "\r\n"), func(line string) bool {
		if e.program && (strings.HasPrefix(line, "Content-Length:") || strings.HasPrefix(line, "Transfer-Encoding:")) {
			return true
		}
		return strings.HasPrefix(line, "Date:") || strings.HasPrefix(line, "Cache-Status: Pollard; fwd=method;")
	})
	a := answer{strings.Join(lines, "\n"), string(body), fmt.Sprint(resp.Trailer)}
	if boundary := multipart.FindStringSubmatch(a.head); boundary != nil {
		a.head = strings.ReplaceAll(a.head, boundary[1], "BOUNDARY")
		a.body = strings.ReplaceAll(a.body, boundary[1], "BOUNDARY")
	}
	return a
}
