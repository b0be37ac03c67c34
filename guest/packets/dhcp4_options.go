package main

import (
	"bytes"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

// addRequestedOptions adds the options that the client asks for, or all if it asks for none, the most important ones first,
// as long as the message is not longer than the client allows. Routes come before the router, because a client that takes the former ignores the
// latter (RFC 3442). Names and options of the guest alone are left out if isToGuest is false: any host can forge its renewal.
func addRequestedOptions(reply, request *dhcpv4.DHCPv4, guest *guest, isToGuest bool) {
	most := dhcp4LeastSize
	if size, err := request.MaxMessageSize(); err == nil {
		most = min(max(int(size)-28, dhcp4LeastSize), maxFrame-etherLength-28)
	}
	size := dhcp4Fixed + 1 // with the end of the options
	for _, value := range reply.Options {
		size += sizeOfOption(value)
	}
	asked := request.Options.Get(dhcpv4.OptionParameterRequestList)
	put := func(code dhcpv4.OptionCode, value []byte) {
		if more := sizeOfOption(value); size+more <= most {
			size += more
			reply.Options[code.Code()] = value
		}
	}
	add := func(code dhcpv4.OptionCode, value []byte) {
		if len(asked) == 0 || bytes.IndexByte(asked, code.Code()) >= 0 {
			put(code, value)
		}
	}
	of, router := guest.options, guest.ipv4.Router
	if routes := of.routes4; len(routes) > 0 {
		if router.IsValid() {
			routes = append(slices.Concat(routes, []byte{0}), router.AsSlice()...)
		}
		add(dhcpv4.OptionClasslessStaticRoute, routes)
		if len(asked) > 0 {
			add(optionMicrosoftRoutes, routes)
		}
	}
	if router.IsValid() {
		add(dhcpv4.OptionRouter, router.AsSlice())
	}
	isOwn := func(code uint8) bool {
		return slices.ContainsFunc(guest.dhcp4, func(each option) bool { return each.Code == code })
	}
	for _, each := range of.others4 {
		if !isOwn(each.Code.Code()) {
			add(each.Code, each.Value.ToBytes())
		}
	}
	if !isToGuest {
		return
	}
	if guest.names.host != "" {
		add(dhcpv4.OptionHostName, []byte(guest.names.host))
	}
	if value := guest.names.fqdn4(request); len(value) > 0 {
		put(dhcpv4.OptionFQDN, value)
	}
	for _, each := range guest.dhcp4 {
		add(dhcpv4.GenericOptionCode(each.Code), each.Value)
	}
}

// sizeOfOption returns the bytes of an option in a message. One of more than 255 bytes is split (RFC 3396).
func sizeOfOption(value []byte) int {
	return len(value) + 2*max(1, (len(value)+254)/255)
}

// encodeDHCP4 prepares the options that all guests with this set have in common.
func (of *optionSet) encodeDHCP4() {
	for _, each := range of.Routes {
		if each.Gateway.Is4() {
			bits := each.Destination.Bits()
			of.routes4 = append(of.routes4, byte(bits))
			of.routes4 = append(of.routes4, each.Destination.Masked().Addr().AsSlice()[:(bits+7)/8]...)
			of.routes4 = append(of.routes4, each.Gateway.AsSlice()...)
		}
	}
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
