// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// Protocols are the protocols that Caddy serves.
var Protocols = []string{"HTTP/1.1", "HTTP/2.0", "HTTP/3.0"}

// Clients returns a client for each of the protocols, by its name. They trust every certificate,
// follow no redirect, and ask for no compression.
func Clients(t testing.TB) map[string]*http.Client {
	t.Helper()
	anyone := func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
	one, two := new(http.Protocols), new(http.Protocols)
	one.SetHTTP1(true)
	two.SetHTTP2(true)
	three := &http3.Transport{TLSClientConfig: anyone(), DisableCompression: true}
	clients := make(map[string]*http.Client)
	for protocol, transport := range map[string]http.RoundTripper{
		"HTTP/1.1": &http.Transport{TLSClientConfig: anyone(), Protocols: one, DisableCompression: true},
		"HTTP/2.0": &http.Transport{TLSClientConfig: anyone(), Protocols: two, DisableCompression: true},
		"HTTP/3.0": three,
	} {
		client := &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		t.Cleanup(client.CloseIdleConnections)
		clients[protocol] = client
	}
	t.Cleanup(func() { three.Close() })
	return clients
}

// TLS returns the line of a site with a certificate for 127.0.0.1.
func TLS(t testing.TB) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	certificate := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	line, dir := "tls", t.TempDir()
	for _, block := range []pem.Block{{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}, {Type: "PRIVATE KEY", Bytes: key}} {
		file := filepath.Join(dir, strings.ReplaceAll(block.Type, " ", ""))
		WriteFile(t, file, string(pem.EncodeToMemory(&block)))
		line += " " + file
	}
	return line + "\n"
}
