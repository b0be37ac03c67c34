package main

import (
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

const (
	dhcp4Fixed = 240 // header and magic cookie
	// What a client takes if it says nothing else (RFC 2131, section 2), without the headers of IP and UDP.
	dhcp4LeastSize = 576 - 28
	noAnswer       = dhcpv4.MessageTypeNone
	nakText        = "not the address of this interface"
	// More than any switch adds. It must leave room for the options of the guest.
	maxRelayInformation   = 128
	maxClientIdentifier   = 255                           // that of one option: no client splits it, and a longer one leaves no room
	optionMicrosoftRoutes = dhcpv4.GenericOptionCode(249) // what Windows before 10 asks for instead of 121
)

// dhcp4Verdict is what to do about a message.
type dhcp4Verdict struct {
	message    string // in the counts
	answer     dhcpv4.MessageType
	afterProbe bool // only if no other host has the address
}

// receiveDHCP4 handles a datagram to a DHCPv4 server.
func (r *responder) receiveDHCP4(now time.Time, from mac, d datagram) {
	own := r.config.Server.IPv4
	if len(d.payload) >= dhcp4Fixed && chaddrOf(d.payload) != from && d.to.Addr() == own {
		r.receiveRouted(now, from, d)
		return
	}
	guest := r.admit(now, from)
	if guest == nil || !own.IsValid() || !guest.ipv4.Address.IsValid() {
		return
	}
	request := parseDHCP4(from, d.payload)
	if request == nil {
		r.drop(dropMalformed)
		return
	}
	tabled := guest.ipv4.Address
	verdict := decideDHCP4(request, dhcp4Case{own, netip.PrefixFrom(tabled, guest.ipv4.Prefix), d.to.Addr() == own, r.table.isFresh(now), r.table.confirmed[tabled]})
	if verdict.message == "decline" && ipv4Option(request, dhcpv4.OptionRequestedIPAddress) == tabled {
		r.declined(now, from, tabled)
	}
	if verdict.answer == noAnswer {
		r.count("dhcp4", verdict.message, "none")
		return
	}
	frame := r.answerDHCP4(request, verdict.answer, guest, guest.mac)
	send := func() {
		r.count("dhcp4", verdict.message, answerNames[verdict.answer])
		if verdict.answer == dhcpv4.MessageTypeAck && verdict.message != "inform" {
			r.table.confirmed[tabled] = true
		}
		r.send(frame)
	}
	if verdict.afterProbe {
		r.afterProbe(from, tabled, send)
	} else {
		send()
	}
}

var answerNames = map[dhcpv4.MessageType]string{
	dhcpv4.MessageTypeOffer: "offer",
	dhcpv4.MessageTypeAck:   "ack",
	dhcpv4.MessageTypeNak:   "nak",
}

func chaddrOf(b []byte) mac { return mac(b[28:34]) }

// parseDHCP4 returns the message of a client; nil if it is not whole or names another MAC address than its frame.
func parseDHCP4(from mac, b []byte) *dhcpv4.DHCPv4 {
	isFromGuest := len(b) >= dhcp4Fixed && b[0] == byte(dhcpv4.OpcodeBootRequest) &&
		b[1] == byte(iana.HWTypeEthernet) && b[2] == 6 && chaddrOf(b) == from
	if !isFromGuest {
		return nil
	}
	message, err := dhcpv4.FromBytes(b)
	if err != nil {
		return nil
	}
	return message
}

// dhcp4Case is what an answer depends on besides the message.
type dhcp4Case struct {
	own         netip.Addr
	subnet      netip.Prefix // with the address of the table
	isUnicast   bool         // the message was sent to our address
	isFresh     bool
	isConfirmed bool
}

// decideDHCP4 is the table of RFC 2131, section 4.3, for one known client. A stale table never takes an address from a
// client (NAK). An address is given only after a probe if the table is stale or the address is not confirmed, unless the
// client already has it.
func decideDHCP4(m *dhcpv4.DHCPv4, in dhcp4Case) dhcp4Verdict {
	client, tabled := clientAddress(m), in.subnet.Addr()
	server := ipv4Option(m, dhcpv4.OptionServerIdentifier)
	requested := ipv4Option(m, dhcpv4.OptionRequestedIPAddress)
	afterProbe := !in.isFresh || !in.isConfirmed
	ackOrNak := func(message string, isRight bool) dhcp4Verdict {
		switch {
		case isRight:
			return dhcp4Verdict{message, dhcpv4.MessageTypeAck, false}
		case in.isFresh:
			return dhcp4Verdict{message, dhcpv4.MessageTypeNak, false}
		}
		return dhcp4Verdict{message, noAnswer, false}
	}
	switch m.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		return dhcp4Verdict{"discover", dhcpv4.MessageTypeOffer, afterProbe}
	case dhcpv4.MessageTypeRequest:
		switch {
		case server.IsValid() && server != in.own:
			return dhcp4Verdict{"selecting", noAnswer, false}
		case client != noIPv4 && !requested.IsValid() && in.isUnicast: // some clients name their server, although they must not
			return ackOrNak("renew", client == tabled)
		case client != noIPv4 && !requested.IsValid():
			return ackOrNak("rebind", client == tabled)
		case server.IsValid():
			return givenAfter(afterProbe, ackOrNak("selecting", requested == tabled))
		case client != noIPv4:
			return ackOrNak("rebind", client == tabled)
		case requested.IsValid():
			return givenAfter(afterProbe, ackOrNak("init-reboot", requested == tabled))
		}
		return dhcp4Verdict{"request", noAnswer, false}
	case dhcpv4.MessageTypeInform:
		if in.subnet.Contains(client) { // also of a static address: RFC 2131, section 3.4
			return dhcp4Verdict{"inform", dhcpv4.MessageTypeAck, false}
		}
		return dhcp4Verdict{"inform", noAnswer, false}
	case dhcpv4.MessageTypeDecline:
		if server == in.own {
			return dhcp4Verdict{"decline", noAnswer, false}
		}
	case dhcpv4.MessageTypeRelease:
		return dhcp4Verdict{"release", noAnswer, false}
	}
	return dhcp4Verdict{"other", noAnswer, false}
}

