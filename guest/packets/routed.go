package main

import (
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// A network that is renumbered has two subnets, and the guests of one of them reach a responder in the other one through
// a router. Their frames have the MAC address of the router, which proves nothing.

// receiveRouted answers a renewal that came through a router. MAC address, address in the message and source must be those
// of one guest of the table. Nothing else is answered: what the guest does not have yet, it asks for on the segment.
func (r *responder) receiveRouted(now time.Time, router mac, d datagram) {
	guest := r.table.guest(chaddrOf(d.payload))
	client, relay := netip.AddrFrom4([4]byte(d.payload[12:16])), netip.AddrFrom4([4]byte(d.payload[24:28]))
	if guest == nil || guest.ipv4.Address != client || d.from.Addr() != client || relay != noIPv4 {
		r.drop(dropUnknown)
		return
	}
	if !guest.routed.allow(now) {
		r.drop(dropLimited)
		return
	}
	request := parseDHCP4(guest.mac, d.payload)
	if request == nil {
		r.drop(dropMalformed)
		return
	}
	verdict := decideDHCP4(request, dhcp4Case{r.config.Server.IPv4, netip.PrefixFrom(client, guest.ipv4.Prefix), true, r.table.isFresh(now), false})
	if verdict.message != "renew" || verdict.answer != dhcpv4.MessageTypeAck {
		r.count("dhcp4", verdict.message, "none")
		return
	}
	// It does not confirm the address: a host behind the router can forge it.
	r.count("dhcp4", "renew", "ack")
	r.send(r.answerDHCP4(request, verdict.answer, guest, router))
}
