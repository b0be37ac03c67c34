package main

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

const (
	maxOptions6  = 16 // of a message, without those inside of others
	maxIAs       = 4
	maxEchoed    = 4 // other addresses that an IA names
	leastRefresh = 10 * time.Minute
	maxAnswer6   = maxFrame - etherLength - 40 - 8
	noAnswer6    = dhcpv6.MessageTypeNone
	answer6      = dhcpv6.MessageTypeReply
)

var messageNames6 = map[dhcpv6.MessageType]string{
	dhcpv6.MessageTypeSolicit: "solicit", dhcpv6.MessageTypeRequest: "request", dhcpv6.MessageTypeConfirm: "confirm",
	dhcpv6.MessageTypeRenew: "renew", dhcpv6.MessageTypeRebind: "rebind", dhcpv6.MessageTypeRelease: "release",
	dhcpv6.MessageTypeDecline: "decline", dhcpv6.MessageTypeInformationRequest: "information-request",
}

// receiveDHCP6 handles a datagram to a DHCPv6 server. The guest is known by the MAC address of the frame: its DUID may
// be that of the image that it was cloned from.
func (r *responder) receiveDHCP6(now time.Time, from mac, d datagram) {
	guest := r.admit(now, from)
	if guest == nil || !guest.ipv6.IsValid() {
		return
	}
	request := parseDHCP6(d)
	if request == nil {
		r.drop(dropMalformed)
		return
	}
	name := messageNames6[request.MessageType]
	verdict := decideDHCP6(request, dhcp6Case{r.config.Server.DUID, guest.ipv6, !d.to.Addr().IsMulticast(), r.table.isFresh(now), r.table.confirmed[guest.ipv6]})
	if verdict.answer == noAnswer6 {
		r.count("dhcp6", name, "none")
		return
	}
	if verdict.isDeclined {
		r.declined(now, from, guest.ipv6)
	}
	reply := r.answerDHCP6(request, verdict, guest)
	frame := ethernet(from, r.link.mac(), etherIPv6, ipv6(datagram{
		from: netip.AddrPortFrom(linkLocal(r.link.mac()), dhcp6Server), to: netip.AddrPortFrom(d.from.Addr(), dhcp6Client), payload: reply.ToBytes(),
	}))
	send := func() {
		if verdict.hasIAs && verdict.answer == answer6 {
			r.table.confirmed[guest.ipv6] = true
		}
		r.count("dhcp6", name, map[bool]string{true: "reply", false: "advertise"}[verdict.answer == answer6])
		r.send(frame)
	}
	if verdict.afterProbe {
		r.afterProbe(from, guest.ipv6, send)
	} else {
		send()
	}
}

// dhcp6Case is what an answer depends on besides the message.
type dhcp6Case struct {
	own         []byte // DUID
	tabled      netip.Addr
	isUnicast   bool
	isFresh     bool
	isConfirmed bool
}

// dhcp6Verdict is what to do about a message.
type dhcp6Verdict struct {
	answer     dhcpv6.MessageType
	afterProbe bool            // only if no other host has the address
	status     iana.StatusCode // of the whole answer
	hasIAs     bool
	isDeclined bool // the guest declined the address that it has in the table
}

// decideDHCP6 is the table of RFC 8415, section 18.3, for one known client. An address is given only after a probe if the
// table is stale or the address is not confirmed, unless the client already has it. A stale table never tells a client
// that its address is wrong.
func decideDHCP6(m *dhcpv6.Message, in dhcp6Case) (verdict dhcp6Verdict) {
	server, client := m.GetOneOption(dhcpv6.OptionServerID), m.GetOneOption(dhcpv6.OptionClientID)
	isOwn := server != nil && bytes.Equal(server.ToBytes(), in.own)
	isNamed := isOwn && client != nil
	isForAll := server == nil && client != nil
	hasTabled := namesOnly(m, in.tabled)
	afterProbe := !in.isFresh || !in.isConfirmed
	reply := dhcp6Verdict{answer: answer6}
	if in.isUnicast { // sections 16 and 18.3.2: we never tell a client that it may
		switch m.MessageType {
		case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
			if isNamed {
				verdict = dhcp6Verdict{answer: answer6, status: iana.StatusUseMulticast}
			}
		}
		return verdict
	}
	switch m.MessageType {
	case dhcpv6.MessageTypeSolicit:
		if isForAll {
			verdict = dhcp6Verdict{answer: dhcpv6.MessageTypeAdvertise, afterProbe: afterProbe, hasIAs: true}
			if m.GetOneOption(dhcpv6.OptionRapidCommit) != nil && m.Options.OneIANA() != nil {
				verdict.answer = answer6
			}
		}
	case dhcpv6.MessageTypeRequest:
		if isNamed {
			verdict = dhcp6Verdict{answer: answer6, afterProbe: afterProbe, hasIAs: true}
		}
	case dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind:
		isAsked := isNamed
		if m.MessageType == dhcpv6.MessageTypeRebind {
			isAsked = isForAll
		}
		if isAsked && (in.isFresh || hasTabled) {
			verdict = dhcp6Verdict{answer: answer6, afterProbe: afterProbe && !hasTabled, hasIAs: true}
		}
	case dhcpv6.MessageTypeConfirm:
		// A copy of a VM may come back with the address of its original, which is right for the link, but not for the copy.
		if isForAll && (hasTabled || in.isFresh && namesAny(m)) {
			verdict = reply
			verdict.afterProbe = afterProbe && hasTabled
			if !hasTabled {
				verdict.status = iana.StatusNotOnLink
			}
		}
	case dhcpv6.MessageTypeInformationRequest:
		if (isOwn || server == nil) && countIAs(m) == 0 { // section 16.12
			verdict = reply
		}
	case dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		if isNamed {
			verdict = reply
			verdict.isDeclined = m.MessageType == dhcpv6.MessageTypeDecline && hasTabled
		}
	}
	return verdict
}

