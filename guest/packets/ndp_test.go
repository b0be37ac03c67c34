package main

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/rfc1035label"
	"github.com/mdlayher/ndp"
)

var (
	guestLinkLocal = linkLocal(guestMAC)
	routerAddress  = netip.MustParseAddr("fe80::99")
)

// neighbourFrame returns the frame of a message of neighbour discovery.
func neighbourFrame(to, from mac, source, target netip.Addr, message ndp.Message) []byte {
	body, err := ndp.MarshalMessageChecksum(message, source, target)
	if err != nil {
		panic(err)
	}
	return ethernet(to, from, etherIPv6, append(ipv6Header(source, target, protocolICMPv6, hopLimit, len(body)), body...))
}

func solicitation(from mac, source netip.Addr) []byte {
	return neighbourFrame(groupMAC(allRouters), from, source, allRouters, &ndp.RouterSolicitation{})
}

// parseNDP returns a message that was sent from our link-local address.
func parseNDP(t *testing.T, frame []byte) (target netip.Addr, message ndp.Message) {
	t.Helper()
	packet := frame[etherLength:]
	body := packet[40:]
	source, target := netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40]))
	if mac(frame[6:12]) != ownMAC || source != linkLocal(ownMAC) || packet[7] != hopLimit || packet[6] != protocolICMPv6 {
		t.Fatalf("wrong header: %x", frame)
	}
	if checksum(pseudoHeader(source, target, protocolICMPv6, len(body)), body) != 0 {
		t.Fatal("wrong checksum")
	}
	message, err := ndp.ParseMessage(body)
	if err != nil {
		t.Fatal(err)
	}
	return target, message
}

func TestSolicitationOfAGuestIsAnsweredInAUnicastFrame(t *testing.T) {
	for _, row := range []struct {
		source, target netip.Addr
		every          uint32
		dnsLifetime    time.Duration
	}{
		{guestLinkLocal, guestLinkLocal, 300, time.Hour},
		{netip.IPv6Unspecified(), allNodes, 1800, 2 * time.Hour},
	} {
		w := newWorld(t)
		w.responder.config.Times.Advertise = row.every
		w.wait(time.Minute)
		w.take()
		sent := w.hear(solicitation(guestMAC, row.source))
		if len(sent) != 1 || mac(sent[0][:6]) != guestMAC {
			t.Fatalf("sent %x", sent)
		}
		target, message := parseNDP(t, sent[0])
		if target != row.target {
			t.Fatalf("sent to %s", target)
		}
		got := message.(*ndp.RouterAdvertisement)
		if got.RouterLifetime != 0 || !got.ManagedConfiguration || !got.OtherConfiguration {
			t.Fatalf("got %+v", got)
		}
		day := 24 * time.Hour
		want := []ndp.Option{
			&ndp.PrefixInformation{PrefixLength: 64, OnLink: true, ValidLifetime: day, PreferredLifetime: day, Prefix: netip.MustParseAddr("fd00:1::")},
			ndp.NewMTU(1400),
			&ndp.RecursiveDNSServer{Lifetime: row.dnsLifetime, Servers: []netip.Addr{netip.MustParseAddr("fd00:1::53")}},
			&ndp.DNSSearchList{Lifetime: row.dnsLifetime, DomainNames: []string{"example.org", "a.example.org"}},
		}
		expected, _ := ndp.MarshalMessage(&ndp.RouterAdvertisement{ManagedConfiguration: true, OtherConfiguration: true, Options: want})
		actual, _ := ndp.MarshalMessage(got)
		if !bytes.Equal(expected, actual) {
			t.Fatalf("options %+v", got.Options)
		}
	}
}

func TestAdvertisementIsThatOfRFC4861(t *testing.T) {
	w := newWorld(t)
	w.table.guests[guestMAC].options = &optionSet{MTU: 1400}
	body, err := ndp.MarshalMessage(w.advertisement(w.table.guests[guestMAC]))
	// type, code, checksum, hop limit, flags M and O, router lifetime 0, times; prefix with flag L only; MTU
	want := fromHex(`86 00 0000 00 c0 0000 00000000 00000000
		03 04 40 80 00015180 00015180 00000000 fd00000100000000 0000000000000000 05 01 0000 00000578`)
	if err != nil || !bytes.Equal(body, want) {
		t.Fatalf("got %x, %v", body, err)
	}
}