// givenAfter says that an address is given only after a probe.
func givenAfter(probe bool, verdict dhcp4Verdict) dhcp4Verdict {
	verdict.afterProbe = probe && verdict.answer == dhcpv4.MessageTypeAck
	return verdict
}

func clientAddress(m *dhcpv4.DHCPv4) netip.Addr {
	address, _ := netip.AddrFromSlice(m.ClientIPAddr)
	return address.Unmap()
}

// ipv4Option returns the address in an option; the zero address if there is none.
func ipv4Option(m *dhcpv4.DHCPv4, code dhcpv4.OptionCode) netip.Addr {
	value := m.Options.Get(code)
	if len(value) != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(value))
}

// answerDHCP4 returns the frame of an answer to a guest or, with its MAC address, to the router before it.
func (r *responder) answerDHCP4(request *dhcpv4.DHCPv4, kind dhcpv4.MessageType, guest *guest, to mac) []byte {
	own := r.config.Server.IPv4
	reply := &dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootReply, HWType: iana.HWTypeEthernet, ClientHWAddr: request.ClientHWAddr,
		TransactionID: request.TransactionID, Flags: request.Flags, Options: dhcpv4.Options{},
		ClientIPAddr: net.IPv4zero, YourIPAddr: net.IPv4zero, ServerIPAddr: net.IPv4zero, GatewayIPAddr: net.IPv4zero,
	}
	reply.UpdateOption(dhcpv4.OptMessageType(kind))
	reply.UpdateOption(dhcpv4.OptServerIdentifier(own.AsSlice()))
	if id := request.Options.Get(dhcpv4.OptionClientIdentifier); len(id) > 0 && len(id) <= maxClientIdentifier {
		reply.UpdateOption(dhcpv4.OptClientIdentifier(id)) // RFC 6842
	}
	if relay := request.Options.Get(dhcpv4.OptionRelayAgentInformation); len(relay) > 0 && len(relay) <= maxRelayInformation {
		reply.UpdateOption(dhcpv4.OptGeneric(dhcpv4.OptionRelayAgentInformation, relay)) // RFC 3046: a switch may add it
	}
	if kind == dhcpv4.MessageTypeNak {
		reply.SetBroadcast()
		reply.UpdateOption(dhcpv4.OptMessage(nakText))
		return r.frameDHCP4(broadcastMAC, broadcastIPv4, reply)
	}
	if request.MessageType() != dhcpv4.MessageTypeInform {
		times := r.config.Times
		reply.YourIPAddr = guest.ipv4.Address.AsSlice()
		reply.UpdateOption(dhcpv4.OptIPAddressLeaseTime(seconds(times.Lease)))
		reply.UpdateOption(dhcpv4.OptRenewTimeValue(seconds(times.Renew)))
		reply.UpdateOption(dhcpv4.OptRebindingTimeValue(seconds(times.Rebind)))
	}
	reply.UpdateOption(dhcpv4.OptSubnetMask(net.CIDRMask(guest.ipv4.Prefix, 32)))
	r.addRequestedOptions(reply, request, guest, to == guest.mac)
	client := clientAddress(request)
	switch {
	case kind == dhcpv4.MessageTypeAck && client != noIPv4:
		reply.ClientIPAddr = request.ClientIPAddr
		return r.frameDHCP4(to, client, reply) // decideDHCP4 has checked it
	case request.IsBroadcast():
		return r.frameDHCP4(broadcastMAC, broadcastIPv4, reply)
	}
	return r.frameDHCP4(to, guest.ipv4.Address, reply)
}

func (r *responder) frameDHCP4(to mac, address netip.Addr, reply *dhcpv4.DHCPv4) []byte {
	return ethernet(to, r.link.mac(), etherIPv4, ipv4(datagram{
		from:    netip.AddrPortFrom(r.config.Server.IPv4, dhcp4Server),
		to:      netip.AddrPortFrom(address, dhcp4Client),
		payload: reply.ToBytes(),
	}))
}

// ips returns the addresses of one version.
func ips(all []netip.Addr, version int) (found []net.IP) {
	for _, each := range addresses(all, version) {
		found = append(found, each.AsSlice())
	}
	return found
}

func seconds(count uint32) time.Duration { return time.Duration(count) * time.Second }

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
