package main

import (
	"net/netip"
	"slices"
	"time"

	"github.com/mdlayher/ndp"
)

// Before an address is given to a guest, we ask on the wire whether another host has it. While the table is stale,
// another guest may have got the address, so we ask each time. While it is fresh, we ask only the first time: a former
// guest of the address may have it from a responder whose table was behind.

const (
	probeTries    = 2
	probeInterval = 150 * time.Millisecond
	maxProbes     = 4096 // at one time
	// A host that has so many addresses of guests is a proxy, or an attacker.
	proxyAddresses = 3
	maxProxies     = 256
)

// probe is a question for an address, and the answer to the guest if nobody else has the address.
type probe struct {
	guest  mac
	tries  int
	answer func()
}

// afterProbe gives an answer if no other host has the address. A later request for the same address replaces the answer.
func (r *responder) afterProbe(guest mac, address netip.Addr, answer func()) {
	if running := r.probes[address]; running != nil {
		running.guest, running.answer = guest, answer
		return
	}
	if len(r.probes) >= maxProbes {
		r.drop(dropLimited)
		return
	}
	started := &probe{guest: guest, answer: answer}
	r.probes[address] = started
	r.proceed(address, started)
}

// proceed sends the next question, or the answer to the guest. Each probe has a timer of its own: with a common tick, the
// guest would wait for that too.
func (r *responder) proceed(address netip.Addr, of *probe) {
	if of.tries < probeTries {
		of.tries++
		r.ask(address)
		r.after(probeInterval, func(time.Time) {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			if r.probes[address] == of { // else another host has the address
				r.proceed(address, of)
			}
		})
		return
	}
	delete(r.probes, address)
	if owner := r.table.byAddress[address]; owner != nil && owner.mac == of.guest && !r.isQuiet {
		r.table.confirmed[address] = true
		of.answer()
	}
}

// ask returns whether the question was sent.
func (r *responder) ask(address netip.Addr) bool {
	frame, err := probeFrame(r.link.mac(), address)
	if err != nil {
		r.drop(dropUnsent)
		return false
	}
	return r.send(frame)
}

// heardProbe takes note of a host that has an address, or itself asks whether another host has it.
func (r *responder) heardProbe(now time.Time, from mac, address netip.Addr) {
	r.heardAnswer(from, address)
	if r.table.byAddress[address] == nil || r.table.isOwn(address, from) {
		return
	}
	delete(r.table.confirmed, address)
	if r.probes[address] == nil {
		return
	}
	r.see(now, seenConflict, from, address)
	if r.isProxy(from, address) && r.table.isFresh(now) {
		return // it must not keep all guests from their addresses
	}
	delete(r.probes, address)
	r.drop(dropTaken)
}

// isProxy returns whether a host was heard for many addresses that we asked for.
func (r *responder) isProxy(from mac, address netip.Addr) bool {
	heard := r.proxies[from]
	if len(heard) < proxyAddresses && !slices.Contains(heard, address) {
		if heard == nil && len(r.proxies) >= maxProxies {
			clear(r.proxies)
		}
		heard = append(heard, address)
		r.proxies[from] = heard
	}
	return len(heard) >= proxyAddresses
}

// probeMark is the target's MAC address in ARP probes of responders (RFC 5227), which hosts ignore. Two responders probe the
// same address at the same time, because guests ask both. Neither of them uses it. A host that forges the mark hides only
// its own probe.
var probeMark = mac{2, 'p', 'r', 'o', 'b', 'e'}

// probeFrame returns a question that hosts answer who have the address, and that responders do not take for a conflict.
func probeFrame(own mac, address netip.Addr) ([]byte, error) {
	if address.Is4() {
		return arp{arpRequest, own, noIPv4, probeMark, address}.frame(broadcastMAC), nil
	}
	group := solicitedNode(address)
	return ndpFrame(own, groupMAC(group), group, &ndp.NeighborSolicitation{
		TargetAddress: address,
		Options:       []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: own[:]}},
	})
}
