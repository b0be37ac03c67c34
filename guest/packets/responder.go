package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// responder answers frames from the table. It decides nothing: which guest, address, option and time comes from the
// process "responder". The time is a parameter, so that tests need not wait.
type responder struct {
	mutex   sync.Mutex
	open    func(name string) (link, error)
	report  func(report) bool // to the newest connection; false if it is dropped
	random  func(below int) int
	after   func(wait time.Duration, run func(now time.Time)) // runs it once
	config  *config
	link    link
	isQuiet bool // the interface has an address of the kernel, or there is no link
	table   *table
	session uint64                // the number of the newest connection
	options map[string]*optionSet // of the newest connection
	isWhole bool                  // the newest connection has sent a whole table

	strangers limiter // answers to ARP and neighbour discovery of hosts that are not in the table
	pings     limiter // answers to pings of these hosts: through a router, the whole network can send them
	probes    map[netip.Addr]*probe
	questions []*openQuestion           // of the newest connection
	proxies   map[mac][]netip.Addr      // that were heard for these addresses
	seen      map[string]*recentReports // by kind
	counter   counter

	announcements int // of the server's address that are still due
	announceAt    time.Time
	reportedAt    time.Time // groups
	reportAt      time.Time
	searchAt      time.Time // for other servers and routers
	checkAt       time.Time // whether the interface has an address
	scannedAt     time.Time // the table, for advertisements that are due
}

// link is the interface on which the guests are.
type link interface {
	mac() mac
	hasAddress() (bool, error)
	send(frame []byte) error
	lost() uint64
}

func newResponder(
	open func(name string) (link, error), send func(report) bool, random func(below int) int, after func(time.Duration, func(time.Time)),
) *responder {
	return &responder{
		open: open, report: send, random: random, after: after, table: newTable(), isQuiet: true,
		probes: map[netip.Addr]*probe{}, proxies: map[mac][]netip.Addr{}, seen: map[string]*recentReports{}, counter: newCounter(),
		strangers: newLimiter(strangerBurst, strangerRate), pings: newLimiter(strangerBurst, strangerRate),
	}
}

// connected returns the number of a new connection. Older ones can no longer give commands.
func (r *responder) connected() uint64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.session++
	r.options = map[string]*optionSet{}
	r.questions = nil
	r.table.isSnapshot = false
	r.isWhole = false
	return r.session
}

var errReplaced = errors.New("a newer connection replaced this one")

// obey carries out a command. An error ends the connection.
func (r *responder) obey(now time.Time, session uint64, c *command) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if session != r.session {
		return errReplaced
	}
	if c.Config != nil {
		return r.configure(now, c.Config)
	}
	switch {
	case r.config == nil:
		return errors.New("the first command is not config")
	case c.Options != nil:
		if _, exists := r.options[c.Options.ID]; !exists && len(r.options) >= maxOptionSets {
			return fmt.Errorf("more than %d sets of options", maxOptionSets)
		}
		c.Options.encodeDHCP4()
		r.options[c.Options.ID] = c.Options
	case c.Probe != nil:
		r.startQuestion(now, *c.Probe)
	case c.Put != nil:
		return r.put(now, c.Put)
	case c.Remove != nil:
		for _, each := range c.Remove {
			r.table.remove(each)
		}
	case c.Forget != nil:
		for _, each := range c.Forget {
			delete(r.options, each)
		}
	case c.Snapshot == "begin":
		r.table.begin()
		r.isWhole = false
	case c.Snapshot == "end":
		r.isWhole = true
		return r.table.end()
	case !r.isWhole:
		return errors.New("fresh before the end of a snapshot: the table may have entries that are gone")
	default:
		r.table.setFresh(now, time.Duration(c.Fresh.ForMs)*time.Millisecond)
	}
	return nil
}

func (r *responder) put(now time.Time, entries []entry) error {
	for _, each := range entries {
		options := r.options[each.Options]
		if options == nil {
			return fmt.Errorf("entry %s names options %q, which were not sent", each.MAC, each.Options)
		}
		if err := r.table.put(now, each, options); err != nil {
			return err
		}
	}
	return nil
}

func (r *responder) configure(now time.Time, to *config) error {
	if r.link == nil {
		opened, err := r.open(to.Interface)
		if err != nil {
			return fmt.Errorf("interface %s: %w", to.Interface, err)
		}
		r.link = opened
	} else if to.Interface != r.config.Interface {
		return fmt.Errorf("the interface changed from %s to %s: restart the pod", r.config.Interface, to.Interface)
	}
	hasAddress, err := r.link.hasAddress()
	if err != nil {
		return fmt.Errorf("addresses of interface %s: %w", to.Interface, err)
	}
	if r.config == nil || r.config.Server.IPv4 != to.Server.IPv4 {
		r.announcements, r.announceAt = announcements, now
	}
	r.config, r.checkAt = to, now.Add(checkEvery)
	r.greet(hasAddress)
	return nil
}

