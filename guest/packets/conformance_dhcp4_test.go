package main

import (
	"cmp"
	"net"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

func (c *conformanceCase) frame4(server *peer) []byte {
	kinds := map[string]dhcpv4.MessageType{
		"discover": dhcpv4.MessageTypeDiscover, "request": dhcpv4.MessageTypeRequest, "inform": dhcpv4.MessageTypeInform,
		"release": dhcpv4.MessageTypeRelease, "decline": dhcpv4.MessageTypeDecline, "offer": dhcpv4.MessageTypeOffer,
	}
	change := []dhcpv4.Modifier{dhcpv4.WithBroadcast(c.Send.Broadcast)}
	if c.Send.CIAddr != "" {
		change = append(change, dhcpv4.WithClientIP(net.ParseIP(c.Send.CIAddr)))
	}
	if c.Send.GIAddr != "" {
		change = append(change, dhcpv4.WithGatewayIP(net.ParseIP(c.Send.GIAddr)))
	}
	if c.Send.PRL != nil {
		codes := make(dhcpv4.OptionCodeList, len(c.Send.PRL))
		for index, code := range c.Send.PRL {
			codes[index] = dhcpv4.GenericOptionCode(code)
		}
		change = append(change, dhcpv4.WithOption(dhcpv4.OptParameterRequestList(codes...)))
		if len(codes) == 0 {
			change = append(change, dhcpv4.WithoutOption(dhcpv4.OptionParameterRequestList))
		}
	}
	for code, value := range c.Send.Options {
		change = append(change, dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(number(code)), fromHex(value))))
	}
	to := broadcastIPv4
	if c.Send.To == "server" {
		to = ownIPv4
	}
	frame := fromClientTo(to, guestMAC, kinds[c.Send.Kind], change...)
	if c.Send.To == "server" {
		copy(frame, server.mac[:])
	}
	return frame
}

func (c *conformanceCase) check4(t *testing.T, server *peer) {
	frame := server.ask(c.frame4(server), c.Want.Kind != "none")
	if frame == nil {
		if c.Want.Kind != "none" {
			t.Fatalf("RFC %s: no answer, not %s", c.RFC, c.Want.Kind)
		}
		return
	}
	got, _ := parseIPv4(frame[etherLength:])
	message, err := dhcpv4.FromBytes(got.payload)
	if err != nil {
		t.Fatal(err)
	}
	kind := strings.ToLower(message.MessageType().String())
	for _, row := range []struct{ field, got, want string }{
		{"kind", kind, c.Want.Kind}, {"yiaddr", message.YourIPAddr.String(), c.Want.YIAddr},
		{"ciaddr", message.ClientIPAddr.String(), c.Want.CIAddr}, {"siaddr", message.ServerIPAddr.String(), c.Want.SIAddr},
		{"file", cmp.Or(message.BootFileName, "none"), c.Want.File}, {"destination", got.to.Addr().String(), c.Want.To},
	} {
		c.checkField(t, row.field, row.got, row.want)
	}
	c.checkOptions(t, func(code int) ([]byte, bool) {
		option := dhcpv4.GenericOptionCode(code)
		return message.Options.Get(option), message.Options.Has(option)
	})
}
