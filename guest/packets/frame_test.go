package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"
)

func fromHex(text string) []byte {
	decoded, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		panic(err)
	}
	return decoded
}

func TestChecksumIsThatOfRFC1071(t *testing.T) {
	// The example of its section 3.
	if sum := checksum(fromHex("0001 f203"), fromHex("f4f5 f6f7")); sum != ^uint16(0xddf2) {
		t.Fatalf("got %04x", sum)
	}
	if checksum([]byte{1, 2, 3}) != checksum([]byte{1, 2, 3, 0}) {
		t.Fatal("an odd length is not filled with zero")
	}
}

func TestLinkLocalAddressIsEUI64(t *testing.T) {
	// RFC 4291, appendix A, with the MAC address 34-56-78-9A-BC-DE.
	if got := linkLocal(mac{0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde}); got != netip.MustParseAddr("fe80::3656:78ff:fe9a:bcde") {
		t.Fatal(got)
	}
}

func TestGroupsOfRFC4291(t *testing.T) {
	// Its section 2.7.1.
	if got := solicitedNode(netip.MustParseAddr("4037::01:800:200e:8c6c")); got != netip.MustParseAddr("ff02::1:ff0e:8c6c") {
		t.Fatal(got)
	}
	// RFC 2464, section 7.
	if got := groupMAC(netip.MustParseAddr("ff02::1:ff0e:8c6c")); got != (mac{0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c}) {
		t.Fatal(got)
	}
}

func TestKernelFilterAssembles(t *testing.T) {
	if _, err := bpf.Assemble(kernelFilter()); err != nil {
		t.Fatal(err)
	}
}

func TestFilterTakesOnlyWhatIsHandled(t *testing.T) {
	machine, err := bpf.NewVM(frameFilter())
	if err != nil {
		t.Fatal(err)
	}
	host := netip.MustParseAddr("fe80::99")
	udp4 := func(port uint16) []byte {
		return ethernet(broadcastMAC, guestMAC, etherIPv4, ipv4(datagram{netip.AddrPortFrom(guestIPv4, 1), netip.AddrPortFrom(broadcastIPv4, port), nil}))
	}
	udp6 := func(port uint16) []byte {
		return ethernet(broadcastMAC, guestMAC, etherIPv6, ipv6(datagram{netip.AddrPortFrom(host, 1), netip.AddrPortFrom(allDHCP6Servers, port), nil}))
	}
	icmp := func(kind byte) []byte {
		message := []byte{kind, 0, 0, 0, 0, 0, 0, 0}
		return ethernet(broadcastMAC, guestMAC, etherIPv6, append(ipv6Header(host, allNodes, protocolICMPv6, 255, len(message)), message...))
	}
	fragment, longHeader := udp4(67), udp4(67)
	fragment[etherLength+6] = 0x20
	// Options of the header move the ports.
	longHeader[etherLength] = 0x46
	longHeader = slices.Insert(longHeader, etherLength+20, 1, 1, 1, 1)
	other := udp4(67)
	other[12], other[13] = 0x88, 0xcc
	for _, row := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"ARP", arp{arpRequest, guestMAC, guestIPv4, mac{}, ownIPv4}.frame(broadcastMAC), true},
		{"a message to a DHCPv4 server", udp4(67), true},
		{"a message to a DHCPv4 client", udp4(68), true},
		{"a message to a DHCPv4 server with options of IP", longHeader, true},
		{"a message to a DHCPv6 server", udp6(547), true},
		{"a message to a DHCPv6 client", udp6(546), true},
		{"a router solicitation", icmp(133), true},
		{"a router advertisement", icmp(134), true},
		{"a neighbour solicitation", icmp(135), true},
		{"a neighbour advertisement", icmp(136), true},
		{"a query of MLD", mldQuery(), true},
		{"a report of MLD", mldReport(guestMAC, groups(guestMAC)), false},
		{"a fragment", fragment, false},
		{"other UDP on IPv4", udp4(53), false},
		{"other UDP on IPv6", udp6(53), false},
		{"a ping", pingOf(guestMAC, guestIPv4, ownIPv4), true},
		{"an answer to a ping", change(pingOf(guestMAC, guestIPv4, ownIPv4), etherLength+20, 0), false},
		{"a ping over IPv6", icmp(128), false},
		{"a redirect", icmp(137), false},
		{"another protocol", other, false},
		{"nothing", nil, false},
	} {
		if got, err := machine.Run(row.frame); err != nil || got > 0 != row.want {
			t.Errorf("%s: %d %v", row.name, got, err)
		}
	}
}

