package main

import (
	"net/netip"
	"reflect"
	"testing"
	"time"
)

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
