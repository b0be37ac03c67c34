package main

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

var allRequested = dhcpv4.OptParameterRequestList(
	dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer, dhcpv4.OptionDomainName, dhcpv4.OptionInterfaceMTU,
	dhcpv4.OptionNTPServers, dhcpv4.OptionDNSDomainSearchList, dhcpv4.OptionClasslessStaticRoute,
)

// fromClient returns the frame of a client's message.
func fromClient(from mac, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) []byte {
	return fromClientTo(broadcastIPv4, from, kind, change...)
}

func fromClientTo(to netip.Addr, from mac, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) []byte {
	message, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithHwAddr(from[:]), dhcpv4.WithMessageType(kind), dhcpv4.WithOption(allRequested),
		dhcpv4.WithTransactionID(dhcpv4.TransactionID{1, 2, 3, 4}),
	}, change...)...)
	if err != nil {
		panic(err)
	}
	target := ownMAC
	if to == broadcastIPv4 {
		target = broadcastMAC
	}
	source, _ := netip.AddrFromSlice(message.ClientIPAddr.To4())
	return ethernet(target, from, etherIPv4, ipv4(datagram{
		from: netip.AddrPortFrom(source, 68), to: netip.AddrPortFrom(to, 67), payload: message.ToBytes(),
	}))
}

func discover(from mac) []byte { return fromClient(from, dhcpv4.MessageTypeDiscover) }

// reply is an answer, with the addresses of its frame and packet.
type reply struct {
	*dhcpv4.DHCPv4
	to mac
	datagram
}

func parseReply(t *testing.T, frame []byte) reply {
	t.Helper()
	got, ok := parseIPv4(frame[etherLength:])
	if !ok || mac(frame[6:12]) != ownMAC || got.from != netip.AddrPortFrom(ownIPv4, 67) || got.to.Port() != 68 {
		t.Fatalf("not an answer of DHCP: %x", frame)
	}
	if checksum(frame[etherLength:etherLength+20]) != 0 {
		t.Fatal("wrong checksum of the header")
	}
	segment := frame[etherLength+20:]
	if checksum(pseudoHeader(got.from.Addr(), got.to.Addr(), protocolUDP, len(segment)), segment) != 0 {
		t.Fatal("wrong checksum of the datagram")
	}
	message, err := dhcpv4.FromBytes(got.payload)
	if err != nil {
		t.Fatal(err)
	}
	return reply{message, mac(frame[:6]), got}
}

func (w *world) expectReply(frame []byte) reply {
	w.t.Helper()
	sent := w.hear(frame)
	if len(sent) != 1 {
		w.t.Fatalf("%d frames instead of an answer; dropped: %v", len(sent), w.counter.dropped)
	}
	return parseReply(w.t, sent[0])
}

