// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

// browser is a browser's token in a User-Agent and its name.
type browser struct{ token, name string }

// brands are browsers. Those that also send another one's token come first.
var brands = []browser{
	{"Edg", "Edge"}, {"EdgA", "Edge"}, {"EdgiOS", "Edge"}, {"Edge", "Edge"},
	{"OPR", "Opera"}, {"Vivaldi", "Vivaldi"}, {"YaBrowser", "Yandex Browser"},
	{"SamsungBrowser", "Samsung Internet"}, {"FxiOS", "Firefox"}, {"CriOS", "Chrome"},
	{"Firefox", "Firefox"}, {"Chrome", "Chrome"}, {"Safari", "Safari"},
}

// engines are words that browsers have in common. They do not name a program.
var engines = map[string]bool{
	"Mozilla": true, "AppleWebKit": true, "Gecko": true, "like": true, "KHTML,": true,
	"Version": true, "Mobile": true, "Ubuntu": true, "Chromium": true,
}

// libraries are HTTP libraries' default names, in lower case.
var libraries = map[string]bool{
	"aiohttp": true, "apache-httpclient": true, "axios": true, "curl": true, "dalvik": true,
	"dart": true, "faraday": true, "go-http-client": true, "got": true, "guzzlehttp": true,
	"httpie": true, "java": true, "java-http-client": true, "ktor-client": true, "libcurl": true,
	"libwww-perl": true, "lwp": true, "node": true, "node-fetch": true, "node.js": true,
	"okhttp": true, "php": true, "postmanruntime": true, "python": true, "python-httpx": true,
	"python-requests": true, "python-urllib": true, "python-urllib3": true, "reqwest": true,
	"rest-client": true, "ruby": true, "undici": true, "universalfeedparser": true, "ureq": true,
	"wget": true,
}

// browserPlatforms are the platforms of browsers, in lower case, as the first comment of
// a User-Agent begins.
var browserPlatforms = []string{
	"(windows nt", "(macintosh", "(x11;", "(iphone", "(ipad", "(linux; android", "(android",
}

// readerWords occur in the User-Agents of programs that imitate a browser, in lower case.
var readerWords = []string{
	"feed", "rss", "podcast", "reader", "bot", "crawl", "spider", "fetch", "http:", "https:",
	"compatible", "subscriber", "headless",
}

// platforms are operating systems and devices, in lower case.
var platforms = []string{
	"darwin", "cfnetwork", "iphone", "ipad", " ios", "(ios", "android", "macintosh", "mac os", "macos",
	"windows", "x11", "linux", "freebsd", "watchos",
}
