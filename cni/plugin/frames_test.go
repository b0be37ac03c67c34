package main

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

const (
	guestMAC      = "020000000005"
	neighbourMAC  = "020000000006"
	broadcast     = "ffffffffffff"
	guest4        = "0a010005"
	guest6        = "fd000001000000000000000000000005"
	foreign6      = "fd000001000000000000000000000009"
	linkLocal     = "fe80000000000000aaaa000000000001"
	all6          = "ff020000000000000000000000000001"
	moreFragments = 0x2000
	any6          = "00000000000000000000000000000000"
)

func ethernet(source, etherType, payload string) string {
	return broadcast + source + etherType + payload
}

func arp(operation int, mac, sender, target string) string {
	return ethernet(guestMAC, "0806", "000108000604000"+strconv.Itoa(operation)+mac+sender+"000000000000"+target)
}

func reverseARP(source, mac string) string {
	return reverse(3, source, mac)
}

func reverse(operation int, source, mac string) string {
	return ethernet(source, "8035", "000108000604000"+strconv.Itoa(operation)+mac+"00000000"+mac+"00000000")
}

func ipv4(source string, protocol byte, payload string) string {
	return ipv4With(source, protocol, 0, "", payload)
}

// ipv4With also takes what the fragment is, with the flag of more fragments, and the options.
func ipv4With(source string, protocol byte, fragment uint16, options, payload string) string {
	words := byte(5 + len(options)/8)
	header := []byte{0x40 | words, 0, 0, 4*words + byte(len(payload)/2), 0, 0, byte(fragment >> 8), byte(fragment), 64, protocol, 0, 0}
	header, _ = hex.AppendDecode(header, []byte(source+"ffffffff"+options))
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	// a bridge drops headers with a wrong checksum if iptables sees its packets
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum+sum>>16))
	return ethernet(guestMAC, "0800", hex.EncodeToString(header)+payload)
}

// tagged puts bytes between the addresses of a frame and its type.
func tagged(tag, frame string) string {
	return frame[:24] + tag + frame[24:]
}

func ipv6(source string, nextHeader byte, payload string) string {
	length := hex.EncodeToString([]byte{0, byte(len(payload) / 2), nextHeader})
	return ethernet(guestMAC, "86dd", "60000000"+length+"ff"+source+all6+payload)
}

func udp(source, destination int) string {
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(source)), uint16(destination))
	return hex.EncodeToString(ports) + "00080000"
}

func icmp6(kind int, rest string) string {
	return hex.EncodeToString([]byte{byte(kind)}) + "000000" + "00000000" + rest
}

