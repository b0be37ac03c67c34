package main

import (
	"maps"
	"net/netip"
	"time"
)

const (
	// The same thing is reported once in this time.
	seenEvery = time.Minute
	maxSeen   = 1024
	// All reports.
	seenBurst, seenRate = 20, 20
	// A switch may deliver frames of the former guest for a while.
	moveTime = 5 * time.Second
)

// heard takes note of a host that uses an address.
func (r *responder) heard(now time.Time, from mac, address netip.Addr) {
	r.heardProbe(from, address)
	if r.config.Server.IPv4 == address {
		r.see(now, seenConflict, from, address)
	}
	owner := r.table.byAddress[address]
	if owner != nil && r.table.isComplete && owner.mac != from && now.Sub(owner.since) > moveTime {
		r.see(now, seenConflict, from, address)
	}
}

// see reports something, unless it was reported a short time ago or there is too much to report.
func (r *responder) see(now time.Time, kind string, from mac, address netip.Addr) {
	what := seen{kind, from, address}
	if at, exists := r.seen[what]; exists && now.Sub(at) < seenEvery {
		return
	}
	if !r.seenLimiter.allow(now) {
		r.drop(dropReports)
		return
	}
	if len(r.seen) >= maxSeen {
		maps.DeleteFunc(r.seen, func(_ seen, at time.Time) bool { return now.Sub(at) >= seenEvery })
	}
	if len(r.seen) >= maxSeen {
		r.drop(dropReports)
		return
	}
	r.seen[what] = now
	r.report(report{Seen: &what})
}
