package main

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

var plainIPv4 = netip.MustParseAddr("10.1.0.11")

// beFreshAndUnconfirmed gives the world a table that has just begun.
func (w *world) beFreshAndUnconfirmed() {
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	clear(w.table.confirmed)
}

// askAfterProbe returns how many answers a frame gets after the probe that it starts.
func (w *world) askAfterProbe(frame []byte) int {
	w.t.Helper()
	probes := w.hear(frame)
	w.wait(150 * time.Millisecond)
	if probes = append(probes, w.take()...); len(probes) != probeTries {
		w.t.Fatalf("%d frames instead of probes", len(probes))
	}
	w.wait(150 * time.Millisecond)
	return len(w.take())
}

// has returns the frame of a host that has an address.
func has(from mac, address netip.Addr) []byte {
	return arp{arpReply, from, address, ownMAC, noIPv4}.frame(ownMAC)
}

func TestAddressIsProbedOnce(t *testing.T) {
	w := newWorld(t)
	w.beFreshAndUnconfirmed()
	if answers := w.askAfterProbe(discover(guestMAC)); answers != 1 {
		t.Fatalf("%d answers", answers)
	}
	w.expectReply(discover(guestMAC))
}

// Without waiting for a tick: 50 ms are half as long as a probe.
func TestAnswerComesAsSoonAsTheProbesEnd(t *testing.T) {
	w := newWorld(t)
	w.beFreshAndUnconfirmed()
	w.hear(discover(guestMAC))
	w.now = w.now.Add(probeInterval)
	w.runTimers()
	w.now = w.now.Add(probeInterval)
	w.runTimers()
	if sent := w.take(); len(sent) != 2 { // the second probe, the offer
		t.Fatalf("%d frames", len(sent))
	}
}

func TestProbeThatEndsWhileTheInterfaceHasAnAddressIsNotAnswered(t *testing.T) {
	w := newWorld(t)
	w.beFreshAndUnconfirmed()
	w.hear(discover(guestMAC))
	w.isQuiet = true
	w.wait(time.Second)
	w.isQuiet = false
	w.wait(time.Second)
	for _, sent := range w.take() {
		if got, ok := parseIPv4(sent[etherLength:]); ok && got.to.Port() == dhcp4Client {
			t.Fatal("answered")
		}
	}
	if len(w.probes) > 0 || w.table.confirmed[guestIPv4] {
		t.Fatal("the address is confirmed")
	}
}

func TestRepeatedRequestDuringAProbeStartsNoOther(t *testing.T) {
	w := newWorld(t)
	w.beFreshAndUnconfirmed()
	var sent [][]byte
	for range 5 {
		sent = append(sent, w.hear(discover(guestMAC))...)
		w.wait(50 * time.Millisecond)
		sent = append(sent, w.take()...)
	}
	w.wait(time.Second)
	if sent = append(sent, w.take()...); len(sent) != probeTries+1 {
		t.Fatalf("%d frames, not %d probes and an offer", len(sent), probeTries)
	}
}

func TestRenewalConfirmsTheAddress(t *testing.T) {
	for name, to := range map[string]netip.Addr{"RENEWING": ownIPv4, "REBINDING": broadcastIPv4} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.beFreshAndUnconfirmed()
			w.expectReply(fromClientTo(to, guestMAC, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.IP(guestIPv4.AsSlice()))))
			w.expectReply(discover(guestMAC))
		})
	}
}

// A client may ask from any address of its subnet.
func TestInformDoesNotConfirmTheAddress(t *testing.T) {
	for _, client := range []net.IP{guestIPv4.AsSlice(), {10, 1, 0, 77}} {
		w := newWorld(t)
		w.beFreshAndUnconfirmed()
		w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(client)))
		if answers := w.askAfterProbe(discover(guestMAC)); answers != 1 {
			t.Fatalf("%d answers after a probe", answers)
		}
	}
}

