package main

import (
	"net/netip"
	"testing"

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
