// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates for the servers of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // from which a process reads the authority's certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, file: filepath.Join(t.TempDir(), "authority.pem")}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return a
}

// certificate returns one that the authority has signed, after alter has changed it.
func (a *authority) certificate(alter func(c *x509.Certificate)) []tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)}, BasicConstraintsValid: true,
	}
	alter(c)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: a.key}}
}

func (a *authority) good() []tls.Certificate { return a.certificate(func(*x509.Certificate) {}) }

// handshakes are servers that are not those they should be, or do not speak TLS properly.
// Each would give a good feed to a client that did not notice.
func handshakes(a *authority) (attacks []attack) {
	with := func(name string, config *tls.Config) {
		attacks = append(attacks, attack{name: name, raw: serveTLS(config, says(ok("", feed)))})
	}
	presents := func(name string, alter func(c *x509.Certificate)) {
		with("a certificate "+name, &tls.Config{Certificates: a.certificate(alter)})
	}
	presents("that expired a minute ago", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	presents("that is valid tomorrow", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(24 * time.Hour) })
	presents("for another address", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 3)} })
	presents("for another name", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"example.com"} })
	presents("for all names", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"*"} })
	presents("for the address as common name", func(c *x509.Certificate) { c.IPAddresses = nil })
	presents("for clients", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	with("a certificate of an unknown authority", &tls.Config{Certificates: newAuthority(a.t).good()})
	with("TLS 1.1 at most", &tls.Config{Certificates: a.good(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	with("a client's certificate is wanted", &tls.Config{Certificates: a.good(), ClientAuth: tls.RequireAnyClientCert})
	with("h2 agreed, HTTP/1.1 spoken", &tls.Config{Certificates: a.good(), NextProtos: []string{"h2"}})

	add := func(name string, slow bool, raw func(net.Conn, func())) {
		attacks = append(attacks, attack{name: name, slow: slow, raw: raw})
	}
	for name, said := range map[string]string{"plain HTTP": ok("", feed), "rubbish": "rubbish rubbish rubbish", "a record of 64 KB": "\x16\x03\x03\xff\xff"} {
		add(name+" in place of TLS", false, func(conn net.Conn, _ func()) { (&visit{Conn: conn}).say(said) })
		add(name+" in place of TLS, then nothing", true, func(conn net.Conn, _ func()) { hangs(said)(&visit{Conn: conn}); linger(conn) })
	}
	add("a flood of empty records", true, func(conn net.Conn, _ func()) { endless("", "\x16\x03\x03\x00\x00")(&visit{Conn: conn}) })
	add("closes at once", false, func(net.Conn, func()) {})
	add("resets at once", false, func(conn net.Conn, _ func()) { (&visit{Conn: conn}).reset() })
	add("hangs before the handshake", true, func(conn net.Conn, _ func()) { linger(conn) })
	add("drips its hello", true, func(conn net.Conn, counted func()) {
		serveTLS(&tls.Config{Certificates: a.good()}, says(ok("", feed)))(slowConn{conn}, counted)
	})
	good := &tls.Config{Certificates: a.good()}
	add("hangs after the handshake", true, serveTLS(good, hangs("")))
	add("drips its answer", true, serveTLS(good, drips("", ok("", feed))))
	add("half an answer, and close_notify", false, serveTLS(good, says(ok("", feed)[:150])))
	add("half a document, cut without close_notify", false, func(conn net.Conn, _ func()) {
		// Anyone on the way can do this. Only the document shows that something is missing.
		server := tls.Server(conn, good)
		if server.Handshake() == nil {
			_, _ = server.Read(make([]byte, 4096))
			_, _ = io.WriteString(server, open("", feed[:60]))
			conn.Close()
		}
	})
	return attacks
}

// linger keeps a connection open until the other side has left.
func linger(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.Copy(io.Discard, conn)
}

// slowConn writes a byte at a time.
type slowConn struct{ net.Conn }

func (c slowConn) Write(b []byte) (n int, err error) {
	for i := range b {
		time.Sleep(100 * time.Millisecond)
		if _, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// serveTLS answers the request that comes over TLS, if one does.
func serveTLS(config *tls.Config, send func(*visit)) func(net.Conn, func()) {
	return func(conn net.Conn, _ func()) {
		server := tls.Server(conn, config)
		_ = server.SetDeadline(time.Now().Add(20 * time.Second))
		if server.Handshake() != nil {
			return
		}
		if n, err := server.Read(make([]byte, 8192)); n > 0 && err == nil {
			send(&visit{Conn: server})
		}
		server.Close()
	}
}
