package main

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

// answer4 is an answer that gets options as long as it is not longer than the client allows.
type answer4 struct {
	reply      *dhcpv4.DHCPv4
	asked      []byte // option 55
	size, most int
}

func newAnswer4(reply, request *dhcpv4.DHCPv4) *answer4 {
	most := dhcp4LeastSize
	if size, err := request.MaxMessageSize(); err == nil {
		most = min(max(int(size)-28, dhcp4LeastSize), maxFrame-etherLength-28)
	}
	size := dhcp4Fixed + 1 // with the end of the options
	for _, value := range reply.Options {
		size += sizeOfOption(value)
	}
	return &answer4{reply, request.Options.Get(dhcpv4.OptionParameterRequestList), size, most}
}

// put adds an option. The first one with a code stays.
func (a *answer4) put(code dhcpv4.OptionCode, value []byte) {
	if more := sizeOfOption(value); a.size+more <= a.most && !a.reply.Options.Has(code) {
		a.size += more
		a.reply.Options[code.Code()] = value
	}
}

// add adds an option if the client asks for it, or for none at all.
func (a *answer4) add(code dhcpv4.OptionCode, value []byte) {
	if len(a.asked) == 0 || bytes.IndexByte(a.asked, code.Code()) >= 0 {
		a.put(code, value)
	}
}

// addRequestedOptions adds the options that the client asks for, or all if it asks for none, the most important ones first.
// Routes come before the router, because a client that takes the former ignores the latter (RFC 3442). Names and options of
// the guest alone are left out if isToGuest is false: any host can forge its renewal.
func (r *responder) addRequestedOptions(reply, request *dhcpv4.DHCPv4, guest *guest, isToGuest bool) {
	to := newAnswer4(reply, request)
	of, router, ofVM := guest.options, guest.ipv4.Router, guest.dhcp4
	if !isToGuest {
		ofVM = nil
	}
	if routes := of.routes4(netip.PrefixFrom(guest.ipv4.Address, guest.ipv4.Prefix)); len(routes) > 0 {
		if router.IsValid() {
			routes = append(slices.Concat(routes, []byte{0}), router.AsSlice()...)
		}
		to.add(dhcpv4.OptionClasslessStaticRoute, routes)
		if len(to.asked) > 0 {
			to.add(optionMicrosoftRoutes, routes)
		}
	}
	if router.IsValid() {
		to.add(dhcpv4.OptionRouter, router.AsSlice())
	}
	r.addBoot4(to, request, ofVM)
	isOwn := func(code uint8) bool {
		return slices.ContainsFunc(guest.dhcp4, func(each option) bool { return each.Code == code })
	}
	for _, each := range of.others4 {
		if !isOwn(each.Code.Code()) {
			to.add(each.Code, each.Value.ToBytes())
		}
	}
	if !isToGuest {
		return
	}
	if guest.names.host != "" {
		to.add(dhcpv4.OptionHostName, []byte(guest.names.host))
	}
	if value := guest.names.fqdn4(request); len(value) > 0 {
		to.put(dhcpv4.OptionFQDN, value)
	}
	for _, each := range ofVM {
		to.add(dhcpv4.GenericOptionCode(each.Code), each.Value)
	}
}

// sizeOfOption returns the bytes of an option in a message. One of more than 255 bytes is split (RFC 3396).
func sizeOfOption(value []byte) int {
	return len(value) + 2*max(1, (len(value)+254)/255)
}

// routes4 returns the value of option 121 without the default route. A guest reaches only gateways in its own subnet.
func (of *optionSet) routes4(subnet netip.Prefix) (value []byte) {
	for _, each := range of.Routes {
		if subnet.Contains(each.Gateway) {
			bits := each.Destination.Bits()
			value = append(value, byte(bits))
			value = append(value, each.Destination.Masked().Addr().AsSlice()[:(bits+7)/8]...)
			value = append(value, each.Gateway.AsSlice()...)
		}
	}
	return value
}

// encodeDHCP4 prepares the options that all guests with this set have in common.
func (of *optionSet) encodeDHCP4() {
	add := func(option dhcpv4.Option) {
		of.others4 = append(of.others4, dhcpv4.OptGeneric(option.Code, option.Value.ToBytes()))
	}
	if servers := ips(of.DNS, 4); len(servers) > 0 {
		add(dhcpv4.OptDNS(servers...))
	}
	if of.MTU > 0 {
		add(dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{byte(of.MTU >> 8), byte(of.MTU)}))
	}
	if len(of.Search) > 0 {
		add(dhcpv4.OptDomainName(of.Search[0]))
		add(dhcpv4.OptDomainSearch(&rfc1035label.Labels{Labels: of.Search}))
	}
	if servers := ips(of.NTP, 4); len(servers) > 0 {
		add(dhcpv4.OptNTPServers(servers...))
	}
	for _, each := range of.DHCP4 {
		add(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(each.Code), each.Value))
	}
}