// TestAnswersOfDHCPv4 is the table of the design: message, freshness of the table, answer.
func TestAnswersOfDHCPv4(t *testing.T) {
	const none, offer, ack, nak = noAnswer, dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck, dhcpv4.MessageTypeNak
	other := net.IP{10, 1, 0, 77}
	request := dhcpv4.MessageTypeRequest
	serverID := func(ip net.IP) dhcpv4.Modifier { return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(ip)) }
	asking := func(ip net.IP) dhcpv4.Modifier { return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(ip)) }
	tabled, own := net.IP(guestIPv4.AsSlice()), net.IP(ownIPv4.AsSlice())
	type answers struct{ fresh, stale dhcpv4.MessageType }
	for _, row := range []struct {
		name       string
		frame      []byte
		want       answers
		afterProbe bool // if the table is stale or the address is not confirmed
	}{
		{"DISCOVER", discover(guestMAC), answers{offer, offer}, true},
		{"DISCOVER for another address", fromClient(guestMAC, dhcpv4.MessageTypeDiscover, asking(other)), answers{offer, offer}, true},
		{"SELECTING", fromClient(guestMAC, request, serverID(own), asking(tabled)), answers{ack, ack}, true},
		{"SELECTING of another address", fromClient(guestMAC, request, serverID(own), asking(other)), answers{nak, none}, false},
		{"SELECTING of another server", fromClient(guestMAC, request, serverID(net.IP{10, 1, 0, 3}), asking(tabled)), answers{none, none}, false},
		{"INIT-REBOOT", fromClient(guestMAC, request, asking(tabled)), answers{ack, ack}, true},
		{"INIT-REBOOT with another address", fromClient(guestMAC, request, asking(other)), answers{nak, none}, false},
		{"RENEWING", fromClientTo(ownIPv4, guestMAC, request, dhcpv4.WithClientIP(tabled)), answers{ack, ack}, false},
		{"RENEWING another address", fromClientTo(ownIPv4, guestMAC, request, dhcpv4.WithClientIP(other)), answers{nak, none}, false},
		{"RENEWING that names its server", fromClientTo(ownIPv4, guestMAC, request, serverID(own), dhcpv4.WithClientIP(tabled)), answers{ack, ack}, false},
		{"RENEWING that names another server", fromClientTo(ownIPv4, guestMAC, request, serverID(net.IP{10, 1, 0, 3}), dhcpv4.WithClientIP(tabled)), answers{none, none}, false},
		{"REBINDING", fromClient(guestMAC, request, dhcpv4.WithClientIP(tabled)), answers{ack, ack}, false},
		{"REBINDING another address", fromClient(guestMAC, request, dhcpv4.WithClientIP(other)), answers{nak, none}, false},
		{"REQUEST without an address", fromClient(guestMAC, request), answers{none, none}, false},
		{"INFORM", fromClient(guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(tabled)), answers{ack, ack}, false},
		{"INFORM with another address", fromClient(guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(other)), answers{ack, ack}, false},
		{"INFORM with an address of another subnet", fromClient(guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(net.IP{10, 2, 0, 77})), answers{none, none}, false},
		{"DECLINE", fromClient(guestMAC, dhcpv4.MessageTypeDecline, serverID(own), asking(tabled)), answers{none, none}, false},
		{"RELEASE", fromClientTo(ownIPv4, guestMAC, dhcpv4.MessageTypeRelease, serverID(own), dhcpv4.WithClientIP(tabled)), answers{none, none}, false},
		{"an OFFER of a guest", fromClient(guestMAC, dhcpv4.MessageTypeOffer), answers{none, none}, false},
	} {
		expect := func(t *testing.T, sent [][]byte, want dhcpv4.MessageType) {
			t.Helper()
			if want == none && len(sent) == 0 {
				return
			}
			if want == none || len(sent) != 1 {
				t.Fatalf("%d frames are sent; want %s", len(sent), want)
			}
			got := parseReply(t, sent[0])
			if got.MessageType() != want || !got.ServerIdentifier().Equal(own) || got.TransactionID != (dhcpv4.TransactionID{1, 2, 3, 4}) {
				t.Fatalf("got %s", got.Summary())
			}
			isInform := strings.HasPrefix(row.name, "INFORM")
			if want != nak && got.YourIPAddr.Equal(tabled) == isInform {
				t.Fatalf("got the address %s", got.YourIPAddr)
			}
		}
		t.Run(row.name+" to a fresh table", func(t *testing.T) {
			w := newWorld(t)
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
			expect(t, w.hear(row.frame), row.want.fresh)
		})
		for _, in := range []struct {
			name    string
			want    dhcpv4.MessageType
			prepare func(w *world)
		}{
			{"a stale table", row.want.stale, func(*world) {}},
			{"a fresh table, before the address is confirmed", row.want.fresh, (*world).beFreshAndUnconfirmed},
		} {
			t.Run(row.name+" to "+in.name, func(t *testing.T) {
				w := newWorld(t)
				in.prepare(w)
				sent := w.hear(row.frame)
				if !row.afterProbe {
					expect(t, sent, in.want)
					return
				}
				w.wait(150 * time.Millisecond)
				probes := append(sent, w.take()...)
				if len(probes) != probeTries {
					t.Fatalf("%d probes", len(probes))
				}
				w.wait(150 * time.Millisecond)
				expect(t, w.take(), in.want)
			})
			t.Run(row.name+" to "+in.name+", and another host has the address", func(t *testing.T) {
				if !row.afterProbe {
					return
				}
				w := newWorld(t)
				in.prepare(w)
				w.hear(row.frame)
				w.hear(arp{arpReply, otherMAC, guestIPv4, ownMAC, noIPv4}.frame(ownMAC))
				w.take()
				w.wait(time.Second)
				expect(t, w.take(), none)
				w.expectSeen(seen{seenConflict, otherMAC, guestIPv4})
			})
		}
	}
}

