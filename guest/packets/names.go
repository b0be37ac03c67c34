package main

import (
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

// names are those of a VM. Nobody updates DNS because of them.
type names struct {
	host string // may be empty, as all of them
	fqdn string
}

// Flags of RFC 4702 for DHCPv4 and RFC 4704 for DHCPv6.
const (
	fqdnServerUpdates = 1 // the client asks the server to update DNS
	fqdnOverridden    = 2
	fqdn4IsEncoded    = 4 // as in DNS, not as text
	fqdn4NoUpdates    = 8
	fqdn6NoUpdates    = 4
)

// fqdn4 returns the option for a client that sends it; else nothing, although a client may ask for it: RFC 4702, section 4.
func (n names) fqdn4(request *dhcpv4.DHCPv4) []byte {
	sent := request.Options.Get(dhcpv4.OptionFQDN)
	if n.fqdn == "" || len(sent) < 3 {
		return nil
	}
	flags := fqdn4NoUpdates | sent[0]&fqdn4IsEncoded | overridden(sent[0])
	value := []byte{flags, 255, 255}
	if flags&fqdn4IsEncoded == 0 {
		return append(value, n.fqdn...)
	}
	return append(value, (&rfc1035label.Labels{Labels: []string{n.fqdn}}).ToBytes()...)
}

// fqdn6 returns the option for a client that sends it, and must ask for it, too: RFC 4704, section 6. sent may be nil.
func (n names) fqdn6(sent dhcpv6.Option) []byte {
	if n.fqdn == "" || sent == nil {
		return nil
	}
	value := []byte{fqdn6NoUpdates}
	if b := sent.ToBytes(); len(b) > 0 {
		value[0] |= overridden(b[0])
	}
	return append(value, (&rfc1035label.Labels{Labels: []string{n.fqdn}}).ToBytes()...)
}

func overridden(flags byte) byte { return flags & fqdnServerUpdates * fqdnOverridden }