func change(frame []byte, offset int, value ...byte) []byte {
	copy(frame[offset:], value)
	return frame
}

// withHeaderChecksum corrects the checksum of the header after a change of an IPv4 packet.
func withHeaderChecksum(frame []byte) []byte {
	if len(frame) < etherLength || frame[12] != 8 || frame[13] != 0 {
		return frame
	}
	packet := frame[etherLength:]
	if _, ok := bodyOfIPv4(packet); ok {
		header := packet[:int(packet[0]&0xf)*4]
		header[10], header[11] = 0, 0
		binary.BigEndian.PutUint16(header[10:], checksum(header))
	}
	return frame
}

func mldQuery() []byte {
	options := []byte{protocolICMPv6, 0, 5, 2, 0, 0, 1, 0}
	message := append([]byte{icmpMLDQuery, 0, 0, 0}, make([]byte, 24)...)
	header := ipv6Header(netip.MustParseAddr("fe80::99"), allNodes, 0, 1, len(options)+len(message))
	return ethernet(groupMAC(allNodes), otherMAC, etherIPv6, append(append(header, options...), message...))
}

func TestARPForTheServerIsAnsweredForEverybody(t *testing.T) {
	w := newWorld(t)
	for _, from := range []mac{guestMAC, otherMAC} {
		sent := w.hear(arp{arpRequest, from, netip.MustParseAddr("10.1.0.77"), mac{}, ownIPv4}.frame(broadcastMAC))
		if len(sent) != 1 {
			t.Fatalf("%d answers", len(sent))
		}
		// RFC 826
		want := fromHex(`0806 0001 0800 06 04 0002 020000000001 0a010002 ` + strings.ReplaceAll(from.String(), ":", "") + ` 0a01004d`)
		want = append(append(append([]byte{}, from[:]...), ownMAC[:]...), want...)
		if !bytes.HasPrefix(sent[0], want) || len(sent[0]) != 60 {
			t.Fatalf("got %x", sent[0])
		}
	}
}

func TestOtherARPIsNotAnswered(t *testing.T) {
	peer := netip.MustParseAddr("10.1.0.3")
	spoofed := arp{arpRequest, guestMAC, guestIPv4, mac{}, ownIPv4}.frame(broadcastMAC)
	copy(spoofed[6:12], otherMAC[:])
	for name, frame := range map[string][]byte{
		"for the peer":                 arp{arpRequest, guestMAC, guestIPv4, mac{}, peer}.frame(broadcastMAC),
		"for a guest":                  arp{arpRequest, otherMAC, peer, mac{}, guestIPv4}.frame(broadcastMAC),
		"that is a reply":              arp{arpReply, guestMAC, guestIPv4, ownMAC, ownIPv4}.frame(ownMAC),
		"with another sender":          spoofed,
		"of another type of addresses": slices.Replace(slices.Clone(spoofed), etherLength+1, etherLength+2, 6),
	} {
		w := newWorld(t)
		if sent := w.hear(frame); len(sent) > 0 {
			t.Errorf("%s: %x", name, sent)
		}
	}
}

func TestFloodOfARPIsAnsweredInPart(t *testing.T) {
	w := newWorld(t)
	answers := 0
	for number := range 10000 {
		answers += len(w.hear(arp{arpRequest, macOf(number + 5000), netip.MustParseAddr("10.1.0.77"), mac{}, ownIPv4}.frame(broadcastMAC)))
	}
	if answers != strangerBurst {
		t.Fatalf("%d answers", answers)
	}
	if sent := w.hear(arp{arpRequest, guestMAC, guestIPv4, mac{}, ownIPv4}.frame(broadcastMAC)); len(sent) != 1 {
		t.Fatal("a guest is not answered meanwhile")
	}
}

