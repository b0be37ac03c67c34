package main

import (
	"net/netip"
	"time"
)

// While the table is stale, another guest may have got an address. So before the address is given to a guest again, we
// ask on the wire whether another host has it.

const (
	probeTries    = 2
	probeInterval = 150 * time.Millisecond
	maxProbes     = 512 // at one time
)

// probe is a question for an address, and the answer to the guest if nobody else has the address.
type probe struct {
	guest  mac
	tries  int
	nextAt time.Time
	answer func()
}

// afterProbe gives an answer if no other host has the address. A later request for the same address replaces the answer.
func (r *responder) afterProbe(now time.Time, guest mac, address netip.Addr, answer func()) {
	if running := r.probes[address]; running != nil {
		running.guest, running.answer = guest, answer
		return
	}
	if len(r.probes) >= maxProbes {
		r.drop(dropLimited)
		return
	}
	r.probes[address] = &probe{guest: guest, nextAt: now, answer: answer}
	r.probe(now)
}

// probe sends the questions that are due, and the answers to guests.
func (r *responder) probe(now time.Time) {
	for address, each := range r.probes {
		switch {
		case now.Before(each.nextAt):
		case each.tries < probeTries:
			each.tries++
			each.nextAt = now.Add(probeInterval)
			r.ask(address)
		default:
			delete(r.probes, address)
			if owner := r.table.byAddress[address]; owner != nil && owner.mac == each.guest {
				each.answer()
			}
		}
	}
}

func (r *responder) ask(address netip.Addr) {
	if address.Is4() {
		r.probeARP(address)
	} else {
		r.probeNDP(address)
	}
}

// heardProbe takes note of a host that itself asks whether an address is in use.
func (r *responder) heardProbe(from mac, address netip.Addr) {
	if running := r.probes[address]; running != nil && running.guest != from {
		delete(r.probes, address)
		r.drop(dropTaken)
	}
}
