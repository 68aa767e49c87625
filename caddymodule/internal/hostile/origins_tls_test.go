// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// authority signs certificates for the servers of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // that a process reads the authority from
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
	der := a.sign(a.cert, a.cert, key, key)
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return a
}

func (a *authority) sign(c, parent *x509.Certificate, of, by *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &of.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

// certificate is one that the authority has signed, as the function alters it.
func (a *authority) certificate(alter func(c *x509.Certificate)) tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)}, BasicConstraintsValid: true,
	}
	alter(c)
	return tls.Certificate{Certificate: [][]byte{a.sign(c, a.cert, a.key, a.key)}, PrivateKey: a.key}
}

func (a *authority) good() tls.Certificate { return a.certificate(func(*x509.Certificate) {}) }

// tlsAttack is what happens before there is a request, or instead of it.
type tlsAttack struct {
	name  string
	serve func(conn net.Conn)
	slow  bool
	asked int // requests that may come through for a poll
}

// handshakes are servers that are not who they should be, or speak no proper TLS.
func handshakes(a *authority) (attacks []tlsAttack) {
	presents := func(name string, c tls.Certificate) {
		attacks = append(attacks, tlsAttack{name: name, serve: serveTLS(&tls.Config{Certificates: []tls.Certificate{c}}, says(ok("", feed)))})
	}
	with := func(name string, alter func(c *x509.Certificate)) { presents(name, a.certificate(alter)) }
	with("expired a minute ago", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	with("expired in 1970", func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(0, 0), time.Unix(1, 0) })
	with("valid tomorrow", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
	})
	with("for another address", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 3)} })
	with("for another name", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"example.com"} })
	with("for the address as a name", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"127.0.0.1"} })
	with("for the address as common name", func(c *x509.Certificate) { c.IPAddresses = nil })
	with("for all names", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"*"} })
	with("for names that end so", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"*.0.0.1"} })
	with("for the address in IPv6", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP("::1")} })
	with("for a name with a NUL", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"127.0.0.1\x00.evil.test"} })
	with("for clients", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	with("for code", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} })
	with("with an unknown critical extension", func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
	})
	with("for 1,000 other names", func(c *x509.Certificate) {
		c.IPAddresses = nil
		for i := range 1000 {
			c.DNSNames = append(c.DNSNames, fmt.Sprintf("%d.example.com", i))
		}
	})
	stranger := newAuthority(a.t)
	presents("of an unknown authority", stranger.good())
	own := &x509.Certificate{SerialNumber: big.NewInt(3), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	presents("signed by itself", tls.Certificate{Certificate: [][]byte{a.sign(own, own, a.key, a.key)}, PrivateKey: a.key})
	pretender := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: a.cert.Subject, NotBefore: own.NotBefore, NotAfter: own.NotAfter, IsCA: true, BasicConstraintsValid: true}
	presents("of an authority of the same name", tls.Certificate{Certificate: [][]byte{a.sign(own, pretender, stranger.key, stranger.key)}, PrivateKey: stranger.key})
	leaf, err := x509.ParseCertificate(a.good().Certificate[0])
	if err != nil {
		a.t.Fatal(err)
	}
	presents("signed by a server's certificate", tls.Certificate{Certificate: [][]byte{a.sign(own, leaf, stranger.key, a.key), leaf.Raw}, PrivateKey: stranger.key})
	named := &x509.Certificate{
		SerialNumber: big.NewInt(5), Subject: pkix.Name{CommonName: "Constrained"}, NotBefore: own.NotBefore, NotAfter: own.NotAfter, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, ExcludedIPRanges: []*net.IPNet{{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}}, PermittedDNSDomainsCritical: true,
	}
	presents("of an authority that must not", tls.Certificate{Certificate: [][]byte{a.sign(own, named, stranger.key, stranger.key), a.sign(named, a.cert, stranger.key, a.key)}, PrivateKey: stranger.key})
	presents("with a thousand others", tls.Certificate{Certificate: append([][]byte{stranger.good().Certificate[0]}, bytes.Split(bytes.Repeat(append(stranger.cert.Raw, "--"...), 100), []byte("--"))[:100]...), PrivateKey: stranger.key})
	presents("with a key of another", tls.Certificate{Certificate: a.good().Certificate, PrivateKey: stranger.key})
	presents("that is none", tls.Certificate{Certificate: [][]byte{[]byte("certificate")}, PrivateKey: a.key})

	good := []tls.Certificate{a.good()}
	add := func(t tlsAttack) { attacks = append(attacks, t) }
	add(tlsAttack{name: "TLS 1.0 at most", serve: serveTLS(&tls.Config{Certificates: good, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, says(ok("", feed)))})
	add(tlsAttack{name: "TLS 1.1 at most", serve: serveTLS(&tls.Config{Certificates: good, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, says(ok("", feed)))})
	add(tlsAttack{name: "RC4 and 3DES only", serve: serveTLS(&tls.Config{Certificates: good, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA}}, says(ok("", feed)))})
	add(tlsAttack{name: "wants a client's certificate", serve: serveTLS(&tls.Config{Certificates: good, ClientAuth: tls.RequireAnyClientCert}, says(ok("", feed)))})
	add(tlsAttack{name: "asks for a client's certificate in TLS 1.2", serve: serveTLS(&tls.Config{Certificates: good, MaxVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}, says(ok("", feed)))})
	add(tlsAttack{name: "h2 agreed, HTTP/1.1 spoken", serve: serveTLS(&tls.Config{Certificates: good, NextProtos: []string{"h2"}}, says(ok("", feed))), asked: 1})
	add(tlsAttack{name: "HTTP/1.1 agreed, h2 spoken", serve: serveTLS(&tls.Config{Certificates: good, NextProtos: []string{"http/1.1"}}, says("\x00\x00\x00\x04\x00\x00\x00\x00\x00")), asked: 1})
	add(tlsAttack{name: "cut without close_notify", asked: 1, serve: func(conn net.Conn) {
		// Whoever is on the way can do this, and many servers do it on their own: only the
		// document tells that something is missing.
		server := tls.Server(conn, &tls.Config{Certificates: good})
		if server.Handshake() == nil {
			_, _ = server.Read(make([]byte, 4096))
			_, _ = io.WriteString(server, open("", feed[:60]))
			conn.Close()
		}
	}})
	for _, raw := range []struct {
		name, said string
	}{
		{"plain HTTP", ok("", feed)}, {"rubbish", "rubbish rubbish rubbish"}, {"SSLv3", "\x16\x03\x00\x00\x2f\x02"}, {"an alert", "\x15\x03\x03\x00\x02\x02\x28"},
		{"an unknown record", "\xff\x03\x03\x00\x02\x02\x28"}, {"a record of 64 KB", "\x16\x03\x03\xff\xff" + strings.Repeat("\x02", 65535)}, {"data before the handshake", "\x17\x03\x03\x00\x05hello"},
		{"a handshake message of 16 MB", "\x16\x03\x03\x40\x00\x0b\xff\xff\xff" + strings.Repeat("\x00", 16380)}, {"a finished message first", "\x16\x03\x03\x00\x04\x14\x00\x00\x00"},
		{"a hello request", "\x16\x03\x01\x00\x04\x00\x00\x00\x00"}, {"a server hello cut short", "\x16\x03\x03\x00\x05\x02\x00\x00\x46\x03"}, {"change cipher spec", "\x14\x03\x03\x00\x01\x01"}, {"a heartbeat", "\x18\x03\x03\x00\x03\x01\x40\x00"},
	} {
		attacks = append(attacks,
			tlsAttack{name: raw.name + " in place of TLS", serve: func(conn net.Conn) { (&visit{Conn: conn}).say(raw.said) }},
			tlsAttack{name: raw.name + " in place of TLS, then nothing", slow: true, serve: func(conn net.Conn) { hangs(raw.said)(&visit{Conn: conn}); linger(conn) }},
		)
	}
	for _, flood := range []struct{ name, piece string }{
		{"empty records", "\x16\x03\x03\x00\x00"}, {"warnings", "\x15\x03\x01\x00\x02\x01\x5a"}, {"change cipher specs", "\x14\x03\x03\x00\x01\x01"}, {"hello requests", "\x16\x03\x01\x00\x04\x00\x00\x00\x00"},
		{"plain text", "a"}, {"NULs", "\x00"},
	} {
		attacks = append(attacks, tlsAttack{name: "a flood of " + flood.name, slow: true, serve: func(conn net.Conn) { endless("", flood.piece)(&visit{Conn: conn}) }})
	}
	return append(attacks,
		tlsAttack{name: "closes at once", serve: func(net.Conn) {}},
		tlsAttack{name: "resets at once", serve: func(conn net.Conn) { (&visit{Conn: conn}).reset() }},
		tlsAttack{name: "closes after the hello", serve: func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)) }},
		tlsAttack{name: "hangs before the handshake", slow: true, serve: linger},
		tlsAttack{name: "hangs after the handshake", slow: true, asked: 1, serve: serveTLS(&tls.Config{Certificates: good}, hangs(""))},
		tlsAttack{name: "drips its hello", slow: true, serve: func(conn net.Conn) {
			serveTLS(&tls.Config{Certificates: good}, says(ok("", feed)))(&slowConn{Conn: conn})
		}},
		tlsAttack{name: "drips its answer", slow: true, asked: 1, serve: serveTLS(&tls.Config{Certificates: good}, drips("", ok("", feed)))},
		tlsAttack{name: "half an answer, and close_notify", asked: 1, serve: serveTLS(&tls.Config{Certificates: good}, says(ok("", feed)[:150]))},
	)
}