// namesAny returns whether a client names an address in its IA_NAs.
func namesAny(m *dhcpv6.Message) bool {
	return slices.ContainsFunc(m.Options.IANA(), func(ia *dhcpv6.OptIANA) bool { return ia.Options.OneAddress() != nil })
}

// namesOnly returns whether a client names this address and no other one.
func namesOnly(m *dhcpv6.Message, address netip.Addr) bool {
	for _, ia := range m.Options.IANA() {
		for _, each := range ia.Options.Addresses() {
			if !bytes.Equal(each.IPv6Addr, address.AsSlice()) {
				return false
			}
		}
	}
	return namesAny(m)
}

func (r *responder) answerDHCP6(request *dhcpv6.Message, verdict dhcp6Verdict, guest *guest) *dhcpv6.Message {
	reply := &dhcpv6.Message{MessageType: verdict.answer, TransactionID: request.TransactionID}
	if client := request.GetOneOption(dhcpv6.OptionClientID); client != nil {
		reply.AddOption(client)
	}
	reply.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: r.config.Server.DUID})
	if verdict.answer == dhcpv6.MessageTypeAdvertise && request.Options.OneIANA() != nil {
		// Else a client waits for other servers at its first start: section 18.2.1. Without an address to offer, it should wait.
		reply.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionPreference, OptionData: []byte{255}})
	}
	if verdict.hasIAs {
		r.addIAs(reply, request, guest)
		if request.MessageType == dhcpv6.MessageTypeSolicit && verdict.answer == answer6 {
			reply.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit})
		}
	} else if request.MessageType != dhcpv6.MessageTypeInformationRequest {
		reply.AddOption(&dhcpv6.OptStatusCode{StatusCode: verdict.status})
	}
	if verdict.status != iana.StatusUseMulticast {
		r.addRequestedOptions6(reply, request, guest)
	}
	return reply
}

// addIAs answers the identity associations: the first one for an address gets the address of the table.
func (r *responder) addIAs(reply, request *dhcpv6.Message, guest *guest) {
	times := r.config.Times
	for index, asked := range request.Options.IANA() {
		given := &dhcpv6.OptIANA{IaId: asked.IaId}
		if index > 0 {
			given.Options.Add(&dhcpv6.OptStatusCode{StatusCode: iana.StatusNoAddrsAvail})
			reply.AddOption(given)
			continue
		}
		given.T1, given.T2 = seconds(times.Renew), seconds(times.Rebind)
		lifetime := seconds(times.Lease)
		given.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: guest.ipv6.AsSlice(), PreferredLifetime: lifetime, ValidLifetime: lifetime})
		echoed := 0
		for _, each := range asked.Options.Addresses() {
			isOther := !bytes.Equal(each.IPv6Addr, guest.ipv6.AsSlice())
			if isOther && request.MessageType != dhcpv6.MessageTypeSolicit && echoed < maxEchoed {
				echoed++
				given.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: each.IPv6Addr}) // no longer valid
			}
		}
		reply.AddOption(given)
	}
	for _, asked := range request.Options.IATA() {
		refused := &dhcpv6.OptIATA{IaId: asked.IaId}
		refused.Options.Add(&dhcpv6.OptStatusCode{StatusCode: iana.StatusNoAddrsAvail})
		reply.AddOption(refused)
	}
	for _, asked := range request.Options.IAPD() {
		refused := &dhcpv6.OptIAPD{IaId: asked.IaId}
		refused.Options.Add(&dhcpv6.OptStatusCode{StatusCode: iana.StatusNoPrefixAvail})
		reply.AddOption(refused)
	}
}

// addRequestedOptions6 adds the options that the client asks for, the most important ones first, as long as they fit into one frame.
func (r *responder) addRequestedOptions6(reply, request *dhcpv6.Message, guest *guest) {
	asked, size := request.Options.RequestedOptions(), len(reply.ToBytes())
	put := func(option dhcpv6.Option) {
		if more := 4 + len(option.ToBytes()); size+more <= maxAnswer6 {
			size += more
			reply.AddOption(option)
		}
	}
	add := func(option dhcpv6.Option) {
		if asked.Contains(option.Code()) {
			put(option)
		}
	}
	if servers := ips(guest.options.DNS, 6); len(servers) > 0 {
		add(dhcpv6.OptDNS(servers...))
	}
	if search := guest.options.Search; len(search) > 0 {
		add(dhcpv6.OptDomainSearchList(&rfc1035label.Labels{Labels: search}))
	}
	if servers := ips(guest.options.NTP, 6); len(servers) > 0 {
		sntp, ntp := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionSNTPServerList}, &dhcpv6.OptNTPServer{}
		for _, each := range servers {
			sntp.OptionData = append(sntp.OptionData, each...)
			address := dhcpv6.NTPSuboptionSrvAddr(each)
			ntp.Suboptions.Add(&address)
		}
		add(sntp)
		add(ntp)
	}
	r.addBoot6(request, guest.dhcp4, add, put)
	for _, each := range guest.options.DHCP6 {
		add(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionCode(each.Code), OptionData: each.Value})
	}
	if value := guest.names.fqdn6(request.GetOneOption(dhcpv6.OptionFQDN)); len(value) > 0 {
		add(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionFQDN, OptionData: value})
	}
	if request.MessageType == dhcpv6.MessageTypeInformationRequest {
		add(dhcpv6.OptInformationRefreshTime(max(leastRefresh, seconds(r.config.Times.Rebind))))
	}
}