func TestSearchDomainsAreAdvertisedAsTheyStand(t *testing.T) {
	for _, domain := range []string{"example.org", "xn--zzzzzzzzzzzz.org", "_dmarc.a.b.c.d.e", "A"} {
		body, err := ndp.MarshalMessage(&ndp.RouterAdvertisement{Options: []ndp.Option{searchList([]string{domain}, time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
		labels, err := rfc1035label.FromBytes(bytes.TrimRight(body[16+8:], "\x00"))
		if err != nil || len(body)%8 != 0 || int(body[17])*8 != len(body)-16 || labels.Labels[0] != domain {
			t.Errorf("%s is sent as %x: %v", domain, body, err)
		}
	}
}

func TestSolicitationsThatAreNotAnswered(t *testing.T) {
	w := newWorld(t)
	w.wait(time.Minute)
	w.take()
	lowHops := solicitation(guestMAC, guestLinkLocal)
	lowHops[etherLength+7] = 64
	for name, frame := range map[string][]byte{
		"of an unknown MAC address":      solicitation(otherMAC, linkLocal(otherMAC)),
		"of a guest without IPv6":        solicitation(plainMAC, linkLocal(plainMAC)),
		"that were routed to this place": lowHops,
		"that are cut off":               solicitation(guestMAC, guestLinkLocal)[:etherLength+44],
	} {
		if sent := w.hear(frame); len(sent) > 0 {
			t.Errorf("%s: %x", name, sent)
		}
	}
}

func TestSolicitationsAreAnsweredOnceInThreeSeconds(t *testing.T) {
	w := newWorld(t)
	w.wait(time.Minute)
	answers := 0
	for range 10 {
		w.take()
		answers += len(w.hear(solicitation(guestMAC, guestLinkLocal)))
		w.wait(time.Second)
	}
	if answers != 4 {
		t.Fatalf("%d answers in ten seconds", answers)
	}
}

func TestAdvertisementsAreSpreadOverGuests(t *testing.T) {
	w := newWorld(t)
	w.random = rand.New(rand.NewPCG(1, 2)).IntN
	for number := range 500 {
		address := netip.AddrFrom16([16]byte{0xfd, 0, 0, 1, 14: byte(number>>8) + 1, 15: byte(number)})
		w.table.mustPut(t, entry{MAC: macOf(number + 1000), IPv6: &entryIPv6{address}})
	}
	w.wait(5 * time.Minute)
	w.take()
	most, all := 0, 0
	guests := map[mac]int{}
	for range 600 {
		w.wait(time.Second)
		second := 0
		for _, frame := range w.take() {
			if frame[etherLength+6] == protocolICMPv6 && frame[etherLength+40] == icmpRouterAdvertisement {
				second++
				guests[mac(frame[:6])]++
			}
		}
		most, all = max(most, second), all+second
	}
	if most > 20 || all < 900 || all > 1100 || len(guests) != 501 {
		t.Fatalf("at most %d in a second, %d in ten minutes to %d guests", most, all, len(guests))
	}
	for each := range guests {
		if each.isGroup() {
			t.Fatalf("an advertisement was sent to %s", each)
		}
	}
}

func TestPrefixOfTheGuestIsTheFirstOfAtMost16(t *testing.T) {
	w := newWorld(t)
	w.config.Subnets = nil
	for number := range 40 {
		address := netip.AddrFrom16([16]byte{0xfd, 0, 0, byte(40 - number), 15: 9})
		w.config.Subnets = append(w.config.Subnets, subnet{netip.PrefixFrom(address, 64)})
	}
	got := w.prefixesOf(w.table.guests[guestMAC])
	if len(got) != maxPrefixes || got[0] != netip.MustParsePrefix("fd00:1::/64") || got[1] != netip.MustParsePrefix("fd00:28::/64") {
		t.Fatalf("%d: %v", len(got), got)
	}
}

func TestNeighboursAreToldOurLinkLocalAddress(t *testing.T) {
	own := linkLocal(ownMAC)
	w := newWorld(t)
	for _, row := range []struct {
		source, target netip.Addr
		isSolicited    bool
	}{
		{routerAddress, routerAddress, true},
		{netip.IPv6Unspecified(), allNodes, false}, // a host that checks whether it may use the address
	} {
		sent := w.hear(neighbourFrame(groupMAC(solicitedNode(own)), otherMAC, row.source, solicitedNode(own), &ndp.NeighborSolicitation{TargetAddress: own}))
		if len(sent) != 1 || mac(sent[0][:6]) != otherMAC {
			t.Fatalf("sent %x", sent)
		}
		target, message := parseNDP(t, sent[0])
		got := message.(*ndp.NeighborAdvertisement)
		if target != row.target || got.TargetAddress != own || got.Solicited != row.isSolicited || !got.Override || got.Router {
			t.Fatalf("to %s: %+v", target, got)
		}
		if lla := got.Options[0].(*ndp.LinkLayerAddress); !bytes.Equal(lla.Addr, ownMAC[:]) {
			t.Fatalf("got %v", lla)
		}
	}
	for name, target := range map[string]netip.Addr{"of a guest": guestIPv6, "of nobody": netip.MustParseAddr("fd00:1::99")} {
		if sent := w.hear(neighbourFrame(ownMAC, otherMAC, routerAddress, target, &ndp.NeighborSolicitation{TargetAddress: target})); len(sent) > 0 {
			t.Errorf("the address %s is answered: %x", name, sent)
		}
	}
}

func TestConflictsOfIPv6AreReported(t *testing.T) {
	for name, frame := range map[string][]byte{
		"an advertisement": neighbourFrame(groupMAC(allNodes), otherMAC, guestIPv6, allNodes, &ndp.NeighborAdvertisement{TargetAddress: guestIPv6}),
		"a solicitation":   neighbourFrame(ownMAC, otherMAC, guestIPv6, routerAddress, &ndp.NeighborSolicitation{TargetAddress: routerAddress}),
	} {
		w := newWorld(t)
		w.hear(frame)
		w.expectSeen(seen{seenConflict, otherMAC, guestIPv6})
		own := bytes.Clone(frame)
		copy(own[6:12], guestMAC[:])
		w.reports = nil
		w.hear(own)
		if len(w.reports) > 0 {
			t.Errorf("%s of the guest itself is reported", name)
		}
	}
}

func FuzzNDP(f *testing.F) {
	f.Add(solicitation(guestMAC, guestLinkLocal))
	f.Add(mldQuery())
	f.Add(change(mldQuery(), etherLength+4, 0, 0)) // without a payload, which the frame has as padding
	f.Add(neighbourFrame(groupMAC(allNodes), otherMAC, routerAddress, allNodes, &ndp.RouterAdvertisement{RouterLifetime: time.Hour}))
	f.Add(neighbourFrame(groupMAC(allNodes), otherMAC, guestIPv6, allNodes, &ndp.NeighborAdvertisement{TargetAddress: guestIPv6}))
	f.Add(arp{arpRequest, guestMAC, guestIPv4, mac{}, ownIPv4}.frame(broadcastMAC))
	f.Fuzz(func(t *testing.T, frame []byte) { fuzz(t, frame) })
}
