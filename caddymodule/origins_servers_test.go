// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/loopback"
)

// What static servers, CGI programs and PHP answer comes through a shield as it is,
// unless it is shared.
func TestServersBehindShield(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve func(t *testing.T, dir string) (block string)
		more  []exchange
	}{
		{"nginx", serveNginx, []exchange{
			{request: "GET /closed/"},
			{request: "GET /closed/\nAuthorization: Basic YWxpY2U6c2VzYW1l"},
		}},
		{"apache2", serveApache, dynamic("/cgi-bin/echo", "/cgi-bin/moved", "/cgi-bin/missing", "/cgi-bin/slow")},
		{"php-fpm", servePHP, dynamic("/echo.php", "/moved.php", "/missing.php", "/slow.php")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := openDirectory(t)
			writeWebsite(t, filepath.Join(dir, "www"))
			s := serveSites(t, tt.serve(t, dir))
			s.compare(t, append(files(), tt.more...))
			if body := s.stored(t, "/feed.xml"); !strings.Contains(body, "Entry 1<") {
				t.Errorf("the feed that is stored: %.200s", body)
			}
		})
	}
}

// writeWebsite writes files of several kinds and sizes.
func writeWebsite(t *testing.T, www string) {
	t.Helper()
	modified := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	large := make([]byte, 4<<20)
	for i, rng := 0, rand.New(rand.NewPCG(1, 2)); i < len(large); i++ {
		large[i] = byte(rng.Uint32())
	}
	for _, directory := range []string{"sub", "closed", "cgi-bin"} {
		if err := os.Mkdir(filepath.Join(www, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	page := "<!DOCTYPE html><html><body>" + strings.Repeat("<p>some words</p>", 500) + "</body></html>"
	for name, text := range map[string]string{
		"feed.xml": peerFeed(1), "page.html": page, "sub/index.html": page, "closed/index.html": page,
		"large.mp3": string(large), "data.json": `{"a":[1,2,3]}`, "empty.txt": "",
	} {
		write(t, filepath.Join(www, name), text, modified)
	}
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
		{request: "GET /large.mp3\nRange: bytes=4000000-"},
		{request: "GET /large.mp3\nRange: bytes=-10"},
		{request: "GET /large.mp3\nRange: bytes=9000000-"},
		{request: "GET /large.mp3\nRange: bytes=0-9,100-109"},
		{request: "GET /large.mp3\nRange: bytes=0-9\nIf-Range: \"another\""},
		{request: "HEAD /large.mp3"},
		{request: "GET /large.mp3"},
	}
}

// dynamic are requests for programs: one that tells what it is told, one that
// redirects, one that finds nothing, and one that streams.
func dynamic(echo, moved, missing, slow string) []exchange {
	large := strings.Repeat("x", 300_000)
	all := []exchange{
		{request: "GET " + echo + "?a=b&c=%20d"},
		{request: "GET " + echo + "\nCookie: session=alice\nAccept-Language: de\nUser-Agent: One/1.0\nReferer: https://referer.test/\nX-Original-Url: /other"},
		{request: "GET " + echo + "\nAuthorization: Bearer abc"},
		{request: "GET " + echo + "\nX-Forwarded-For: 198.51.100.9\nForwarded: for=198.51.100.9"},
		{request: "HEAD " + echo},
		{request: "POST " + echo + "\nContent-Type: application/x-www-form-urlencoded", body: "a=b"},
		{request: "POST " + echo + "\nContent-Type: application/octet-stream\nExpect: 100-continue", body: large},
		{request: "PUT " + echo, body: "put"},
		{request: "DELETE " + echo},
		{request: "OPTIONS " + echo},
		{request: "GET " + moved},
		{request: "GET " + missing},
		{request: "GET " + slow},
	}
	for i := range all {
		all[i].program = true
	}
	return all
}

func serveNginx(t *testing.T, dir string) string {
	binary := installed(t, "nginx")
	address := loopback.FreeAddress(t)
	write(t, filepath.Join(dir, "passwords"), "alice:{PLAIN}sesame\n", time.Now())
	write(t, filepath.Join(dir, "config"), fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
	types { application/rss+xml xml; text/html html; audio/mpeg mp3; application/json json; text/plain txt; }
	access_log off;
	client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
	gzip on; gzip_types application/rss+xml; gzip_vary on;
	server {
		listen %[2]s; root %[1]s/www; server_name blog.test; port_in_redirect off;
		location /closed/ { auth_basic "closed"; auth_basic_user_file %[1]s/passwords; }
	}
}
`, dir, address), time.Now())
	run(t, address, dir, exec.Command(binary, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", filepath.Join(dir, "config")))
	return "reverse_proxy " + address
}

// serveApache runs an Apache with programs in cgi-bin. The one that makes the feed notes
// in the file runs each time that it runs.
func serveApache(t *testing.T, dir string) string {
	binary := installed(t, "apache2")
	address := loopback.FreeAddress(t)
	bin := filepath.Join(dir, "www", "cgi-bin")
	for name, program := range map[string]string{
		"echo":    "printf 'Content-Type: text/plain\\r\\nCache-Control: no-store\\r\\nSet-Cookie: a=b\\r\\nSet-Cookie: c=d\\r\\n\\r\\n'; env | grep -E '^(HTTP|REQUEST_[MU]|QUERY|CONTENT)' | sort; cat",
		"moved":   "printf 'Status: 302\\r\\nLocation: https://elsewhere.test/\\r\\nCache-Control: no-store\\r\\n\\r\\n'",
		"missing": "printf 'Status: 404 Not Here\\r\\nContent-Type: text/html\\r\\nCache-Control: no-store\\r\\n\\r\\nnot here'",
		"slow":    "printf 'Content-Type: text/html\\r\\nCache-Control: no-store\\r\\n\\r\\n<!DOCTYPE html>'; for i in 1 2 3 4; do sleep 0.05; echo \"<p>$i\"; done",
		"feed":    "echo ran >> " + dir + "/runs; sleep 0.02; printf 'Content-Type: application/rss+xml\\r\\n\\r\\n" + peerFeed(1) + "'",
	} {
		write(t, filepath.Join(bin, name), "#!/bin/sh\n"+program+"\n", time.Now())
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "runs"), "", time.Now())
	if err := os.Chmod(filepath.Join(dir, "runs"), 0o666); err != nil {
		t.Fatal(err)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "User www-data\nGroup www-data\n"
	}
	var modules strings.Builder
	for _, name := range []string{"mpm_event", "authz_core", "mime", "filter", "deflate", "dir", "alias", "cgid"} {
		fmt.Fprintf(&modules, "LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", name, name)
	}
	write(t, filepath.Join(dir, "config"), fmt.Sprintf(`%[3]s%[4]sServerName http://blog.test:80
UseCanonicalName On
Listen %[2]s
PidFile %[1]s/pid
ErrorLog %[1]s/error.log
DefaultRuntimeDir %[1]s
ScriptSock %[1]s/socket
StartServers 1
MinSpareThreads 1
DocumentRoot %[1]s/www
ScriptAlias /cgi-bin/ %[1]s/www/cgi-bin/
<Directory %[1]s/www>
	Require all granted
</Directory>
TypesConfig /dev/null
AddType application/rss+xml .xml
AddType text/html .html
AddType audio/mpeg .mp3
AddType application/json .json
AddOutputFilterByType DEFLATE application/rss+xml text/html
LogFormat "%%>s %%U" poll
CustomLog %[1]s/access.log poll
`, dir, address, modules.String(), user), time.Now())
	run(t, address, dir, exec.Command(binary, "-DFOREGROUND", "-d", dir, "-f", filepath.Join(dir, "config")))
	return "reverse_proxy " + address
}

// servePHP runs a PHP-FPM for programs beside the files, which Caddy serves itself.
func servePHP(t *testing.T, dir string) string {
	binary := installed(t, "php-fpm")
	address := loopback.FreeAddress(t)
	www := filepath.Join(dir, "www")
	for name, program := range map[string]string{
		"echo.php": `header('Content-Type: text/plain'); header('Cache-Control: no-store'); setcookie('a', 'b');
			ksort($_SERVER);
			foreach ($_SERVER as $name => $value) if (preg_match('/^(HTTP|REQUEST_[MU]|QUERY|CONTENT|SCRIPT|PATH_INFO|DOCUMENT|REMOTE_A|SERVER_NAME)/', $name)) echo "$name=$value\n";
			echo strlen(file_get_contents('php://input')), ' ', $_POST['a'] ?? '-';`,
		"moved.php":   `header('Location: https://elsewhere.test/'); header('Cache-Control: no-store');`,
		"missing.php": `http_response_code(404); header('Cache-Control: no-store'); echo 'not here';`,
		"slow.php":    `header('Cache-Control: no-store'); echo '<!DOCTYPE html>'; for ($i = 0; $i < 4; $i++) { usleep(50000); echo "<p>$i"; flush(); }`,
	} {
		write(t, filepath.Join(www, name), "<?php\n"+program, time.Now())
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user = www-data\ngroup = www-data\n"
	}
	write(t, filepath.Join(dir, "config"), fmt.Sprintf("[global]\nerror_log = %s/error.log\ndaemonize = no\n[www]\nlisten = %s\npm = static\npm.max_children = 2\n%s", dir, address, user), time.Now())
	run(t, address, dir, exec.Command(binary, "--nodaemonize", "--fpm-config", filepath.Join(dir, "config"), "--prefix", dir))
	return "root * " + www + "\nphp_fastcgi " + address + "\nfile_server"
}

// installed finds a server's binary, of any version where its name has that in it, or
// skips the test.
func installed(t *testing.T, name string) string {
	t.Helper()
	if path := lookUp(name); path != "" {
		return path
	}
	if versions, _ := filepath.Glob("/usr/sbin/" + name + "[0-9]*"); len(versions) > 0 {
		return slices.Max(versions)
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// A crowd of readers who ask as rudely as can be is nothing to the program that makes
// the feed, once it has run for one of them.
func TestRudeReadersBeforeCGI(t *testing.T) {
	dir := openDirectory(t)
	writeWebsite(t, filepath.Join(dir, "www"))
	s := serveSites(t, serveApache(t, dir))
	first := s.stored(t, "/cgi-bin/feed")
	runs := func() int { return strings.Count(readFile(t, filepath.Join(dir, "runs")), "ran") }
	before := runs()
	var crowd sync.WaitGroup
	for i := range 50 {
		crowd.Go(func() {
			for range 20 {
				r, err := http.NewRequest(http.MethodGet, "http://"+s.feeds+"/cgi-bin/feed", nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("User-Agent", fmt.Sprintf("Rude/%d", i))
				r.Header.Set("Cache-Control", "no-cache")
				r.Header.Set("Accept-Encoding", "identity")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(body) != first {
					t.Errorf("%d %v %.200s", resp.StatusCode, err, body)
					return
				}
			}
		})
	}
	crowd.Wait()
	if n := runs() - before; n != 0 || before == 0 {
		t.Errorf("the program ran %d times for one reader, and %d times for a thousand requests more", before, n)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
