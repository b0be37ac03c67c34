package main

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

var ownDUID = fromHex("0004 000102030405060708090a0b0c0d0e0f")

// from6 returns the frame of a client's message.
func from6(from mac, kind dhcpv6.MessageType, options ...dhcpv6.Option) []byte {
	message := &dhcpv6.Message{MessageType: kind, TransactionID: dhcpv6.TransactionID{1, 2, 3}}
	message.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{9, 9, 9, 9, 9, 9}}))
	for _, each := range options {
		message.AddOption(each)
	}
	return frame6(from, linkLocal(from), message.ToBytes())
}

func frame6(from mac, source netip.Addr, payload []byte) []byte {
	return ethernet(groupMAC(allDHCP6Servers), from, etherIPv6, ipv6(datagram{
		from: netip.AddrPortFrom(source, 546), to: netip.AddrPortFrom(allDHCP6Servers, 547), payload: payload,
	}))
}

func serverID(duid []byte) dhcpv6.Option {
	return &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: duid}
}

func iaOf(id byte, addresses ...string) dhcpv6.Option {
	made := &dhcpv6.OptIANA{IaId: [4]byte{id}}
	for _, each := range addresses {
		made.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(each), PreferredLifetime: time.Hour, ValidLifetime: time.Hour})
	}
	return made
}

func parseReply6(t *testing.T, frame []byte) *dhcpv6.Message {
	t.Helper()
	packet := frame[etherLength:]
	segment := packet[40:]
	source, target := netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40]))
	got, ok := parseUDP(segment, source, target)
	if !ok || source != linkLocal(ownMAC) || target != guestLinkLocal || got.from.Port() != 547 || got.to.Port() != 546 ||
		mac(frame[:6]) != guestMAC || checksum(pseudoHeader(source, target, protocolUDP, len(segment)), segment) != 0 {
		t.Fatalf("not an answer of DHCPv6: %x", frame)
	}
	message, err := dhcpv6.MessageFromBytes(got.payload)
	if err != nil {
		t.Fatal(err)
	}
	if message.TransactionID != (dhcpv6.TransactionID{1, 2, 3}) || !bytes.Equal(message.Options.ServerID().ToBytes(), ownDUID) {
		t.Fatalf("got %s", message)
	}
	return message
}

func (w *world) expectReply6(frame []byte) *dhcpv6.Message {
	w.t.Helper()
	sent := w.hear(frame)
	if len(sent) != 1 {
		w.t.Fatalf("%d frames instead of an answer; dropped: %v", len(sent), w.counter.dropped)
	}
	return parseReply6(w.t, sent[0])
}
