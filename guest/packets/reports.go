package main

import (
	"net/netip"
	"time"
)

const (
	// The same thing is reported once in this time.
	seenEvery = time.Minute
	// Reports of one kind. A host that forges frames must not hide what others do, so there are few reports in a minute
	// about one address and about one MAC address.
	seenBurst, seenRate = 20, 20
	maxSeenOfAddress    = 4
	maxSeenOfMAC        = 16
)

// recentReports are those of one kind in the last minute. Their number follows from their rate.
type recentReports struct {
	limiter   limiter
	since     time.Time
	reported  map[seen]bool
	ofAddress map[netip.Addr]int
	ofMAC     map[mac]int
}

// see reports something, unless it was reported a short time ago or there is too much to report.
func (r *responder) see(now time.Time, kind string, from mac, address netip.Addr) {
	of := r.seen[kind]
	if of == nil {
		of = &recentReports{limiter: newLimiter(seenBurst, seenRate)}
		r.seen[kind] = of
	}
	if of.reported == nil || now.Sub(of.since) >= seenEvery {
		of.since = now
		of.reported, of.ofAddress, of.ofMAC = map[seen]bool{}, map[netip.Addr]int{}, map[mac]int{}
	}
	what := seen{kind, from, address}
	if of.reported[what] {
		return
	}
	if of.ofAddress[address] >= maxSeenOfAddress || of.ofMAC[from] >= maxSeenOfMAC || !of.limiter.allow(now) {
		r.drop(dropReports)
		return
	}
	of.reported[what] = true
	of.ofAddress[address]++
	of.ofMAC[from]++
	r.report(report{Seen: &what})
}
