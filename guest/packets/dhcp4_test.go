package main

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

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

func TestOfferHasNoAddressOfTheClient(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithClientIP(net.IP{10, 1, 0, 77})))
	if !got.ClientIPAddr.Equal(net.IPv4zero) || got.datagram.to.Addr() != guestIPv4 {
		t.Fatalf("got %s", got.Summary())
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
	f.Add(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptClientIdentifier(make([]byte, 1190)))))
	f.Fuzz(func(t *testing.T, frame []byte) { fuzz(t, frame) })
}
