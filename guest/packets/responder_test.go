package main

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"
)

var (
	ownMAC    = mac{2, 0, 0, 0, 0, 1}
	ownIPv4   = netip.MustParseAddr("10.1.0.2")
	guestMAC  = mac{2, 0, 0, 0, 0, 0xa} // in the table, with all options
	guestIPv4 = netip.MustParseAddr("10.1.0.10")
	guestIPv6 = netip.MustParseAddr("fd00:1::a")
	plainMAC  = mac{2, 0, 0, 0, 0, 0xb} // in the table, without a default route and options
	otherMAC  = mac{2, 0, 0, 0, 0, 0x99}
)

func noRandom(int) int { return 0 }

func noTimers(time.Duration, func(time.Time)) {}

// testLink is an interface of which a test sees the frames.
type testLink struct {
	address bool
	failed  error // of all frames
	sent    [][]byte
}

func (l *testLink) mac() mac                  { return ownMAC }
func (l *testLink) hasAddress() (bool, error) { return l.address, nil }
func (l *testLink) lost() uint64              { return 0 }
func (l *testLink) send(frame []byte) error {
	if l.failed == nil {
		l.sent = append(l.sent, frame)
	}
	return l.failed
}

// world is a responder with the table of testdata/session.jsonl, whose guests have their addresses, its interface, and
// its clock.
type world struct {
	*responder
	t       *testing.T
	link    *testLink
	now     time.Time
	reports []report
	timers  []timer
}

// timer runs once at its time.
type timer struct {
	at  time.Time
	run func(now time.Time)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, link: &testLink{}, now: start}
	w.responder = newResponder(
		func(string) (link, error) { return w.link, nil },
		func(one report) bool { w.reports = append(w.reports, one); return true },
		noRandom,
		func(wait time.Duration, run func(time.Time)) {
			w.timers = append(w.timers, timer{w.now.Add(wait), run})
		},
	)
	w.connected()
	w.obeyLines(golden(t, false)[:6]...)
	for address := range w.table.byAddress {
		w.table.confirmed[address] = true
	}
	w.wait(10 * time.Second) // announcements
	w.take()
	w.reports = nil
	w.counter = newCounter()
	w.counter.since = w.now
	return w
}