func TestProbeIsNotStoppedByTheGuestItself(t *testing.T) {
	w := newWorld(t)
	w.hear(discover(guestMAC))
	w.hear(arp{arpReply, guestMAC, guestIPv4, ownMAC, noIPv4}.frame(ownMAC))
	w.wait(time.Second)
	if sent := w.take(); len(sent) != 2 { // the second probe, the offer
		t.Fatalf("%d frames", len(sent))
	}
}

func TestProbeIsStoppedByAHostThatProbesTheSameAddress(t *testing.T) {
	w := newWorld(t)
	w.hear(discover(guestMAC))
	w.hear(arp{arpRequest, otherMAC, noIPv4, mac{}, guestIPv4}.frame(broadcastMAC))
	w.expectDropped(dropTaken)
	w.take()
	w.wait(time.Second)
	w.expectNoFrames(w.take())
}

func TestAnswerAfterAProbeIsNotSentIfTheTableGaveTheAddressAway(t *testing.T) {
	w := newWorld(t)
	w.hear(discover(guestMAC))
	w.obeyLines(`{"put":[{"mac":"02:00:00:00:00:99","ipv4":{"address":"10.1.0.10","prefix":24},"options":"o2"}]}`)
	w.wait(150 * time.Millisecond)
	w.take()
	w.wait(time.Second)
	w.expectNoFrames(w.take())
}

func TestOptionsOfDHCPv4(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(discover(guestMAC))
	for _, each := range []struct {
		code byte
		want []byte
	}{
		{1, []byte{255, 255, 255, 0}},
		{3, []byte{10, 1, 0, 1}},
		{6, []byte{10, 1, 0, 53}},
		{15, []byte("example.org")},
		{26, []byte{1400 >> 8, 1400 & 0xff}},
		{42, []byte{10, 1, 0, 123}},
		{51, []byte{0, 1, 0x51, 0x80}},
		{54, []byte{10, 1, 0, 2}},
		{58, []byte{0, 0, 1, 44}},
		{59, []byte{0, 0, 2, 88}},
		{61, nil},
		{119, []byte("\x07example\x03org\x00\x01a\x07example\x03org\x00")},
		// RFC 3442: 10.9.0.0/16 by 10.1.0.9, and the default route
		{121, []byte{16, 10, 9, 10, 1, 0, 9, 0, 10, 1, 0, 1}},
		{33, nil}, {67, nil},
	} {
		if value := got.Options.Get(dhcpv4.GenericOptionCode(each.code)); !bytes.Equal(value, each.want) {
			t.Errorf("option %d is %v, not %v", each.code, value, each.want)
		}
	}
	if got.ServerHostName != "" || got.BootFileName != "" || len(got.payload) < 300 {
		t.Errorf("got %s", got.Summary())
	}
}

