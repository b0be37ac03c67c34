package main

import (
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/mdlayher/ndp"
)

// offer returns the frame of a DHCPv4 server's answer to a guest.
func offer(from mac, server netip.Addr) []byte {
	message, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeOffer), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(server.AsSlice())))
	if err != nil {
		panic(err)
	}
	message.OpCode = dhcpv4.OpcodeBootReply
	return ethernet(broadcastMAC, from, etherIPv4, ipv4(datagram{
		from: netip.AddrPortFrom(server, 67), to: netip.AddrPortFrom(broadcastIPv4, 68), payload: message.ToBytes(),
	}))
}

func TestOtherDHCPServersAreReported(t *testing.T) {
	w := newWorld(t)
	stranger := netip.MustParseAddr("10.1.0.99")
	w.hear(offer(mac{2, 0, 0, 0, 0, 2}, netip.MustParseAddr("10.1.0.3"))) // the peer
	w.hear(offer(otherMAC, netip.MustParseAddr("255.255.255.255")))
	w.expectSeen()
	w.hear(offer(otherMAC, stranger))
	advertise := func(kind dhcpv6.MessageType) []byte {
		return ethernet(ownMAC, otherMAC, etherIPv6, ipv6(datagram{
			from: netip.AddrPortFrom(routerAddress, 547), to: netip.AddrPortFrom(linkLocal(ownMAC), 546), payload: []byte{byte(kind), 0, 0, 0},
		}))
	}
	w.hear(advertise(dhcpv6.MessageTypeReconfigure))
	w.hear(advertise(dhcpv6.MessageTypeAdvertise))
	w.expectSeen(seen{seenServer, otherMAC, stranger}, seen{seenServer, otherMAC, routerAddress})
}

func TestRoutersAreReported(t *testing.T) {
	w := newWorld(t)
	advertise := func(lifetime time.Duration) []byte {
		return neighbourFrame(groupMAC(allNodes), otherMAC, routerAddress, allNodes, &ndp.RouterAdvertisement{RouterLifetime: lifetime})
	}
	w.hear(advertise(0))
	w.expectSeen()
	w.hear(advertise(time.Minute))
	w.expectSeen(seen{seenRouter, otherMAC, routerAddress})
}

func TestOtherServersAndRoutersAreAskedForAtTheStartAndEveryTenMinutes(t *testing.T) {
	w := newWorld(t)
	questions := func(duration time.Duration) (discovers, solicits, solicitations int) {
		w.wait(duration)
		for _, frame := range w.take() {
			if got, ok := parseIPv4(frame[etherLength:]); ok && got.to.Port() == 67 {
				discovers++
				if message := parseDHCP4(ownMAC, got.payload); message == nil || message.MessageType() != dhcpv4.MessageTypeDiscover {
					t.Fatalf("not a DISCOVER: %x", frame)
				}
			}
			if to := mac(frame[:6]); to == groupMAC(allDHCP6Servers) {
				solicits++
				got, _ := parseUDP(frame[etherLength+40:], linkLocal(ownMAC), allDHCP6Servers)
				if message := parseDHCP6(got); message == nil || message.MessageType != dhcpv6.MessageTypeSolicit {
					t.Fatalf("not a SOLICIT: %x", frame)
				}
			} else if to == groupMAC(allRouters) {
				solicitations++
			}
		}
		return discovers, solicits, solicitations
	}
	w.searchAt = time.Time{}
	for _, duration := range []time.Duration{time.Second, 8 * time.Minute} { // 20 % less than ten minutes
		if discovers, solicits, solicitations := questions(duration); discovers != 1 || solicits != 1 || solicitations != 1 {
			t.Fatalf("%d %d %d in %s", discovers, solicits, solicitations, duration)
		}
	}
}

// The responders of a pool ask each other too.
func TestOtherResponderIsNotAnswered(t *testing.T) {
	w := newWorld(t)
	w.searchAt = time.Time{}
	w.wait(time.Second)
	peer := newWorld(t)
	for _, frame := range w.take() {
		copy(frame[6:12], []byte{2, 0, 0, 0, 0, 2})
		if sent := peer.hear(frame); len(sent) > 0 {
			t.Fatalf("the answer to %x is %x", frame, sent)
		}
	}
}