func TestAddressIsProbedAgainWhenAnotherHostMayHaveIt(t *testing.T) {
	entry := func(address string) string {
		return `{"put":[{"mac":"02:00:00:00:00:0b","ipv4":{"address":"` + address + `","prefix":24},"options":"o2"}]}`
	}
	for name, change := range map[string]func(w *world){
		"another host has it":            func(w *world) { w.hear(has(otherMAC, plainIPv4)) },
		"another host asks for it":       func(w *world) { w.hear(arp{arpRequest, otherMAC, noIPv4, mac{}, plainIPv4}.frame(broadcastMAC)) },
		"the guest had another one":      func(w *world) { w.obeyLines(entry("10.1.0.12"), entry("10.1.0.11")) },
		"the guest was not in the table": func(w *world) { w.obeyLines(`{"remove":["02:00:00:00:00:0b"]}`, entry("10.1.0.11")) },
		"another guest was the one to get it": func(w *world) {
			w.obeyLines(`{"put":[{"mac":"02:00:00:00:00:0c","ipv4":{"address":"10.1.0.11","prefix":24},"options":"o2"}]}`, entry("10.1.0.11"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
			w.expectReply(discover(plainMAC))
			change(w)
			if answers := w.askAfterProbe(discover(plainMAC)); answers != 1 {
				t.Fatalf("%d answers", answers)
			}
		})
	}
}

// Guests ask both responders of a pool, so both of them probe.
func TestRespondersDoNotStopEachOthersProbes(t *testing.T) {
	one, other := newWorld(t), newWorld(t)
	one.beFreshAndUnconfirmed()
	other.beFreshAndUnconfirmed()
	answers := 0
	for _, frame := range [][]byte{discover(guestMAC), from6(plainMAC, 1)} {
		probes := [][][]byte{one.hear(frame), other.hear(frame)}
		for index, world := range []*world{other, one} {
			for _, probe := range probes[index] {
				copy(probe[6:12], []byte{2, 0, 0, 0, 0, 2})
				copy(probe[etherLength+8:], []byte{2, 0, 0, 0, 0, 2}) // the sender of ARP
				world.expectNoFrames(world.hear(probe))
			}
			world.wait(time.Second)
			for _, sent := range world.take() {
				if got, ok := parseIPv4(sent[etherLength:]); ok && got.to.Port() == dhcp4Client {
					answers++
				}
			}
			world.expectSeen()
		}
	}
	if answers != 2 {
		t.Fatalf("%d answers, not one of each", answers)
	}
}

// The kernel of a guest with two interfaces on one segment answers on both of them for both addresses.
func TestOtherInterfaceOfTheSameVMIsNoOtherHost(t *testing.T) {
	second := mac{2, 0, 0, 0, 0, 0xd}
	w := newWorld(t)
	w.obeyLines(`{"put":[{"mac":"02:00:00:00:00:0d","owner":"vm1","ipv4":{"address":"10.1.0.13","prefix":24},"options":"o2"}]}`)
	w.beFreshAndUnconfirmed()
	w.hear(discover(guestMAC))
	w.hear(has(second, guestIPv4))
	w.wait(time.Second)
	if sent := w.take(); len(sent) != 2 { // the second probe, the offer
		t.Fatalf("%d frames", len(sent))
	}
	w.expectSeen()
	w.hear(has(plainMAC, guestIPv4)) // of another VM
	w.expectSeen(seen{seenConflict, plainMAC, guestIPv4})
}

func TestProxyDoesNotKeepGuestsFromTheirAddressesWhileTheTableIsFresh(t *testing.T) {
	w := newWorld(t)
	guests := proxyAddresses + 1
	address := func(number int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, byte(100 + number)}) }
	for number := range guests {
		w.table.mustPut(t, entryOf(100+number, address(number).String(), ""))
	}
	ask := func() (answers int) {
		for number := range guests {
			frames := w.hear(discover(macOf(100 + number)))
			w.hear(has(otherMAC, address(number)))
			w.wait(time.Second)
			for _, sent := range append(frames, w.take()...) {
				if mac(sent[:6]) == macOf(100+number) {
					answers++
				}
			}
		}
		return answers
	}
	if answers := ask(); answers != 0 {
		t.Fatalf("%d answers from a stale table", answers)
	}
	clear(w.proxies)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	if answers := ask(); answers != guests-proxyAddresses+1 {
		t.Fatalf("%d answers while the proxy is found", answers)
	}
	if answers := ask(); answers != guests {
		t.Fatalf("%d answers after it was found", answers)
	}
	for number := range 10 * maxProxies {
		w.isProxy(macOf(number), guestIPv4)
	}
	if len(w.proxies) > maxProxies {
		t.Fatalf("%d hosts are remembered", len(w.proxies))
	}
}

func TestProbesAreBounded(t *testing.T) {
	w := newWorld(t)
	for number := range maxProbes + 1 {
		w.afterProbe(guestMAC, netip.AddrFrom4([4]byte{10, 9, byte(number >> 8), byte(number)}), func() {})
	}
	if len(w.probes) != maxProbes {
		t.Fatalf("%d probes at one time", len(w.probes))
	}
	w.expectDropped(dropLimited)
}