func TestGuestWithoutDefaultRouteGetsNoRouter(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"put":[{"mac":"02:00:00:00:00:0b","ipv4":{"address":"10.1.0.11","prefix":24},"options":"o1"}]}`)
	got := w.expectReply(discover(plainMAC))
	if got.Options.Has(dhcpv4.OptionRouter) || !bytes.Equal(got.Options.Get(dhcpv4.OptionClasslessStaticRoute), []byte{16, 10, 9, 10, 1, 0, 9}) {
		t.Fatalf("got %s", got.Summary())
	}
}

func TestOptionsThatWereNotRequestedAreNotSent(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask))))
	var codes []int
	for code := range got.Options {
		codes = append(codes, int(code))
	}
	slices.Sort(codes)
	if want := []int{1, 51, 53, 54, 58, 59}; !slices.Equal(codes, want) {
		t.Fatalf("options %v, not %v", codes, want)
	}
}

// Simple clients, such as those of boot loaders, request nothing and use what comes.
func TestClientThatRequestsNoOptionsGetsAllThatAreConfigured(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithoutOption(dhcpv4.OptionParameterRequestList)))
	var codes []int
	for code := range got.Options {
		codes = append(codes, int(code))
	}
	slices.Sort(codes)
	if want := []int{1, 3, 6, 12, 15, 26, 42, 51, 53, 54, 58, 59, 119, 121, 224}; !slices.Equal(codes, want) {
		t.Fatalf("options %v, not %v", codes, want)
	}
}

func TestOldWindowsGetsRoutesInItsOwnOption(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	asking := dhcpv4.WithOption(dhcpv4.OptParameterRequestList(optionMicrosoftRoutes))
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, asking))
	if value := got.Options.Get(optionMicrosoftRoutes); !bytes.Equal(value, []byte{16, 10, 9, 10, 1, 0, 9, 0, 10, 1, 0, 1}) {
		t.Fatalf("option 249 is %v", value)
	}
}

func TestOfferHasNoAddressOfTheClient(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithClientIP(net.IP{10, 1, 0, 77})))
	if !got.ClientIPAddr.Equal(net.IPv4zero) || got.datagram.to.Addr() != guestIPv4 {
		t.Fatalf("got %s", got.Summary())
	}
}

// A switch adds the option to messages of its ports, and removes it from the answers.
func TestRelayInformationOfASwitchIsEchoed(t *testing.T) {
	for _, row := range []struct{ length, want int }{{8, 8}, {maxRelayInformation, maxRelayInformation}, {maxRelayInformation + 1, 0}} {
		w := newWorld(t)
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		added := dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionRelayAgentInformation, bytes.Repeat([]byte{1, 0}, row.length)[:row.length]))
		got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, added))
		if echoed := len(got.Options.Get(dhcpv4.OptionRelayAgentInformation)); echoed != row.want || len(got.payload) > dhcp4LeastSize {
			t.Errorf("%d bytes of %d in a message of %d", echoed, row.length, len(got.payload))
		}
	}
}

func TestInformOfAStaticAddressIsAnsweredThere(t *testing.T) {
	w := newWorld(t)
	static := netip.MustParseAddr("10.1.0.77")
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(static.AsSlice())))
	if got.datagram.to.Addr() != static || got.to != guestMAC || w.table.confirmed[static] {
		t.Fatalf("got %s", got.Summary())
	}
}

func TestInformHasNoLease(t *testing.T) {
	w := newWorld(t)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(guestIPv4.AsSlice())))
	for _, code := range []dhcpv4.OptionCode{dhcpv4.OptionIPAddressLeaseTime, dhcpv4.OptionRenewTimeValue, dhcpv4.OptionRebindingTimeValue} {
		if got.Options.Has(code) {
			t.Errorf("has option %s", code)
		}
	}
	if !got.Options.Has(dhcpv4.OptionDomainNameServer) || got.datagram.to.Addr() != guestIPv4 {
		t.Errorf("got %s", got.Summary())
	}
}

func TestLongOptionsAreLeftOutIfTheClientTakesNoLongMessage(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat(strings.Repeat("a", 60)+".", 4) + "bcdefgh"
	routes := strings.Repeat(`,{"destination":"10.9.0.0/32","gateway":"10.1.0.9"}`, 32)[1:] // 288 bytes: RFC 3396
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"options":{"id":"o1","dns":["10.1.0.53"],"search":["`+long+`"],"routes":[`+routes+`]}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o1"}]}`)
	short := w.expectReply(discover(guestMAC))
	if short.Options.Has(dhcpv4.OptionClasslessStaticRoute) || !short.Options.Has(dhcpv4.OptionDomainNameServer) || len(short.payload) > dhcp4LeastSize {
		t.Fatalf("%d bytes: %s", len(short.payload), short.Summary())
	}
	full := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(1500))))
	if len(full.ClasslessStaticRoute()) != 32 || len(full.DomainSearch().Labels) != 1 {
		t.Fatalf("got %s", full.Summary())
	}
}