func (w *world) obeyLines(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		got, err := parseCommand([]byte(line))
		if err == nil {
			err = w.obey(w.now, w.session, got)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// wait lets time pass, with timers and a tick every 50 ms.
func (w *world) wait(duration time.Duration) {
	for end := w.now.Add(duration); w.now.Before(end); {
		w.now = w.now.Add(50 * time.Millisecond)
		w.runTimers()
		w.tick(w.now)
	}
}

// runTimers runs the timers that are due, also those that these start.
func (w *world) runTimers() {
	for index := 0; index < len(w.timers); {
		due := w.timers[index]
		if due.at.After(w.now) {
			index++
			continue
		}
		w.timers = slices.Delete(w.timers, index, index+1)
		due.run(w.now)
	}
}

// take returns the frames that were sent since the last call.
func (w *world) take() [][]byte {
	sent := w.link.sent
	w.link.sent = nil
	return sent
}

// hear receives a frame, and returns the frames that are sent at once.
func (w *world) hear(frame []byte) [][]byte {
	w.receive(w.now, frame, checksumsGood)
	return w.take()
}

func (w *world) expectNoFrames(sent [][]byte) {
	w.t.Helper()
	if len(sent) > 0 {
		w.t.Fatalf("%d frames", len(sent))
	}
}

func (w *world) expectDropped(reason string) {
	w.t.Helper()
	if got := w.counter.dropped; !reflect.DeepEqual(got, map[string]uint64{reason: 1}) {
		w.t.Fatalf("dropped: %v, want one %s", got, reason)
	}
}

func (w *world) expectSeen(want ...seen) {
	w.t.Helper()
	var got []seen
	for _, each := range w.reports {
		if each.Seen != nil {
			got = append(got, *each.Seen)
		}
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("seen: %v, want %v", got, want)
	}
}

func TestInterfaceWithAnAddressOfTheKernelIsNotServed(t *testing.T) {
	w := newWorld(t)
	w.link.address = true
	w.obeyLines(golden(t, false)[0])
	if hello := w.reports[0].Hello; hello == nil || !hello.Address {
		t.Fatalf("hello: %+v", hello)
	}
	w.wait(10 * time.Minute)
	if sent := append(w.take(), w.hear(discover(guestMAC))...); len(sent) > 0 {
		t.Fatalf("sent %x", sent)
	}
}

func TestInterfaceThatGetsAnAddressOfTheKernelLaterIsNotServed(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	w.link.address = true
	w.wait(checkEvery)
	hello := w.reports[len(w.reports)-1].Hello
	if hello == nil || !hello.Address {
		t.Fatalf("reports: %+v", w.reports)
	}
	w.take()
	w.expectNoFrames(w.hear(discover(guestMAC)))
	w.link.address = false
	w.wait(checkEvery)
	w.take()
	w.expectReply(discover(guestMAC))
}

func TestNothingIsSentBeforeAConfig(t *testing.T) {
	unconfigured := newResponder(func(string) (link, error) { return nil, nil }, func(report) bool { return true }, noRandom, noTimers)
	unconfigured.tick(start)
	unconfigured.receive(start, discover(guestMAC), checksumsGood) // it would fail if it used the link
}

func TestFramesThatCannotBeFromAGuestAreDropped(t *testing.T) {
	for name, frame := range map[string][]byte{
		"short":               {1, 2, 3},
		"jumbo":               ethernet(broadcastMAC, guestMAC, etherIPv4, make([]byte, 1501)),
		"from a group":        ethernet(broadcastMAC, mac{3}, etherARP, make([]byte, 46)),
		"from nobody":         ethernet(broadcastMAC, mac{}, etherARP, make([]byte, 46)),
		"from our MAC":        ethernet(broadcastMAC, ownMAC, etherARP, make([]byte, 46)),
		"empty ARP":           ethernet(broadcastMAC, guestMAC, etherARP, nil),
		"empty IPv4":          ethernet(broadcastMAC, guestMAC, etherIPv4, nil),
		"empty IPv6":          ethernet(broadcastMAC, guestMAC, etherIPv6, nil),
		"IPv4 in IPv6":        ethernet(broadcastMAC, guestMAC, etherIPv6, make([]byte, 60)),
		"IPv4 without header": ethernet(broadcastMAC, guestMAC, etherIPv4, append([]byte{0x41}, make([]byte, 59)...)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if sent := w.hear(frame); len(sent) > 0 {
				t.Fatalf("sent %x", sent)
			}
			w.expectDropped(dropMalformed)
		})
	}
}

func TestGuestThatSendsTooMuchIsReportedAndOthersAreAnswered(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	answers := 0
	for range 100 {
		answers += len(w.hear(discover(guestMAC)))
	}
	if answers != guestBurst {
		t.Fatalf("%d answers, not %d", answers, guestBurst)
	}
	if len(w.hear(discover(plainMAC))) != 1 {
		t.Fatal("another guest is not answered")
	}
	w.expectSeen(seen{seenOverloaded, guestMAC, guestIPv4})
	w.wait(time.Second)
	if len(w.hear(discover(guestMAC))) != 1 {
		t.Fatal("not answered later")
	}
}

func TestQuestionsForOurAddressLeaveDHCPToTheGuest(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	answers := 0
	for range 100 {
		answers += len(w.hear(arp{arpRequest, guestMAC, guestIPv4, mac{}, ownIPv4}.frame(broadcastMAC)))
	}
	if answers != guestBurst {
		t.Fatalf("%d answers, not %d", answers, guestBurst)
	}
	w.expectReply(discover(guestMAC))
}

func TestReportsAreBounded(t *testing.T) {
	w := newWorld(t)
	address := func(number int) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, byte(number >> 8), byte(number)}) }
	for number := range 5000 {
		w.see(w.now, seenConflict, macOf(number), address(number))
	}
	if len(w.reports) != seenBurst {
		t.Fatalf("%d reports, not %d", len(w.reports), seenBurst)
	}
	for second := range 200 {
		w.now = w.now.Add(time.Second)
		for number := range 2 * seenRate {
			w.see(w.now, seenConflict, macOf(second*100+number), address(second*100+number))
		}
	}
	if got := len(w.seen[seenConflict].reported); got > seenBurst+61*seenRate {
		t.Fatalf("%d are remembered", got)
	}
}

