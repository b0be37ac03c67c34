package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
)

// sentSolicitation is what a case says about a router solicitation. Its options are whole but for type and length.
type sentSolicitation struct {
	From       string // source address; empty: the link-local address
	HopLimit   *byte
	Code       byte
	Length     int // of the message, if it is cut off
	IsCorrupt  bool
	IsStranger bool // the MAC address is of no guest
}

// wantedAdvertisement is what a case says about a router advertisement.
type wantedAdvertisement struct {
	Lifetime *uint16
	Flags    string
}

func isSolicitation(frame []byte) bool {
	b := frame[etherLength:]
	return len(b) > 40 && b[0]>>4 == 6 && b[6] == protocolICMPv6 && b[40] == icmpRouterSolicitation
}

// isAdvertisement returns whether a frame answers a solicitation. Those to all nodes answer one without a source.
func isAdvertisement(frame, to []byte) bool {
	b := frame[etherLength:]
	if len(b) < 56 || b[0]>>4 != 6 || b[6] != protocolICMPv6 || b[40] != icmpRouterAdvertisement {
		return false
	}
	return b[24] != 0xff || netip.AddrFrom16([16]byte(to[etherLength+8:etherLength+24])).IsUnspecified()
}

func (c *conformanceCase) frameNDP() []byte {
	from, limit := guestMAC, byte(hopLimit)
	if c.Send.IsStranger {
		from = otherMAC
	}
	source := linkLocal(from)
	if c.Send.From != "" {
		source = netip.MustParseAddr(c.Send.From)
	}
	if c.Send.HopLimit != nil {
		limit = *c.Send.HopLimit
	}
	message := []byte{icmpRouterSolicitation, c.Send.Code, 0, 0, 0, 0, 0, 0}
	for code, value := range c.Send.Options {
		option := append([]byte{byte(number(code)), 0}, fromHex(value)...)
		option[1] = byte(len(option) / 8)
		message = append(message, option...)
	}
	if c.Send.Length > 0 {
		message = message[:c.Send.Length]
	}
	sum := checksum(pseudoHeader(source, allRouters, protocolICMPv6, len(message)), message)
	if c.Send.IsCorrupt {
		sum ^= 0x0100
	}
	binary.BigEndian.PutUint16(message[2:], sum)
	header := ipv6Header(source, allRouters, protocolICMPv6, limit, len(message))
	return ethernet(groupMAC(allRouters), from, etherIPv6, append(header, message...))
}

func (c *conformanceCase) checkNDP(t *testing.T, server *peer) {
	frame := server.ask(c.frameNDP(), c.Want.Kind != "none")
	if frame == nil && c.Want.Kind != "none" {
		frame = server.ask(c.frameNDP(), true) // an advertisement to all nodes may have been sent just before
	}
	if frame == nil || c.Want.Kind == "none" {
		if (frame == nil) != (c.Want.Kind == "none") {
			t.Fatalf("RFC %s: answer %x, want %s", c.RFC, frame, c.Want.Kind)
		}
		return
	}
	packet := frame[etherLength:]
	message := packet[40:]
	source, target := netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40]))
	if packet[7] != hopLimit || !source.IsLinkLocalUnicast() || checksum(pseudoHeader(source, target, protocolICMPv6, len(message)), message) != 0 {
		t.Errorf("RFC 4861 4.2: no host takes this: %x", packet)
	}
	c.checkField(t, "destination", target.String(), c.Want.To)
	c.checkField(t, "flags", fmt.Sprintf("%02x", message[5]), c.Want.Flags)
	if want := c.Want.Lifetime; want != nil {
		c.checkField(t, "router lifetime", fmt.Sprint(binary.BigEndian.Uint16(message[6:])), fmt.Sprint(*want))
	}
	options := map[int][]byte{}
	for rest := message[16:]; len(rest) >= 8 && rest[1] > 0 && int(rest[1])*8 <= len(rest); rest = rest[int(rest[1])*8:] {
		options[int(rest[0])] = rest[2 : int(rest[1])*8]
	}
	c.checkOptions(t, func(code int) ([]byte, bool) { return options[code], options[code] != nil })
}
