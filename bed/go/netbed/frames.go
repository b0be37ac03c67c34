package main

import (
	"encoding/binary"
	"net"
)

const (
	etherARP  = 0x0806
	etherIPv6 = 0x86dd

	routerSolicitation     = 133
	neighbourSolicitation  = 135
	neighbourAdvertisement = 136
	multicastReport        = 143
)

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// frame is an ARP or NDP message about the owner of an address, or a message that a kernel sends when an interface comes up and
// from which switches learn the port of its MAC address.
type frame struct {
	// Kind is arp-request, arp-reply, ndp-solicitation, ndp-advertisement, router-solicitation or multicast-report.
	Kind string `json:"kind"`
	// IP that the sender claims for Mac; empty if it only asks.
	IP  string `json:"ip,omitempty"`
	Mac string `json:"mac"`
	// Asks for this address.
	Asks string `json:"asks,omitempty"`
	// Gratuitous: sent without a request.
	Gratuitous bool `json:"gratuitous"`
	// Probe: the sender checks whether the address is free.
	Probe bool `json:"probe"`
	// Outgoing: sent by the interface that is watched.
	Outgoing bool `json:"outgoing"`
}

// parseFrame returns nil for frames other than ARP, NDP and reports of multicast groups.
func parseFrame(data []byte) *frame {
	if len(data) < 14 {
		return nil
	}
	body := data[14:]
	switch binary.BigEndian.Uint16(data[12:]) {
	case etherARP:
		return parseARP(body)
	case etherIPv6:
		const hopByHop, icmp = 0, 58
		source := net.HardwareAddr(data[6:12])
		if len(body) >= 49 && body[6] == hopByHop && body[40] == icmp && body[48] == multicastReport {
			return &frame{Kind: "multicast-report", Mac: source.String()}
		}
		if len(body) >= 48 && body[6] == icmp && body[40] == routerSolicitation {
			return &frame{Kind: "router-solicitation", Mac: source.String()}
		}
		if len(body) >= 64 && body[6] == icmp {
			return parseNDP(source, net.IP(body[8:24]), body[40:])
		}
	}
	return nil
}

func parseARP(body []byte) *frame {
	if len(body) < 28 || body[4] != 6 || body[5] != 4 {
		return nil
	}
	sender, target := net.IP(body[14:18]), net.IP(body[24:28])
	f := &frame{Kind: "arp-request", Mac: net.HardwareAddr(body[8:14]).String(), Gratuitous: sender.Equal(target)}
	if binary.BigEndian.Uint16(body[6:]) == 2 {
		f.Kind = "arp-reply"
	} else if !f.Gratuitous {
		f.Asks = target.String()
	}
	if f.Probe = sender.IsUnspecified(); !f.Probe {
		f.IP = sender.String()
	}
	return f
}

func parseNDP(source net.HardwareAddr, sender net.IP, message []byte) *frame {
	target := net.IP(message[8:24]).String()
	switch message[0] {
	case neighbourSolicitation:
		f := &frame{Kind: "ndp-solicitation", Mac: source.String(), Asks: target, Probe: sender.IsUnspecified()}
		if !f.Probe {
			f.IP = sender.String()
		}
		return f
	case neighbourAdvertisement:
		const solicited = 0x40
		f := &frame{Kind: "ndp-advertisement", Mac: source.String(), IP: target, Gratuitous: message[4]&solicited == 0}
		if len(message) >= 32 && message[24] == 2 { // the option that names the address of the link
			f.Mac = net.HardwareAddr(message[26:32]).String()
		}
		return f
	}
	return nil
}

// announcement returns a gratuitous ARP request or an unsolicited neighbour advertisement for ip at mac.
func announcement(ip net.IP, mac net.HardwareAddr) []byte {
	if v4 := ip.To4(); v4 != nil {
		data := append(append(append([]byte{}, broadcast...), mac...), 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1)
		data = append(append(append(data, mac...), v4...), make([]byte, 6)...)
		return append(data, v4...)
	}
	message := append([]byte{neighbourAdvertisement, 0, 0, 0, 0x20, 0, 0, 0}, ip...) // 0x20: override what you knew
	return toAllNodes(mac, ip, append(append(message, 2, 1), mac...))
}

// routerAdvertisement makes all hosts form an address of prefix by themselves (SLAAC).
func routerAdvertisement(prefix *net.IPNet, mac net.HardwareAddr) []byte {
	const seconds = 1800
	router := net.IP{0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]} // EUI-64
	message := []byte{134, 0, 0, 0, 64, 0, seconds >> 8, seconds & 0xff, 0, 0, 0, 0, 0, 0, 0, 0}
	length, _ := prefix.Mask.Size()
	message = append(message, 3, 4, byte(length), 0xc0) // on the link, and for addresses
	message = binary.BigEndian.AppendUint32(message, seconds)
	message = binary.BigEndian.AppendUint32(message, seconds)
	return toAllNodes(mac, router, append(append(message, 0, 0, 0, 0), prefix.IP.To16()...))
}

// toAllNodes returns the frame of an ICMPv6 message, whose checksum it fills in.
func toAllNodes(mac net.HardwareAddr, from net.IP, message []byte) []byte {
	to := net.IPv6linklocalallnodes
	pseudo := append(append(append([]byte{}, from...), to...), 0, 0, 0, byte(len(message)), 0, 0, 0, 58)
	binary.BigEndian.PutUint16(message[2:], checksum(append(pseudo, message...)))
	data := append(append([]byte{0x33, 0x33, 0, 0, 0, 1}, mac...), 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(message)), 58, 255)
	return append(append(append(data, from...), to...), message...)
}

// checksum of the Internet protocols (RFC 1071).
func checksum(data []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	if len(data)%2 == 1 {
		sum += uint32(data[len(data)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