var frames = []struct{ name, frame, counter string }{
	{"ARP of the claim", arp(2, guestMAC, guest4, guest4), ""},
	{"an ARP probe of the claim's address", arp(1, guestMAC, "00000000", guest4), ""},
	{"IPv4 of the claim", ipv4(guest4, 6, udp(1, 2)), ""},
	{"a DHCP request without an address", ipv4("00000000", 17, udp(68, 67)), ""},
	{"IPv6 of the claim", ipv6(guest6, 6, udp(1, 2)), ""},
	{"IPv6 with a link-local address", ipv6(linkLocal, 58, icmp6(133, "")), ""},
	{"duplicate address detection", ipv6(any6, 58, icmp6(135, guest6)), ""},
	{"a neighbour advertisement of the claim", ipv6(guest6, 58, icmp6(136, guest6)), ""},
	{"a neighbour advertisement with the guest's MAC address", ipv6(guest6, 58, icmp6(136, guest6+"0201"+guestMAC)), ""},
	{"a neighbour solicitation", ipv6(guest6, 58, icmp6(135, foreign6)), ""},
	{"a neighbour solicitation with the guest's MAC address", ipv6(guest6, 58, icmp6(135, foreign6+"0101"+guestMAC)), ""},
	{"a router solicitation with the guest's MAC address", ipv6(linkLocal, 58, icmp6(133, "0101"+guestMAC)), ""},
	{"an echo request", ipv4(guest4, 1, "0800000000000000"), ""},
	{"a multicast report", ipv6(linkLocal, 0, "3a00050200000100"+icmp6(143, "")), ""},
	{"a fragment", ipv6(guest6, 44, "1100000100000001"+udp(1, 2)), ""},
	{"the guest's own reverse ARP", reverseARP(guestMAC, guestMAC), ""},
	{"another source MAC address", ethernet(neighbourMAC, "0800", ""), "source_mac"},
	{"reverse ARP of another MAC address", reverseARP(neighbourMAC, neighbourMAC), "source_mac"},
	{"reverse ARP for another MAC address", reverseARP(guestMAC, neighbourMAC), "ethertype"},
	{"an answer to a reverse ARP", reverse(4, guestMAC, guestMAC), "ethertype"},
	{"a BPDU", "0180c2000000" + guestMAC + "0026424203", "bridge_control"},
	{"a VLAN tag", ethernet(guestMAC, "8100", "00050800"), "vlan_tag"},
	{"a provider tag", ethernet(guestMAC, "88a8", "000581000006"), "vlan_tag"},
	{"another protocol", ethernet(guestMAC, "88cc", ""), "ethertype"},
	{"ARP of another address", arp(2, guestMAC, "0a010009", guest4), "arp_sender"},
	{"ARP with another sender MAC address", arp(2, neighbourMAC, guest4, guest4), "arp_sender"},
	{"an ARP probe of another address", arp(1, guestMAC, "00000000", "0a010009"), "arp_sender"},
	{"a short ARP", ethernet(guestMAC, "0806", "0001"), "arp_sender"},
	{"IPv4 of another address", ipv4("0a010009", 6, udp(1, 2)), "ipv4_source"},
	{"IPv4 without an address", ipv4("00000000", 17, udp(68, 69)), "ipv4_source"},
	{"a DHCP server", ipv4(guest4, 17, udp(67, 68)), "dhcp_server"},
	{"a DHCP server with another source port", ipv4(guest4, 17, udp(1000, 68)), "dhcp_server"},
	{"an IGMP query", ipv4(guest4, 2, "1100000000000000"), "multicast_router"},
	{"an advertisement of a multicast router", ipv4(guest4, 2, "3000000000000000"), "multicast_router"},
	{"PIM", ipv4(guest4, 103, "2000000000000000"), "multicast_router"},
	{"an ICMP redirect", ipv4(guest4, 1, "050100000a010005"), "icmp_redirect"},
	{"a router advertisement of IPv4", ipv4(guest4, 1, "0900000000000000"), "router_advertisement"},
	{"VRRP", ipv4(guest4, 112, "2101640100000000"), "virtual_router"},
	{"IPv4 with a header that is too long", ethernet(guestMAC, "0800", "4f00001400000000400600000a010005ffffffff"), "malformed"},
	{"IPv6 of another address", ipv6(foreign6, 6, udp(1, 2)), "ipv6_source"},
	{"duplicate address detection of another address", ipv6(any6, 58, icmp6(135, foreign6)), "ipv6_source"},
	{"a router advertisement", ipv6(linkLocal, 58, icmp6(134, "")), "router_advertisement"},
	{"a router advertisement behind a hop-by-hop header", ipv6(linkLocal, 0, "3a00010400000000"+icmp6(134, "")), "extension_header"},
	{"a router advertisement behind options", ipv6(linkLocal, 60, "3a00010400000000"+icmp6(134, "")), "extension_header"},
	{"a router advertisement in a fragment", ipv6(linkLocal, 44, "3a00000100000001"+icmp6(134, "")), "router_advertisement"},
	{"options in a fragment", ipv6(linkLocal, 44, "3c00000100000001"+"3a00010400000000"), "extension_header"},
	{"a fragment in a fragment", ipv6(linkLocal, 44, "2c00000100000001"+"3a00000100000001"), "extension_header"},
	{"a redirect", ipv6(linkLocal, 58, icmp6(137, guest6+guest6)), "icmp_redirect"},
	{"a neighbour advertisement of another address", ipv6(guest6, 58, icmp6(136, foreign6)), "neighbour_target"},
	{"a neighbour advertisement in a fragment", ipv6(guest6, 44, "3a00000100000001"+icmp6(136, guest6)), "neighbour_target"},
	{"a neighbour advertisement at another MAC address", ipv6(guest6, 58, icmp6(136, guest6+"0201"+neighbourMAC)), "neighbour_target"},
	{"a neighbour advertisement with two options", ipv6(guest6, 58, icmp6(136, guest6+"0201"+guestMAC+"0201"+neighbourMAC)), "neighbour_target"},
	{"a neighbour advertisement behind another option", ipv6(guest6, 58, icmp6(136, guest6+"0e01"+guestMAC+"0201"+neighbourMAC)), "neighbour_target"},
	{"a neighbour advertisement with a long option", ipv6(guest6, 58, icmp6(136, guest6+"0202"+guestMAC+"0000000000000000")), "neighbour_target"},
	{"a neighbour solicitation at another MAC address", ipv6(guest6, 58, icmp6(135, foreign6+"0101"+neighbourMAC)), "neighbour_target"},
	{"a neighbour solicitation with two options", ipv6(guest6, 58, icmp6(135, foreign6+"0101"+guestMAC+"0101"+neighbourMAC)), "neighbour_target"},
	{"a router solicitation at another MAC address", ipv6(linkLocal, 58, icmp6(133, "0101"+neighbourMAC)), "neighbour_target"},
	{"a router solicitation with two options", ipv6(linkLocal, 58, icmp6(133, "0101"+guestMAC+"0101"+neighbourMAC)), "neighbour_target"},
	{"an MLD query", ipv6(linkLocal, 58, icmp6(130, any6)), "multicast_router"},
	{"PIM of IPv6", ipv6(linkLocal, 103, "2000000000000000"), "multicast_router"},
	{"a DHCPv6 server", ipv6(linkLocal, 17, udp(547, 546)), "dhcp_server"},
	// what nearly passes as ordinary traffic of the claim
	{"UDP of IPv4", ipv4(guest4, 17, udp(1000, 2000)), ""},
	{"UDP of IPv6", ipv6(guest6, 17, udp(1000, 2000)), ""},
	{"TCP from port 0", ipv4(guest4, 6, udp(0, 2)), ""},
	{"TCP behind an option", ipv4With(guest4, 6, 0, "01010100", udp(1, 2)), ""},
	{"a first fragment", ipv4With(guest4, 17, moreFragments, "", udp(1000, 2000)), ""},
	{"a later fragment that looks like a DHCP server", ipv4With(guest4, 17, 1, "", udp(67, 68)), ""},
	{"a later fragment that looks like a redirect", ipv4With(guest4, 1, 1, "", "0501000000000000"), ""},
	{"PIM in a later fragment", ipv4With(guest4, 103, 1, "", "2000000000000000"), "multicast_router"},
	{"a DHCP server behind an option", ipv4With(guest4, 17, 0, "01010100", udp(67, 68)), "dhcp_server"},
	{"a DHCP server behind an option that looks like other ports", ipv4With(guest4, 17, 0, "03e807d0", udp(1000, 68)), "dhcp_server"},
	{"a DHCP server in a first fragment", ipv4With(guest4, 17, moreFragments, "", udp(67, 68)), "dhcp_server"},
	{"a packet that is shorter than it says", ethernet(guestMAC, "0800", "450000f00000000040060000"+guest4+"ffffffff"), "malformed"},
	{"an IPv6 packet as IPv4", ethernet(guestMAC, "0800", "6000000000080600fe060000"+guest4+"ffffffff"), "malformed"},
	{"an IPv4 packet as IPv6", ethernet(guestMAC, "86dd", "4500003c00000640"+guest6+all6+udp(1, 2)), "malformed"},
	{"IPv6 of a network that begins as the guest's", ipv6("fd000001000000010000000000000005", 6, udp(1, 2)), "ipv6_source"},
	{"IPv6 of a network that ends as the guest's", ipv6("fd000002000000000000000000000005", 17, udp(1000, 2000)), "ipv6_source"},
	{"TCP behind a hop-by-hop header", ipv6(guest6, 0, "0600010400000000"+udp(1, 2)), "extension_header"},
	{"TCP behind options", ipv6(guest6, 60, "0600010400000000"+udp(1, 2)), "extension_header"},
	{"TCP with a VLAN tag", tagged("81000005", ipv4(guest4, 6, udp(1, 2))), "vlan_tag"},
	{"TCP with a priority tag", tagged("8100e000", ipv4(guest4, 6, udp(1, 2))), "vlan_tag"},
	{"TCP with a provider tag", tagged("88a80005", ipv6(guest6, 6, udp(1, 2))), "vlan_tag"},
	{"UDP with two VLAN tags", tagged("8100000581000006", ipv4(guest4, 17, udp(1000, 2000))), "vlan_tag"},
	{"TCP from the guest's MAC address as a group", broadcast + "030000000005" + ipv4(guest4, 6, udp(1, 2))[24:], "source_mac"},
	{"UDP of IPv6 from another MAC address", broadcast + neighbourMAC + ipv6(guest6, 17, udp(1000, 2000))[24:], "source_mac"},
	{"a DHCPv6 server in a fragment", ipv6(linkLocal, 44, "1100000100000001"+udp(547, 546)), "dhcp_server"},
}