// linger keeps a connection open until the other side has left.
func linger(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.Copy(io.Discard, conn)
}

// slowConn writes a byte at a time.
type slowConn struct{ net.Conn }

func (c *slowConn) Write(b []byte) (n int, err error) {
	for i := range b {
		time.Sleep(100 * time.Millisecond)
		if _, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// serveTLS answers the request that comes over TLS, if one does.
func serveTLS(config *tls.Config, send func(*visit)) func(net.Conn) {
	return func(conn net.Conn) {
		server := tls.Server(conn, config)
		_ = server.SetDeadline(time.Now().Add(20 * time.Second))
		if server.Handshake() != nil {
			return
		}
		if n, err := server.Read(make([]byte, 8192)); n > 0 && err == nil {
			if asked, ok := conn.(interface{ count() }); ok {
				asked.count()
			}
			send(&visit{Conn: server})
		}
		server.Close()
	}
}

// tlsOrigin does one attack as soon as it is told to.
type tlsOrigin struct {
	net.Listener
	attack   *tlsAttack
	good     *tls.Config
	turned   atomic.Bool
	polls    atomic.Int64 // connections
	requests atomic.Int64
}

// countedConn counts requests for its origin.
type countedConn struct {
	net.Conn
	o *tlsOrigin
}

func (c *countedConn) count() { c.o.requests.Add(1) }

// SetLinger is that of the connection within.
func (c *countedConn) SetLinger(s int) error { return c.Conn.(*net.TCPConn).SetLinger(s) }

func newTLSOrigin(t *testing.T, a *tlsAttack, good *tls.Config) *tlsOrigin {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &tlsOrigin{Listener: l, attack: a, good: good}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			o.polls.Add(1)
			go func() {
				defer conn.Close()
				if o.turned.Load() {
					a.serve(&countedConn{conn, o})
				} else {
					serveTLS(good, says(ok("ETag: \"1\"\r\n", feed)))(conn)
				}
			}()
		}
	}()
	return o
}

