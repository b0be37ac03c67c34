package main

import "golang.org/x/net/bpf"

// The kernel drops all frames but these: ARP, DHCP, ping, router and neighbour discovery, and queries of MLD.
const (
	dhcp4Server, dhcp4Client = 67, 68
	dhcp6Server, dhcp6Client = 547, 546

	icmpEchoReply, icmpEcho    = 0, 8
	icmpMLDQuery               = 130
	icmpRouterSolicitation     = 133
	icmpRouterAdvertisement    = 134
	icmpNeighbourSolicitation  = 135
	icmpNeighbourAdvertisement = 136

	packetMulticast = 2 // PACKET_MULTICAST; larger values: of another host, sent by this one
)

// kernelFilter also drops frames for other hosts, our own frames, and those of a VLAN. A tag with the VLAN 0 has only a
// priority (IEEE 802.1Q). Only a kernel can run it.
func kernelFilter() []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: packetMulticast, SkipFalse: 1},
		bpf.RetConstant{},
		bpf.LoadExtension{Num: bpf.ExtVLANTag},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0xfff, SkipFalse: 1},
		bpf.RetConstant{},
	}, frameFilter()...)
}

func frameFilter() []bpf.Instruction {
	const ip = etherLength
	const afterIPv6 = ip + 40
	// The first bytes of what a whole packet has behind the header: the offset is that of the field.
	behindIPv4 := func(offset uint32, size int, values ...uint32) []bpf.Instruction {
		return join(
			load(ip+6, 2), // flags and offset of a fragment
			[]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipFalse: 1}, drop, bpf.LoadMemShift{Off: ip}, bpf.LoadIndirect{Off: ip + offset, Size: size}},
			acceptIf(values...),
		)
	}
	icmp := func(offset uint32, kinds ...uint32) []bpf.Instruction {
		return join(load(offset, 1), acceptIf(kinds...))
	}
	// A query of MLD is behind a hop-by-hop header of 8 bytes.
	query := join(load(afterIPv6, 1), when(protocolICMPv6, icmp(afterIPv6+8, icmpMLDQuery)), []bpf.Instruction{drop})
	return join(
		load(12, 2),
		when(etherARP, []bpf.Instruction{accept}),
		when(etherIPv4, join(
			load(ip+9, 1),
			when(protocolUDP, behindIPv4(2, 2, dhcp4Server, dhcp4Client)),
			when(protocolICMP, behindIPv4(0, 1, icmpEcho)),
			[]bpf.Instruction{drop},
		)),
		when(etherIPv6, join(
			load(ip+6, 1),
			when(protocolUDP, join(load(afterIPv6+2, 2), acceptIf(dhcp6Server, dhcp6Client))),
			when(protocolICMPv6, icmp(afterIPv6, icmpRouterSolicitation, icmpRouterAdvertisement, icmpNeighbourSolicitation, icmpNeighbourAdvertisement)),
			when(0, query),
			[]bpf.Instruction{drop},
		)),
		[]bpf.Instruction{drop},
	)
}

var (
	// One byte more than we take, so that a longer frame can be told.
	accept = bpf.RetConstant{Val: maxFrame + 1}
	drop   = bpf.RetConstant{}
)

func load(offset uint32, size int) []bpf.Instruction {
	return []bpf.Instruction{bpf.LoadAbsolute{Off: offset, Size: size}}
}

// when runs the block if the loaded value is this one. The block returns.
func when(value uint32, block []bpf.Instruction) []bpf.Instruction {
	return join([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(block))}}, block)
}

// acceptIf accepts a frame if the loaded value is one of these, and else drops it.
func acceptIf(values ...uint32) []bpf.Instruction {
	var block []bpf.Instruction
	for _, value := range values {
		block = append(block, when(value, []bpf.Instruction{accept})...)
	}
	return append(block, drop)
}

func join(blocks ...[]bpf.Instruction) (joined []bpf.Instruction) {
	for _, block := range blocks {
		joined = append(joined, block...)
	}
	return joined
}
