// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers for all names.
type nameServer struct {
	conn net.PacketConn

	mu    sync.Mutex // guards asked
	asked map[string]int
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &nameServer{conn: conn, asked: make(map[string]int)}
	go s.serve()
	return s
}

func (s *nameServer) serve() {
	b := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.fill(&m)
		if reply, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(reply, from) // the client asks again if it does not get it
		}
	}
}

// fill answers a question. Questions for both families count as one.
func (s *nameServer) fill(m *dnsmessage.Message) {
	q := m.Questions[0]
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	s.mu.Lock()
	n := s.asked[name]
	if q.Type == dnsmessage.TypeA {
		s.asked[name]++
	}
	s.mu.Unlock()
	addresses := namesOf(name, n)
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if addresses == nil {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addresses {
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
}
