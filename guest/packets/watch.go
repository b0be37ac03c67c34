package main

import (
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/mdlayher/ndp"
)

const (
	// A switch may deliver frames of the former guest for a while.
	moveTime = 5 * time.Second
	// Other servers and routers are asked for at the start, and then in this interval, 20 % more or less.
	searchEvery = 10 * time.Minute
)

// heard takes note of a host that uses an address.
func (r *responder) heard(now time.Time, from mac, address netip.Addr) {
	r.heardProbe(now, from, address)
	if r.config.Server.IPv4 == address {
		r.see(now, seenConflict, from, address)
	}
	owner := r.table.byAddress[address]
	if owner != nil && r.table.isComplete && !r.table.isOwn(address, from) && now.Sub(owner.since) > moveTime {
		r.see(now, seenConflict, from, address)
	}
}

// declined takes note of a guest that declined its address.
func (r *responder) declined(now time.Time, from mac, address netip.Addr) {
	delete(r.table.confirmed, address)
	r.see(now, seenDeclined, from, address)
}

// heardServer4 takes note of a DHCPv4 server that is no responder of this pool.
func (r *responder) heardServer4(now time.Time, from mac, d datagram) {
	if len(d.payload) < dhcp4Fixed || d.payload[0] != byte(dhcpv4.OpcodeBootReply) {
		r.drop(dropMalformed)
		return
	}
	message, err := dhcpv4.FromBytes(d.payload)
	if err != nil {
		r.drop(dropMalformed)
		return
	}
	if isProxyAnswer(message, d.from) {
		return
	}
	server := ipv4Option(message, dhcpv4.OptionServerIdentifier)
	if isHost(server, 4) && server != r.config.Server.IPv4 && !slices.Contains(r.config.Peers, server) {
		r.see(now, seenServer, from, server)
	}
}

// heardServer6 takes note of a DHCPv6 server. Responders of this pool do not answer each other.
func (r *responder) heardServer6(now time.Time, from mac, d datagram) {
	if len(d.payload) < 4 || !d.from.Addr().IsLinkLocalUnicast() {
		r.drop(dropMalformed)
		return
	}
	switch dhcpv6.MessageType(d.payload[0]) {
	case dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeReply:
		r.see(now, seenServer, from, d.from.Addr())
	}
}

// heardRouter takes note of a router.
func (r *responder) heardRouter(now time.Time, from mac, source netip.Addr, lifetime uint16) {
	if lifetime > 0 && source.IsLinkLocalUnicast() {
		r.see(now, seenRouter, from, source)
	}
}

// search asks for other servers and routers. Their answers are watched.
func (r *responder) search(now time.Time) {
	if now.Before(r.searchAt) {
		return
	}
	ms := int(searchEvery.Milliseconds())
	r.searchAt = now.Add(time.Duration(ms*4/5+r.random(ms*2/5)) * time.Millisecond)
	own := r.link.mac()
	id := uint32(r.random(1 << 24))
	discover := &dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, ClientHWAddr: own[:],
		TransactionID: dhcpv4.TransactionID{0, byte(id >> 16), byte(id >> 8), byte(id)},
		Options:       dhcpv4.OptionsFromList(dhcpv4.OptMessageType(dhcpv4.MessageTypeDiscover)),
	}
	r.send(ethernet(broadcastMAC, own, etherIPv4, ipv4(datagram{
		from: netip.AddrPortFrom(noIPv4, dhcp4Client), to: netip.AddrPortFrom(broadcastIPv4, dhcp4Server), payload: discover.ToBytes(),
	})))
	solicit := &dhcpv6.Message{
		MessageType:   dhcpv6.MessageTypeSolicit,
		TransactionID: dhcpv6.TransactionID{byte(id >> 16), byte(id >> 8), byte(id)},
	}
	solicit.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: r.config.Server.DUID})
	solicit.AddOption(dhcpv6.OptElapsedTime(0))
	solicit.AddOption(&dhcpv6.OptIANA{})
	r.send(ethernet(groupMAC(allDHCP6Servers), own, etherIPv6, ipv6(datagram{
		from: netip.AddrPortFrom(linkLocal(own), dhcp6Client), to: netip.AddrPortFrom(allDHCP6Servers, dhcp6Server), payload: solicit.ToBytes(),
	})))
	r.sendNDP(groupMAC(allRouters), allRouters, &ndp.RouterSolicitation{})
}
