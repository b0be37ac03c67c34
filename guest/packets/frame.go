package main

import (
	"encoding/binary"
	"net/netip"
)

const (
	etherIPv4, etherARP, etherIPv6 = 0x0800, 0x0806, 0x86dd
	protocolICMP                   = 1
	protocolUDP, protocolICMPv6    = 17, 58
	etherLength                    = 14
	maxFrame                       = etherLength + 1500
)

var (
	broadcastMAC  = mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	broadcastIPv4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})
)

// datagram is a UDP datagram.
type datagram struct {
	from, to netip.AddrPort
	payload  []byte
}

// ethernet returns a frame.
func ethernet(to, from mac, kind uint16, body []byte) []byte {
	frame := make([]byte, 0, etherLength+len(body))
	frame = append(append(frame, to[:]...), from[:]...)
	return append(binary.BigEndian.AppendUint16(frame, kind), body...)
}

// parseIPv4 returns the datagram of an IPv4 packet; false if it has none that is whole.
func parseIPv4(b []byte) (datagram, bool) {
	body, ok := bodyOfIPv4(b)
	if !ok || b[9] != protocolUDP {
		return datagram{}, false
	}
	return parseUDP(body, netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])))
}

// bodyOfIPv4 returns what is behind the header; false if the packet is a fragment or not whole.
func bodyOfIPv4(b []byte) ([]byte, bool) {
	if len(b) < 20 || b[0]>>4 != 4 || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return nil, false
	}
	header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if header < 20 || total < header || len(b) < total {
		return nil, false
	}
	return b[header:total], true
}

// isIntactIPv4 returns whether the checksums of a packet are right. UDP may have none. The kernel never knows that of the header.
func isIntactIPv4(b []byte, sums checksums) bool {
	body, ok := bodyOfIPv4(b)
	switch {
	case !ok:
		return true // dropped for another reason
	case checksum(b[:int(b[0]&0xf)*4]) != 0:
		return false
	case sums == checksumsGood || b[9] != protocolUDP || len(body) < 8 || body[6] == 0 && body[7] == 0:
		return true
	}
	return isIntactBody(netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), protocolUDP, body)
}

// bodyOfIPv6 returns what is behind the first header; false if the packet is not whole.
func bodyOfIPv6(b []byte) ([]byte, bool) {
	if len(b) < 40 || b[0]>>4 != 6 {
		return nil, false
	}
	end := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if len(b) < end {
		return nil, false
	}
	return b[40:end], true
}

// isIntactIPv6 returns whether the checksum behind the header of a packet is right. UDP must have one (RFC 8200, section 8.1).
func isIntactIPv6(b []byte) bool {
	body, ok := bodyOfIPv6(b)
	if !ok {
		return true // dropped for another reason
	}
	next := b[6]
	if isMLDQuery(next, body) {
		next, body = protocolICMPv6, body[8:]
	}
	return isIntactBody(netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), next, body)
}

// isIntactBody returns whether a checksum is right. That of UDP ends with the datagram, which may be shorter than the packet.
func isIntactBody(from, to netip.Addr, protocol byte, body []byte) bool {
	if protocol == protocolUDP && len(body) >= 8 {
		if length := int(binary.BigEndian.Uint16(body[4:])); length >= 8 && length < len(body) {
			body = body[:length]
		}
	}
	return checksum(pseudoHeader(from, to, protocol, len(body)), body) == 0
}

func parseUDP(b []byte, from, to netip.Addr) (datagram, bool) {
	if len(b) < 8 {
		return datagram{}, false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < 8 || length > len(b) {
		return datagram{}, false
	}
	return datagram{
		from:    netip.AddrPortFrom(from, binary.BigEndian.Uint16(b)),
		to:      netip.AddrPortFrom(to, binary.BigEndian.Uint16(b[2:])),
		payload: b[8:length],
	}, true
}

// ipv4 returns an IPv4 packet with a UDP datagram.
func ipv4(d datagram) []byte {
	return append(ipv4Header(d.from.Addr(), d.to.Addr(), protocolUDP, 8+len(d.payload)), udp(d)...)
}

func ipv4Header(from, to netip.Addr, protocol byte, length int) []byte {
	b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0}
	b = append(append(b, from.AsSlice()...), to.AsSlice()...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+length))
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	return b
}

// ipv6 returns an IPv6 packet with a UDP datagram.
func ipv6(d datagram) []byte {
	return append(ipv6Header(d.from.Addr(), d.to.Addr(), protocolUDP, 64, 8+len(d.payload)), udp(d)...)
}

func ipv6Header(from, to netip.Addr, next, hopLimit byte, length int) []byte {
	b := []byte{0x60, 0, 0, 0, 0, 0, next, hopLimit}
	binary.BigEndian.PutUint16(b[4:], uint16(length))
	return append(append(b, from.AsSlice()...), to.AsSlice()...)
}

func udp(d datagram) []byte {
	length := uint16(8 + len(d.payload))
	b := binary.BigEndian.AppendUint16(nil, d.from.Port())
	b = binary.BigEndian.AppendUint16(b, d.to.Port())
	b = append(binary.BigEndian.AppendUint16(b, length), 0, 0)
	b = append(b, d.payload...)
	sum := checksum(pseudoHeader(d.from.Addr(), d.to.Addr(), protocolUDP, len(b)), b)
	if sum == 0 {
		sum = 0xffff // zero says that there is none
	}
	binary.BigEndian.PutUint16(b[6:], sum)
	return b
}

// pseudoHeader is what the checksums of UDP and ICMPv6 cover besides the message.
func pseudoHeader(from, to netip.Addr, protocol byte, length int) []byte {
	b := append(from.AsSlice(), to.AsSlice()...)
	return append(binary.BigEndian.AppendUint32(b, uint32(length)), 0, 0, 0, protocol)
}

// checksum is that of RFC 1071. All parts but the last one have an even length.
func checksum(parts ...[]byte) uint16 {
	var sum uint32
	for _, part := range parts {
		for ; len(part) > 1; part = part[2:] {
			sum += uint32(binary.BigEndian.Uint16(part))
		}
		if len(part) == 1 {
			sum += uint32(part[0]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// linkLocal returns the address of fe80::/64 that belongs to a MAC address (EUI-64).
func linkLocal(m mac) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

// groupMAC returns the MAC address of an IPv6 multicast address.
func groupMAC(group netip.Addr) mac {
	b := group.As16()
	return mac{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// solicitedNode returns the multicast address on which an address is asked for.
func solicitedNode(of netip.Addr) netip.Addr {
	b := of.As16()
	return netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}
