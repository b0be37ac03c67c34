package main

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

var routerMAC = mac{2, 0, 0, 0, 0, 0x44}

// routed returns the frame in which a router delivers a message to us.
func routed(frame []byte) []byte {
	copy(frame, ownMAC[:])
	copy(frame[6:], routerMAC[:])
	return frame
}

func renewal(from mac, client netip.Addr, change ...dhcpv4.Modifier) []byte {
	return fromClientTo(ownIPv4, from, dhcpv4.MessageTypeRequest, append(change, dhcpv4.WithClientIP(client.AsSlice()))...)
}

func TestRenewalThroughARouterIsAnsweredToTheRouter(t *testing.T) {
	for _, isFresh := range []bool{true, false} {
		w := newWorld(t)
		if isFresh {
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
		}
		got := w.expectReply(routed(renewal(guestMAC, guestIPv4)))
		if got.MessageType() != dhcpv4.MessageTypeAck || got.to != routerMAC || got.datagram.to.Addr() != guestIPv4 || !got.YourIPAddr.Equal(guestIPv4.AsSlice()) {
			t.Fatalf("to %s: %s", got.to, got.Summary())
		}
	}
}

// Any host can forge such a renewal, and would read the secrets of a boot file's name or of a private option.
func TestRenewalThroughARouterHasNoNamesAndOptionsOfTheGuestAlone(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"options":{"id":"o1","dns":["10.1.0.53"],"dhcp4":[{"code":67,"value":"706f6f6c"},{"code":150,"value":"0a010009"}]}}`)
	w.beNamed(`{"code":67,"value":"6f776e"},{"code":224,"value":"00ff"}`)
	own := []dhcpv4.OptionCode{dhcpv4.OptionHostName, dhcpv4.OptionFQDN, dhcpv4.OptionBootfileName, dhcpv4.GenericOptionCode(224)}
	ofPool := []dhcpv4.OptionCode{dhcpv4.OptionDomainNameServer, dhcpv4.GenericOptionCode(150)}
	asking := []dhcpv4.Modifier{
		dhcpv4.WithOption(dhcpv4.OptParameterRequestList(append(own, ofPool...)...)), dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionFQDN, []byte{0, 0, 0})),
	}
	direct, got := w.expectReply(renewal(guestMAC, guestIPv4, asking...)), w.expectReply(routed(renewal(guestMAC, guestIPv4, asking...)))
	for _, code := range own {
		if !direct.Options.Has(code) || got.Options.Has(code) {
			t.Errorf("option %s: %v, through a router %v", code, direct.Options.Has(code), got.Options.Has(code))
		}
	}
	for _, code := range ofPool {
		if !got.Options.Has(code) {
			t.Errorf("no option %s", code)
		}
	}
}

func TestRouterThatIsItselfAGuestDeliversRenewals(t *testing.T) {
	w := newWorld(t)
	frame := routed(renewal(guestMAC, guestIPv4))
	copy(frame[6:], plainMAC[:])
	if got := w.expectReply(frame); got.to != plainMAC || !got.YourIPAddr.Equal(guestIPv4.AsSlice()) {
		t.Fatalf("to %s: %s", got.to, got.Summary())
	}
}

func TestOtherMessagesThroughARouterAreNotAnswered(t *testing.T) {
	other := netip.MustParseAddr("10.1.0.77")
	forged := routed(renewal(guestMAC, guestIPv4))
	copy(forged[etherLength+12:], other.AsSlice())
	withHeaderChecksum(forged)
	relay := dhcpv4.WithGatewayIP(net.IP{10, 1, 0, 9})
	request := dhcpv4.MessageTypeRequest
	tabled := net.IP(guestIPv4.AsSlice())
	for name, frame := range map[string][]byte{
		"of an unknown MAC address":     routed(renewal(otherMAC, guestIPv4)),
		"of another address":            routed(renewal(guestMAC, other)),
		"of the address of a neighbour": routed(renewal(guestMAC, plainIPv4)),
		"from another address":          forged,
		"of a relay":                    routed(renewal(guestMAC, guestIPv4, relay)),
		"to everybody":                  append(append([]byte{}, broadcastMAC[:]...), routed(fromClient(guestMAC, request, dhcpv4.WithClientIP(tabled)))[6:]...),
		"that is a DISCOVER":            routed(fromClientTo(ownIPv4, guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithClientIP(tabled))),
		"that is an INFORM":             routed(fromClientTo(ownIPv4, guestMAC, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(tabled))),
		"that is a DECLINE":             routed(fromClientTo(ownIPv4, guestMAC, dhcpv4.MessageTypeDecline, dhcpv4.WithClientIP(tabled))),
		"that requests an address": routed(renewal(guestMAC, guestIPv4,
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(ownIPv4.AsSlice())), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(tabled)))),
		"that is cut off": routed(renewal(guestMAC, guestIPv4))[:etherLength+28+100],
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
			w.expectNoFrames(w.hear(frame))
			w.expectSeen()
		})
	}
}

// A host behind the router knows MAC address and address of a guest. It must not stop what the guest itself sends, or
// make us give an address without a probe.
func TestFloodThroughARouterDoesNotAffectTheGuest(t *testing.T) {
	w := newWorld(t)
	w.beFreshAndUnconfirmed()
	answers := 0
	for range 3 * guestBurst {
		answers += len(w.hear(routed(renewal(guestMAC, guestIPv4))))
	}
	if answers != guestBurst {
		t.Fatalf("%d answers", answers)
	}
	if w.askAfterProbe(discover(guestMAC)) != 1 {
		t.Fatal("the guest is not answered after a probe")
	}
	w.wait(time.Second)
	w.expectSeen()
}
