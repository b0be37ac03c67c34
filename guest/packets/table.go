package main

import (
	"fmt"
	"net/netip"
	"time"
)

// table says which guest has which addresses. An address belongs to one guest at a time: the one put last.
type table struct {
	guests    map[mac]*guest
	byAddress map[netip.Addr]*guest
	// confirmed has the addresses that their guests may have without a probe, while the table is fresh.
	confirmed  map[netip.Addr]bool
	isComplete bool // a snapshot has ended
	freshUntil time.Time
	// snapshot counts the snapshots that began. A guest has the number of the one in which it was put.
	snapshot   uint64
	isSnapshot bool
}

// guest is an interface of a guest, with what the helper remembers of it.
type guest struct {
	mac      mac
	owner    string    // other guests with it are interfaces of the same VM; may be empty
	ipv4     entryIPv4 // without an address: none
	ipv6     netip.Addr
	options  *optionSet
	names    names
	dhcp4    []option
	since    time.Time // when its addresses changed
	snapshot uint64

	limiter      limiter // of DHCP and router solicitations
	neighbour    limiter // of questions for our own addresses
	routed       limiter // of renewals through a router, which anybody behind it can send
	advertisedAt time.Time
	advertiseAt  time.Time
}

func newTable() *table {
	return &table{guests: map[mac]*guest{}, byAddress: map[netip.Addr]*guest{}, confirmed: map[netip.Addr]bool{}}
}

func (t *table) begin() {
	t.snapshot++
	t.isSnapshot = true
}

// end removes the guests that were not put since begin.
func (t *table) end() error {
	if !t.isSnapshot {
		return fmt.Errorf("snapshot end without begin")
	}
	for address, each := range t.guests {
		if each.snapshot != t.snapshot {
			t.remove(address)
		}
	}
	if len(t.guests) > maxEntries {
		return errTableFull
	}
	t.isSnapshot, t.isComplete = false, true
	return nil
}

var errTableFull = fmt.Errorf("more than %d entries", maxEntries)

// makeRoom makes room for one more guest. A snapshot gets twice as much: the guests that it replaces stay until its end.
// They go earlier if even this is full, because snapshots that never ended have left theirs, too.
func (t *table) makeRoom() error {
	if len(t.guests) < maxEntries || t.isSnapshot && len(t.guests) < 2*maxEntries {
		return nil
	}
	for address, each := range t.guests {
		if t.isSnapshot && each.snapshot != t.snapshot {
			t.remove(address)
			return nil
		}
	}
	return errTableFull
}

// put adds or replaces a guest's entry.
func (t *table) put(now time.Time, put entry, options *optionSet) error {
	to, exists := t.guests[put.MAC]
	if !exists {
		if err := t.makeRoom(); err != nil {
			return err
		}
		to = &guest{mac: put.MAC, since: now, limiter: newLimiter(guestBurst, guestRate), neighbour: newLimiter(guestBurst, guestRate), routed: newLimiter(guestBurst, guestRate)}
		t.guests[put.MAC] = to
	}
	var ipv4 entryIPv4
	var ipv6 netip.Addr
	if put.IPv4 != nil {
		ipv4 = *put.IPv4
	}
	if put.IPv6 != nil {
		ipv6 = put.IPv6.Address
	}
	if to.ipv4.Address != ipv4.Address || to.ipv6 != ipv6 {
		t.forget(to)
		to.since = now
		t.take(ipv4.Address, to)
		t.take(ipv6, to)
	}
	to.owner, to.ipv4, to.ipv6, to.options, to.snapshot = put.Owner, ipv4, ipv6, options, t.snapshot
	to.names, to.dhcp4 = names{put.Hostname, put.FQDN}, put.DHCP4
	return nil
}

// take gives an address to a guest, and takes it from another one.
func (t *table) take(address netip.Addr, to *guest) {
	if !address.IsValid() {
		return
	}
	if former := t.byAddress[address]; former != nil && address.Is4() {
		former.ipv4 = entryIPv4{}
	} else if former != nil {
		former.ipv6 = netip.Addr{}
	}
	t.byAddress[address] = to
	delete(t.confirmed, address)
}

// forget removes the addresses of a guest from the index.
func (t *table) forget(of *guest) {
	for _, address := range []netip.Addr{of.ipv4.Address, of.ipv6} {
		delete(t.byAddress, address)
		delete(t.confirmed, address)
	}
}

func (t *table) remove(address mac) {
	if found := t.guests[address]; found != nil {
		t.forget(found)
		delete(t.guests, address)
	}
}

// guest returns the guest with a MAC address, or nil. A table that was never complete has none.
func (t *table) guest(address mac) *guest {
	if !t.isComplete {
		return nil
	}
	return t.guests[address]
}

// isOwn returns whether a MAC address belongs to the VM that has an address. All interfaces of a VM on one segment may
// answer ARP requests for each of its addresses, as those of Linux do.
func (t *table) isOwn(address netip.Addr, from mac) bool {
	owner, other := t.byAddress[address], t.guests[from]
	return owner != nil && other != nil && (owner == other || owner.owner != "" && owner.owner == other.owner)
}

func (t *table) setFresh(now time.Time, duration time.Duration) {
	t.freshUntil = now.Add(duration)
}

// isFresh returns whether no other guest can have got an address of the table since.
func (t *table) isFresh(now time.Time) bool {
	return now.Before(t.freshUntil)
}