// A host that forges frames must not hide others.
func TestReportsAreShared(t *testing.T) {
	address := func(number int) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, byte(number)}) }
	for name, flood := range map[string]func(w *world, number int){
		"from many MAC addresses for one address": func(w *world, number int) { w.see(w.now, seenConflict, macOf(number), plainIPv4) },
		"from one MAC address for many addresses": func(w *world, number int) { w.see(w.now, seenConflict, plainMAC, address(number)) },
		"of another kind":                         func(w *world, number int) { w.see(w.now, seenServer, macOf(number), address(number)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for number := range 200 {
				flood(w, number)
			}
			w.reports = nil
			w.hear(has(otherMAC, guestIPv4))
			w.expectSeen(seen{seenConflict, otherMAC, guestIPv4})
		})
	}
}

func TestSameThingIsReportedAgainAfterAMinute(t *testing.T) {
	w := newWorld(t)
	want := seen{seenConflict, otherMAC, guestIPv4}
	for range 2 {
		w.hear(has(otherMAC, guestIPv4))
		w.now = w.now.Add(59 * time.Second)
		w.hear(has(otherMAC, guestIPv4))
		w.expectSeen(want)
		w.reports = nil
		w.now = w.now.Add(time.Second)
	}
}

func TestCountsOfTheLastTenSecondsAreReported(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	w.hear(discover(guestMAC))
	w.hear(discover(guestMAC))
	w.hear(discover(otherMAC))
	w.wait(10 * time.Second)
	w.wait(10 * time.Second)
	want := counts{
		Exchanges: []exchangeCount{{exchange{"dhcp4", "discover", "offer"}, 2}},
		Dropped:   map[string]uint64{dropUnknown: 1},
	}
	if len(w.reports) != 2 || !reflect.DeepEqual(*w.reports[0].Counts, want) || len(w.reports[1].Counts.Exchanges) != 0 {
		t.Fatalf("reports: %+v", w.reports)
	}
}

func TestCountsThatNobodyReceivesAreKept(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	connected := w.responder.report
	w.responder.report = func(report) bool { return false }
	w.hear(discover(guestMAC))
	w.wait(15 * time.Second)
	w.responder.report = connected
	w.wait(15 * time.Second)
	if len(w.reports) == 0 || w.reports[0].Counts.Exchanges[0].Count != 1 {
		t.Fatalf("reports: %+v", w.reports)
	}
}

func TestDefectOfOneFrameDoesNotStopTheProgram(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	w.table.guests[guestMAC].options = nil
	w.hear(discover(guestMAC))
	w.expectDropped(dropFailed)
	if len(w.hear(discover(plainMAC))) != 1 {
		t.Fatal("the next frame is not handled")
	}
}

// fuzz receives a frame from a guest of the table. No frame may make the program fail, or send a frame that is too long.
func fuzz(t *testing.T, frame []byte) {
	for _, isFresh := range []bool{true, false} {
		w := newWorld(t)
		if isFresh {
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
		}
		if len(frame) >= etherLength {
			copy(frame[6:12], guestMAC[:])
		}
		for _, sent := range w.hear(withHeaderChecksum(frame)) {
			if to := mac(sent[:6]); len(sent) > maxFrame || to != guestMAC && !to.isGroup() {
				t.Fatalf("%d bytes are sent to %s", len(sent), to)
			}
		}
		if w.counter.dropped[dropFailed]+w.counter.dropped[dropUnsent] > 0 {
			t.Fatalf("dropped: %v", w.counter.dropped)
		}
	}
}
