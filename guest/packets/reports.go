package main

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

const countsEvery = 10 * time.Second

// Reasons why a frame, a report or a probe is dropped.
const (
	dropUnknown   = "unknown"   // not from a guest of the table
	dropLimited   = "limited"   // from somebody who sends too much
	dropMalformed = "malformed" // not a whole message, or it names another MAC address
	dropCorrupt   = "corrupt"   // a checksum is wrong
	dropTaken     = "taken"     // another host has the address of the guest
	dropLost      = "lost"      // by the kernel: the ring was full
	dropUnsent    = "unsent"    // an answer that the kernel did not take
	dropFailed    = "failed"    // a defect of this program
	dropReports   = "reports"   // too much to report
	dropQuestions = "questions" // too many probes at one time
)

// counter counts what happens until it is reported.
type counter struct {
	exchanges map[exchange]uint64
	dropped   map[string]uint64
	since     time.Time
}

func newCounter() counter {
	return counter{exchanges: map[exchange]uint64{}, dropped: map[string]uint64{}}
}

func (r *responder) count(protocol, message, answer string) {
	r.counter.exchanges[exchange{protocol, message, answer}]++
}

func (r *responder) drop(reason string) { r.counter.dropped[reason]++ }

// reportCounts reports the counts that are due. Counts that nobody receives are kept.
func (r *responder) reportCounts(now time.Time) {
	if now.Sub(r.counter.since) < countsEvery {
		return
	}
	r.counter.since = now
	if lost := r.link.lost(); lost > 0 {
		r.counter.dropped[dropLost] += lost
	}
	all := counts{Exchanges: []exchangeCount{}, Dropped: r.counter.dropped}
	for what, count := range r.counter.exchanges {
		all.Exchanges = append(all.Exchanges, exchangeCount{what, count})
	}
	slices.SortFunc(all.Exchanges, func(a, b exchangeCount) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Answer, b.Answer))
	})
	if r.report(report{Counts: &all}) {
		r.counter = newCounter()
		r.counter.since = now
	}
}

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
