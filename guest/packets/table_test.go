package main

import (
	"net/netip"
	"testing"
	"time"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func macOf(number int) mac { return mac{2, 0, 0, 0, byte(number >> 8), byte(number)} }

func entryOf(number int, ipv4, ipv6 string) entry {
	made := entry{MAC: macOf(number), Options: "o1"}
	if ipv4 != "" {
		made.IPv4 = &entryIPv4{Address: netip.MustParseAddr(ipv4), Prefix: 24}
	}
	if ipv6 != "" {
		made.IPv6 = &entryIPv6{Address: netip.MustParseAddr(ipv6)}
	}
	return made
}

func (t *table) mustPut(test *testing.T, entries ...entry) {
	test.Helper()
	for _, each := range entries {
		if err := t.put(start, each, &optionSet{}); err != nil {
			test.Fatal(err)
		}
	}
}

func TestTableIsNotUsedBeforeItsFirstSnapshotEnds(t *testing.T) {
	table := newTable()
	table.begin()
	table.mustPut(t, entryOf(10, "10.1.0.10", ""))
	if table.guest(macOf(10)) != nil {
		t.Fatal("an incomplete table is used")
	}
	if err := table.end(); err != nil || table.guest(macOf(10)) == nil {
		t.Fatalf("a complete table is not used: %v", err)
	}
	table.begin()
	if table.guest(macOf(10)) == nil {
		t.Fatal("a table that was complete is not used during a later snapshot")
	}
}

func TestSnapshotRemovesGuestsThatWereNotPut(t *testing.T) {
	table := newTable()
	table.begin()
	table.mustPut(t, entryOf(10, "10.1.0.10", ""), entryOf(11, "10.1.0.11", "fd00::11"))
	table.end()
	table.begin()
	table.mustPut(t, entryOf(10, "10.1.0.10", ""))
	table.end()
	if table.guest(macOf(10)) == nil || table.guest(macOf(11)) != nil || len(table.byAddress) != 1 {
		t.Fatalf("%+v", table)
	}
}

func TestAddressHasOneGuest(t *testing.T) {
	table := newTable()
	table.begin()
	table.end()
	table.mustPut(t, entryOf(10, "10.1.0.10", "fd00::10"), entryOf(11, "10.1.0.10", ""))
	if table.guest(macOf(10)).ipv4.Address.IsValid() || table.byAddress[netip.MustParseAddr("10.1.0.10")].mac != macOf(11) {
		t.Fatalf("two guests have an address: %+v", table.guests)
	}
	// Two guests exchange their addresses.
	table.mustPut(t, entryOf(10, "10.1.0.10", ""), entryOf(11, "10.1.0.11", ""))
	table.mustPut(t, entryOf(10, "10.1.0.11", ""), entryOf(11, "10.1.0.10", ""))
	for number, want := range map[int]string{10: "10.1.0.11", 11: "10.1.0.10"} {
		found := table.guest(macOf(number))
		if found.ipv4.Address.String() != want || table.byAddress[found.ipv4.Address] != found {
			t.Fatalf("guest %d has %s", number, found.ipv4.Address)
		}
	}
	table.remove(macOf(10))
	table.remove(macOf(11))
	if len(table.byAddress) != 0 {
		t.Fatalf("addresses remain: %v", table.byAddress)
	}
}

func TestGuestKeepsItsLimiterWhenItsEntryChanges(t *testing.T) {
	table := newTable()
	table.begin()
	table.end()
	table.mustPut(t, entryOf(10, "10.1.0.10", ""))
	for table.guest(macOf(10)).limiter.allow(start) {
	}
	table.mustPut(t, entryOf(10, "10.1.0.11", ""))
	if table.guest(macOf(10)).limiter.allow(start) {
		t.Fatal("a changed entry allows another burst")
	}
}

func TestTableIsBounded(t *testing.T) {
	table := newTable()
	for number := range maxEntries {
		made := entry{MAC: macOf(number), IPv6: &entryIPv6{netip.AddrFrom16([16]byte{0xfd, 14: byte(number >> 8), 15: byte(number)})}}
		table.mustPut(t, made)
	}
	if err := table.put(start, entryOf(maxEntries, "10.1.0.10", ""), &optionSet{}); err == nil {
		t.Fatal("the table takes more entries than it may have")
	}
}

// entriesFrom returns as many entries as a table may have.
func entriesFrom(first int) []entry {
	made := make([]entry, maxEntries)
	for index := range made {
		number := first + index
		made[index] = entry{
			MAC:  mac{2, 0, 0, byte(number >> 16), byte(number >> 8), byte(number)},
			IPv4: &entryIPv4{Address: netip.AddrFrom4([4]byte{10, byte(number >> 16), byte(number >> 8), byte(number)}), Prefix: 8},
		}
	}
	return made
}

// The process responder starts again beside a helper whose table is full, and guests were replaced meanwhile.
func TestFullTableIsReplacedByASnapshot(t *testing.T) {
	table := newTable()
	for _, first := range []int{0, 1, 1 + maxEntries} {
		table.begin()
		table.mustPut(t, entriesFrom(first)...)
		if err := table.end(); err != nil || len(table.guests) != maxEntries || len(table.byAddress) != maxEntries {
			t.Fatalf("%d guests after the snapshot from %d: %v", len(table.guests), first, err)
		}
	}
}

func TestSnapshotsThatNeverEndFillNoMemory(t *testing.T) {
	table := newTable()
	for number := range 4 {
		table.begin() // the connection ended before "end"
		table.mustPut(t, entriesFrom(number*maxEntries)...)
		if len(table.guests) > 2*maxEntries {
			t.Fatalf("%d guests", len(table.guests))
		}
	}
	if err := table.end(); err != nil || len(table.guests) != maxEntries {
		t.Fatalf("%d guests: %v", len(table.guests), err)
	}
}

func TestSnapshotIsBounded(t *testing.T) {
	table := newTable()
	table.begin()
	table.mustPut(t, entriesFrom(0)...)
	table.mustPut(t, entriesFrom(maxEntries)[:1]...)
	if err := table.end(); err == nil {
		t.Fatal("a snapshot has more entries than a table may have")
	}
	table.mustPut(t, entriesFrom(maxEntries)...)
	if err := table.put(start, entriesFrom(2 * maxEntries)[0], &optionSet{}); err == nil {
		t.Fatal("a snapshot has more than twice the entries that a table may have")
	}
}

func TestFreshnessEndsByItself(t *testing.T) {
	table := newTable()
	if table.isFresh(start) {
		t.Fatal("fresh without a word from the process responder")
	}
	table.setFresh(start, 30*time.Second)
	if !table.isFresh(start.Add(29*time.Second)) || table.isFresh(start.Add(30*time.Second)) {
		t.Fatal("not fresh for 30 seconds")
	}
}

func TestLimiterRefills(t *testing.T) {
	limiter := newLimiter(guestBurst, guestRate)
	allowed := func(now time.Time) (count int) {
		for limiter.allow(now) {
			count++
		}
		return count
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 20}, {0, 0}, {time.Second, 5}, {2 * time.Second, 5}, {time.Hour, 20}} {
		if got := allowed(start.Add(step.after)); got != step.want {
			t.Errorf("%d allowed after %s, not %d", got, step.after, step.want)
		}
	}
}
