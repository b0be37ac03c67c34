package main

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

func (c *conformanceCase) frame6(server *peer) []byte {
	kinds := map[string]dhcpv6.MessageType{}
	for kind, name := range messageNames6 {
		kinds[name] = kind
	}
	message := &dhcpv6.Message{MessageType: kinds[c.Send.Kind], TransactionID: dhcpv6.TransactionID{1, 2, 3}}
	message.AddOption(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: guestMAC[:]}))
	message.AddOption(dhcpv6.OptElapsedTime(0))
	switch c.Send.Server {
	case "own":
		message.AddOption(serverID(server.duid))
	case "other":
		message.AddOption(serverID(fromHex("0004 ff0102030405060708090a0b0c0d0e0f")))
	}
	if c.Send.IA != nil {
		message.AddOption(iaOf(1, c.Send.IA...))
	}
	if c.Send.ORO != nil {
		var codes dhcpv6.OptionCodes
		for _, code := range c.Send.ORO {
			codes = append(codes, dhcpv6.OptionCode(code))
		}
		message.AddOption(dhcpv6.OptRequestedOption(codes...))
	}
	for code, value := range c.Send.Options {
		message.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionCode(number(code)), OptionData: fromHex(value)})
	}
	to, target := groupMAC(allDHCP6Servers), allDHCP6Servers
	if c.Send.To == "server" {
		to, target = server.mac, server.linkLocal
	}
	return ethernet(to, guestMAC, etherIPv6, ipv6(datagram{
		from: netip.AddrPortFrom(linkLocal(guestMAC), dhcp6Client), to: netip.AddrPortFrom(target, dhcp6Server), payload: message.ToBytes(),
	}))
}

func (c *conformanceCase) check6(t *testing.T, server *peer) {
	frame := server.ask(c.frame6(server), c.Want.Kind != "none")
	if frame == nil {
		if c.Want.Kind != "none" {
			t.Fatalf("RFC %s: no answer, not %s", c.RFC, c.Want.Kind)
		}
		return
	}
	message, err := dhcpv6.MessageFromBytes(frame[etherLength+48:])
	if err != nil {
		t.Fatal(err)
	}
	if kind := strings.ToLower(message.MessageType.String()); kind != c.Want.Kind {
		t.Fatalf("RFC %s: %s, not %s", c.RFC, kind, c.Want.Kind)
	}
	if want := c.Want.Address; want != "" {
		ia := message.Options.OneIANA()
		if ia == nil || ia.Options.OneAddress() == nil || !ia.Options.OneAddress().IPv6Addr.Equal(net.ParseIP(want)) {
			t.Errorf("RFC %s: %s, not the address %s", c.RFC, message, want)
		}
	}
	if want := c.Want.Status; want != nil {
		status := message.Options.Status()
		if status == nil && *want != 0 || status != nil && uint16(status.StatusCode) != *want {
			t.Errorf("RFC %s: status %v, not %d", c.RFC, status, *want)
		}
	}
	c.checkOptions(t, func(code int) ([]byte, bool) {
		option := message.GetOneOption(dhcpv6.OptionCode(code))
		if option == nil {
			return nil, false
		}
		return option.ToBytes(), true
	})
}