// The sum of the sizes of options must be the size of the message, to the byte.
func TestMessageIsAsLongAsTheClientTakesAndNoLonger(t *testing.T) {
	w := newWorld(t)
	search := strings.Repeat("a", 60)
	routes := strings.Repeat(`,{"destination":"10.9.0.0/32","gateway":"10.1.0.9"}`, 32)[1:] // 288 bytes: two options
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"options":{"id":"o1","dns":["10.1.0.53"],"search":["`+search+`"],"routes":[`+routes+`]}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o1"}]}`)
	ask := func(size int) reply {
		return w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(uint16(size+28)))))
	}
	whole := ask(1472)
	if got := ask(len(whole.payload)); len(got.payload) != len(whole.payload) {
		t.Fatalf("%d bytes, not %d", len(got.payload), len(whole.payload))
	}
	if got := ask(len(whole.payload) - 1); got.Options.Has(dhcpv4.OptionDNSDomainSearchList) || !got.Options.Has(dhcpv4.OptionClasslessStaticRoute) {
		t.Fatalf("got %s", got.Summary())
	}
}

// Serializing the message once for each option and encoding all of them each time, needed 135 allocations.
func TestAnswerOfDHCPv4IsSerializedOnce(t *testing.T) {
	w := newWorld(t)
	request := parseDHCP4(guestMAC, discover(guestMAC)[etherLength+28:])
	allocated := testing.AllocsPerRun(100, func() { w.answerDHCP4(request, dhcpv4.MessageTypeOffer, w.table.guests[guestMAC], guestMAC) })
	if allocated > 60 {
		t.Fatalf("%v allocations", allocated)
	}
}

func BenchmarkDISCOVER(b *testing.B) {
	w := newWorld(&testing.T{})
	w.obeyLines(`{"fresh":{"forMs":3600000}}`)
	frame := discover(guestMAC)
	for b.Loop() {
		w.now = w.now.Add(time.Second)
		if len(w.hear(frame)) != 1 {
			w.obeyLines(`{"fresh":{"forMs":3600000}}`)
		}
	}
}

func TestWhereAnswersOfDHCPv4AreSent(t *testing.T) {
	broadcastFlag := dhcpv4.WithBroadcast(true)
	other := net.IP{10, 1, 0, 77}
	for _, row := range []struct {
		name  string
		frame []byte
		mac   mac
		ip    netip.Addr
	}{
		{"without flags", discover(guestMAC), guestMAC, guestIPv4},
		{"with the broadcast flag", fromClient(guestMAC, dhcpv4.MessageTypeDiscover, broadcastFlag), broadcastMAC, broadcastIPv4},
		{"at renewal", fromClientTo(ownIPv4, guestMAC, dhcpv4.MessageTypeRequest, broadcastFlag, dhcpv4.WithClientIP(guestIPv4.AsSlice())), guestMAC, guestIPv4},
		{"with a relay", fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithGatewayIP(other)), guestMAC, guestIPv4},
		{"a NAK", fromClient(guestMAC, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(other)), broadcastMAC, broadcastIPv4},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
			if got := w.expectReply(row.frame); got.to != row.mac || got.datagram.to.Addr() != row.ip {
				t.Fatalf("sent to %s %s", got.to, got.datagram.to)
			}
		})
	}
}