func (r *responder) greet(hasAddress bool) {
	r.isQuiet = hasAddress
	r.report(report{Hello: &hello{Version: protocolVersion, MAC: r.link.mac(), Address: hasAddress}})
}

// checkAddress looks again, after the config, whether the interface has an address. The kernel would answer ARP for it.
func (r *responder) checkAddress(now time.Time) {
	if now.Before(r.checkAt) {
		return
	}
	r.checkAt = now.Add(checkEvery)
	// An interface that is gone ends the program.
	if hasAddress, err := r.link.hasAddress(); err == nil && hasAddress != r.isQuiet {
		r.greet(hasAddress)
	}
}

const (
	checkEvery    = 10 * time.Second
	announcements = 2 // RFC 5227
	announceEvery = 2 * time.Second
)

// tick does what is due. It is called several times a second.
func (r *responder) tick(now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.config != nil {
		r.reportCounts(now)
		r.checkAddress(now)
	}
	if r.isQuiet {
		return
	}
	if r.announcements > 0 && !now.Before(r.announceAt) {
		r.announcements--
		r.announceAt = now.Add(announceEvery)
		r.announceARP()
	}
	r.reportGroups(now)
	r.search(now)
	r.advertiseToAll(now)
	r.proceedQuestions(now)
}

// receive handles a frame. Whatever a guest sends, the next frame is handled.
func (r *responder) receive(now time.Time, frame []byte, sums checksums) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.isQuiet {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			if r.drop(dropFailed); r.counter.dropped[dropFailed] == 1 { // else a guest could fill the log
				slog.Error("a frame could not be handled", "error", fmt.Sprint(cause), "frame", hex.EncodeToString(frame))
			}
		}
	}()
	if len(frame) < etherLength || len(frame) > maxFrame {
		r.drop(dropMalformed)
		return
	}
	from, body := mac(frame[6:12]), frame[etherLength:]
	if from.isGroup() || from.isZero() || from == r.link.mac() {
		r.drop(dropMalformed)
		return
	}
	switch uint16(frame[12])<<8 | uint16(frame[13]) {
	case etherARP:
		r.receiveARP(now, from, body)
	case etherIPv4:
		if !isIntactIPv4(body, sums) {
			r.drop(dropCorrupt)
			return
		}
		r.receiveIPv4(now, from, body)
	case etherIPv6:
		if sums == checksumsUnknown && !isIntactIPv6(body) {
			r.drop(dropCorrupt)
			return
		}
		r.receiveIPv6(now, from, body)
	}
}

func (r *responder) receiveIPv4(now time.Time, from mac, body []byte) {
	if len(body) >= 20 && body[9] == protocolICMP {
		r.receivePing(now, from, body)
		return
	}
	got, ok := parseIPv4(body)
	switch {
	case ok && got.to.Port() == dhcp4Server:
		r.receiveDHCP4(now, from, got)
	case ok && got.to.Port() == dhcp4Client:
		r.heardServer4(now, from, got)
	default:
		r.drop(dropMalformed)
	}
}

// admit returns the guest of a MAC address; nil if there is none, or if it sends too much.
func (r *responder) admit(now time.Time, from mac) *guest {
	found := r.table.guest(from)
	if found == nil {
		r.drop(dropUnknown)
		return nil
	}
	if !found.limiter.allow(now) {
		r.drop(dropLimited)
		address := found.ipv4.Address
		if !address.IsValid() {
			address = found.ipv6
		}
		r.see(now, seenOverloaded, from, address)
		return nil
	}
	return found
}

// allow returns whether a host may have an answer about our own addresses. A guest of the table has a limiter of its own.
func (r *responder) allow(now time.Time, from mac, strangers *limiter) bool {
	limiter := strangers
	if guest := r.table.guest(from); guest != nil {
		limiter = &guest.neighbour
	}
	if limiter.allow(now) {
		return true
	}
	r.drop(dropLimited)
	return false
}

// send returns whether the kernel took the frame.
func (r *responder) send(frame []byte) bool {
	if len(frame) > maxFrame || r.link.send(frame) != nil {
		r.drop(dropUnsent)
		return false
	}
	return true
}
