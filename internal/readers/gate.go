// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math/bits"
	"net/http"
)

// defaultGuests is how many readers of feeds a gate remembers if nothing is said.
const defaultGuests = 32768

// Gate remembers what a [Defence] has to know of readers, and applies it.
//
// A reader is told from others by its whole User-Agent, its token and its full
// address, of which only hashes are stored, with a key that is not told: people
// behind one address (NAT) with different readers are not judged as one. The
// machines of one operator in one network are: see [fleet].
//
// Its memory is bounded. A reader that is forgotten, as the one that was longest
// not seen, is met like a new one. It has no clock, and is safe for concurrent use.
type Gate struct {
	seed   seed
	agents agents
	guests *table[State]
	fleets *table[fleet]
}

// NewGate returns a gate that remembers so many readers of feeds, at about 200
// bytes each; 0: 32768.
func NewGate(readers int) *Gate {
	if readers <= 0 {
		readers = defaultGuests
	}
	s := newSeed(0)
	return &Gate{s, newAgents(s), newTable[State](readers), newTable[fleet](max(readers/4, 1))}
}

// fleet is what came with one User-Agent and token from one network (IPv4 /24,
// IPv6 /64) for one feed. Its addresses are taken for the machines of one reader
// when they behave so, and by nothing less: several of them came back for the whole
// feed, again and again, and hardly any request was conditional.
type fleet struct {
	state       State
	addresses   uint64 // bits that full addresses hash to
	asked       int32  // GETs
	conditional int32  // GETs with validators
	again       int32  // unconditional GETs from addresses that had been sent the whole feed
}

const (
	fleetAddresses = 3
	fleetAgain     = 4
	// fleetMemory is after how many requests the older half counts half: an
	// operator that mends its ways is believed.
	fleetMemory = 256
)

// proven reports whether the fleet is one reader. What names a person's system or
// a library that anybody uses never is: its addresses may be a provider's customers.
func (f *fleet) proven(a *Agent) bool {
	return a.hosted() && bits.OnesCount64(f.addresses) >= fleetAddresses &&
		f.again >= fleetAgain && f.conditional*8 < f.asked
}

func (f *fleet) note(r *Request, address uint64, served bool) {
	f.addresses |= 1 << (address >> 58)
	if r.Method != http.MethodGet {
		return
	}
	f.asked++
	if r.Conditional() {
		f.conditional++
	}
	if served && r.whole() {
		f.again++
	}
	if f.asked >= fleetMemory {
		f.asked, f.conditional, f.again = f.asked/2, f.conditional/2, f.again/2
	}
}

// guest is the keys of who makes a request.
type guest struct {
	agent               agent
	address, key, fleet uint64
}

func (g *Gate) guest(r *Request) guest {
	a := g.agents.find(r.UserAgent)
	v := guest{agent: a, address: g.seed.address(r.Client.Unmap())}
	same := join(join(g.seed.text(r.Feed), a.key), g.seed.text(r.Token))
	v.key = join(same, v.address)
	v.fleet = join(same, g.seed.address(network(r.Client).Addr()))
	return v
}

// Judge decides on a request before it is answered. A request that it lets pass
// is reported by [Gate.Answered] when it has been answered. One that a 304 answers
// waits for no lock.
func (g *Gate) Judge(d Defence, r Request) Verdict {
	if r.Browser {
		return Verdict{}
	}
	v := g.guest(&r)
	if r.Validators == ValidatorsCurrent {
		// A hit waits for nobody. What it says of its fleet, another one will say again.
		g.fleets.try(v.fleet, func(f *fleet, _ bool) { f.note(&r, v.address, false) })
		return Verdict{}
	}
	var own State
	g.guests.update(v.key, func(s *State, _ bool) { own = *s })
	if own.person(*v.agent.Agent, &r) {
		return Verdict{}
	}
	judged := own
	g.fleets.update(v.fleet, func(f *fleet, _ bool) {
		f.note(&r, v.address, !own.Full.IsZero())
		if f.proven(v.agent.Agent) {
			judged = f.state
			judged.Told, judged.Shown = own.Told, own.Shown // each machine is told its own wait
		}
	})
	verdict := d.Judge(*v.agent.Agent, judged, &r)
	if verdict.Status == http.StatusTooManyRequests {
		g.guests.update(v.key, func(s *State, _ bool) { s.Told = verdict.Until })
	}
	return verdict
}

// Answered records the answer to a request that was let pass.
func (g *Gate) Answered(d Defence, r Request) {
	if r.Browser || r.Status == http.StatusNotModified {
		return // which counts for nothing
	}
	v := g.guest(&r)
	g.guests.update(v.key, func(s *State, _ bool) {
		*s = d.Answered(*s, &r)
		if v.agent.Kind == KindBrowser && r.Method == http.MethodGet && r.Status == http.StatusOK {
			s.Shown++
		}
	})
	g.fleets.update(v.fleet, func(f *fleet, _ bool) { f.state = d.Answered(f.state, &r) })
}