func TestClientIdentifierIsEchoed(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	id := dhcpv4.WithOption(dhcpv4.OptClientIdentifier([]byte{255, 1, 2, 3}))
	for _, frame := range [][]byte{
		fromClient(guestMAC, dhcpv4.MessageTypeDiscover, id),
		fromClient(guestMAC, dhcpv4.MessageTypeRequest, id, dhcpv4.WithClientIP(net.IP{10, 1, 0, 77})), // NAK
	} {
		if got := w.expectReply(frame).Options.Get(dhcpv4.OptionClientIdentifier); !bytes.Equal(got, []byte{255, 1, 2, 3}) {
			t.Errorf("option 61 is %v", got)
		}
	}
}

func TestMessagesThatGetNoAnswerOfDHCPv4(t *testing.T) {
	spoofed := discover(guestMAC)
	copy(spoofed[6:12], plainMAC[:]) // a neighbour asks with the guest's chaddr
	spoofing := discover(plainMAC)
	copy(spoofing[6:12], guestMAC[:])
	change := func(offset int, value ...byte) []byte {
		frame := discover(guestMAC)
		copy(frame[offset:], value)
		return withHeaderChecksum(frame)
	}
	const dhcp = etherLength + 28
	for _, row := range []struct {
		name   string
		frame  []byte
		reason string
	}{
		{"of an unknown MAC address", discover(otherMAC), dropUnknown},
		{"with the chaddr of a neighbour", spoofed, dropMalformed},
		{"with the source of a neighbour", spoofing, dropMalformed},
		{"of a server", change(dhcp, 2), dropMalformed},
		{"with another type of hardware", change(dhcp+1, 6), dropMalformed},
		{"with another length of address", change(dhcp+2, 16), dropMalformed},
		{"without the magic cookie", change(dhcp+236, 0), dropMalformed},
		{"that is cut off", discover(guestMAC)[:etherLength+100], dropMalformed},
		{"with a length beyond the packet", change(etherLength+24, 0xff), dropMalformed},
		{"that is a fragment", change(etherLength+6, 0x20), dropMalformed},
		{"with an offset", change(etherLength+6, 0, 1), dropMalformed},
		{"of another protocol", change(etherLength+9, 6), dropMalformed},
		{"whose options do not end", change(dhcp+dhcp4Fixed, bytes.Repeat([]byte{200}, 60)...), dropMalformed},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
			w.expectNoFrames(w.hear(row.frame))
			w.expectDropped(row.reason)
		})
	}
}

func TestResponderWithoutServerAddressIsSilent(t *testing.T) {
	w := newWorld(t)
	commands := golden(t, false)
	w.obeyLines(commands[len(commands)-1]) // its server address is null
	w.expectNoFrames(w.hear(discover(guestMAC)))
}

func TestDeclineIsReportedByTheServerThatItNames(t *testing.T) {
	decline := func(server net.IP) []byte {
		return fromClient(guestMAC, dhcpv4.MessageTypeDecline,
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(server)), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(guestIPv4.AsSlice())))
	}
	w := newWorld(t)
	w.hear(decline(net.IP{10, 1, 0, 3}))
	w.expectSeen()
	w.hear(decline(ownIPv4.AsSlice()))
	w.hear(decline(ownIPv4.AsSlice()))
	w.expectSeen(seen{seenDeclined, guestMAC, guestIPv4})
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	if w.askAfterProbe(discover(guestMAC)) != 1 {
		t.Fatal("a DISCOVER after a DECLINE is not answered after a probe")
	}
}

func FuzzDHCP4(f *testing.F) {
	f.Add(discover(guestMAC))
	f.Add(fromClient(guestMAC, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(guestIPv4.AsSlice())))
	f.Add(fromClient(guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(1))))
	f.Add(fromClient(guestMAC, dhcpv4.MessageTypeDecline, dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, make([]byte, 600)))))
	f.Fuzz(func(t *testing.T, frame []byte) { fuzz(t, frame) })
}