func (o *tlsOrigin) url() string {
	_, port, _ := net.SplitHostPort(o.Addr().String())
	ip := "127.0.0.1"
	if o.attack.slow {
		ip = "127.0.0.2"
	}
	return "https://" + net.JoinHostPort(ip, port) + "/"
}

// attackByHandshakes has origins present bad certificates, and break or flood handshakes:
// no request leaves before the other side has shown who it is.
func attackByHandshakes(t *testing.T) {
	a := newAuthority(t)
	attackByTLS(t, a, handshakes(a), &tls.Config{Certificates: []tls.Certificate{a.good()}})
}

func attackByTLS(t *testing.T, a *authority, attacks []tlsAttack, good *tls.Config) {
	c := start(t, setup{app: impatient, site: gatewayByURL, env: []string{"SSL_CERT_FILE=" + a.file, "SSL_CERT_DIR=" + filepath.Dir(a.file)}})
	c.get("/-/about")
	took := c.costs(maxOriginCPU)
	var origins []*tlsOrigin
	for i := range attacks {
		origins = append(origins, newTLSOrigin(t, &attacks[i], good))
	}
	var all sync.WaitGroup
	for _, slow := range []bool{true, false} {
		for _, o := range origins {
			switch {
			case o.attack.slow != slow:
			case slow:
				all.Go(func() { o.cold(c) })
			default:
				took.measure(o.attack.name, func() { o.cold(c) })
			}
		}
		took.measure("all slow ones at once", all.Wait)
	}
	c.forgetPeak()
	for _, o := range origins {
		all.Go(func() { o.warm(c) })
	}
	all.Wait()
	if peak := c.peak(); peak > raced*(memorySetting+memoryBeside) {
		t.Errorf("all of them at once took %d MiB", peak)
	}
	for _, o := range origins {
		took.polls += int(o.polls.Load())
	}
	took.log(fmt.Sprintf("%d attacks, cold and warm (at once: %d MiB)", len(attacks), c.peak()))
	took.over()
}

// cold asks for a feed of the origin that was never good.
func (o *tlsOrigin) cold(c *child) {
	o.turned.Store(true)
	got := c.get(feedAt(o.url() + "cold"))
	if got.Status < 400 || strings.Contains(got.Body, "hunter2") || strings.Contains(got.Body, "<") {
		c.t.Errorf("%s, cold: %v", o.attack.name, got)
	}
	if polls, requests := o.polls.Load(), o.requests.Load(); polls != 1 || requests > int64(o.attack.asked) {
		c.t.Errorf("%s, cold: %d connections and %d requests", o.attack.name, polls, requests)
	}
	o.turned.Store(false)
}

// warm asks for one that was good until now.
func (o *tlsOrigin) warm(c *child) {
	var first answered
	for range 100 {
		if first = c.get(feedAt(o.url() + "warm")); first.Status == http.StatusOK {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if first.Status != http.StatusOK || first.Body != feed {
		c.t.Errorf("%s, before the attack: %v", o.attack.name, first)
		return
	}
	o.turned.Store(true)
	before := o.polls.Load()
	for range 200 {
		if got := c.get(feedAt(o.url() + "warm")); got.Status != http.StatusOK || got.Body != feed {
			c.t.Errorf("%s, warm: %v", o.attack.name, got)
			return
		}
		if o.polls.Load() > before {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	c.t.Errorf("%s, warm: it was not polled again", o.attack.name)
}