func TestServerAddressIsAnnouncedTwiceWhenItIsNew(t *testing.T) {
	w := newWorld(t)
	config := golden(t, false)[0]
	count := func() (announced int) {
		w.wait(10 * time.Second)
		for _, frame := range w.take() {
			if got, ok := parseARP(frame[etherLength:]); ok && got.senderIP == got.targetIP && got.sender == ownMAC {
				announced++
			}
		}
		return announced
	}
	w.obeyLines(config)
	if got := count(); got != 0 {
		t.Fatalf("the same address is announced %d times", got)
	}
	w.obeyLines(strings.Replace(config, "10.1.0.2", "10.1.0.4", 1))
	if got := count(); got != announcements {
		t.Fatalf("a new address is announced %d times", got)
	}
}

func TestGroupsAreReportedEveryMinuteAndAfterAQuery(t *testing.T) {
	w := newWorld(t)
	reports := func(duration time.Duration) (count int) {
		w.wait(duration)
		for _, frame := range w.take() {
			if mac(frame[:6]) == groupMAC(allMLDRouters) {
				count++
			}
		}
		return count
	}
	if got := reports(10 * time.Minute); got != 10 {
		t.Fatalf("%d reports in ten minutes", got)
	}
	w.hear(mldQuery())
	if got := reports(time.Second); got != 1 {
		t.Fatalf("%d reports after a query", got)
	}
	flood := 0
	for range 100 {
		w.hear(mldQuery())
		flood += reports(50 * time.Millisecond)
	}
	if flood > 5 {
		t.Fatalf("%d reports in 5 seconds of queries", flood)
	}
}

func TestReportOfGroupsIsThatOfRFC3810(t *testing.T) {
	got := mldReport(ownMAC, []netip.Addr{allDHCP6Servers})
	want := fromHex(`333300000016 020000000001 86dd 60000000 0024 00 01
		fe80000000000000 0000 00ff fe00 0001 ff02000000000000 0000000000000016
		3a 00 0502 0000 0100
		8f 00 0000 0000 0001 02 00 0000 ff02000000000000 0000000000010002`)
	sumAt := etherLength + 40 + 8 + 2
	if checksum(pseudoHeader(linkLocal(ownMAC), allMLDRouters, protocolICMPv6, 28), got[sumAt-2:]) != 0 {
		t.Error("wrong checksum")
	}
	copy(got[sumAt:], []byte{0, 0})
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestConflictsAreReported(t *testing.T) {
	w := newWorld(t)
	say := func(from mac, address netip.Addr) {
		w.hear(arp{arpReply, from, address, mac{}, address}.frame(broadcastMAC))
	}
	w.wait(2 * moveTime)
	w.reports = nil
	say(guestMAC, guestIPv4)
	say(otherMAC, netip.MustParseAddr("10.1.0.200")) // nobody's
	w.expectSeen()
	say(otherMAC, guestIPv4)
	say(otherMAC, guestIPv4)
	say(otherMAC, ownIPv4)
	w.expectSeen(seen{seenConflict, otherMAC, guestIPv4}, seen{seenConflict, otherMAC, ownIPv4})
	w.wait(seenEvery)
	w.reports = nil
	say(otherMAC, guestIPv4)
	w.expectSeen(seen{seenConflict, otherMAC, guestIPv4})
}

func TestFormerGuestOfAnAddressIsNoConflictForAWhile(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"put":[{"mac":"02:00:00:00:00:99","ipv4":{"address":"10.1.0.10","prefix":24},"options":"o2"}]}`)
	late := arp{arpReply, guestMAC, guestIPv4, mac{}, guestIPv4}.frame(broadcastMAC)
	w.hear(late)
	w.expectSeen()
	w.wait(2 * moveTime)
	w.reports = nil
	w.hear(late)
	w.expectSeen(seen{seenConflict, guestMAC, guestIPv4})
}
