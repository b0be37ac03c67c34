package main

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/mdlayher/ndp"
)

// hopLimit proves that a message of neighbour discovery was sent on this segment.
const hopLimit = 255

// receiveIPv6 handles a packet that the filter lets through.
func (r *responder) receiveIPv6(now time.Time, from mac, b []byte) {
	message, ok := bodyOfIPv6(b)
	if !ok {
		r.drop(dropMalformed)
		return
	}
	source, target := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	switch {
	case isMLDQuery(b[6], message):
		r.heardQuery(now)
	case b[6] == protocolUDP:
		r.receiveUDP6(now, from, message, source, target)
	case b[6] == protocolICMPv6 && b[7] == hopLimit && len(message) >= 8:
		r.receiveNDP(now, from, message, source)
	default:
		r.drop(dropMalformed)
	}
}

func (r *responder) receiveUDP6(now time.Time, from mac, message []byte, source, target netip.Addr) {
	got, ok := parseUDP(message, source, target)
	switch {
	case ok && got.to.Port() == dhcp6Server:
		r.receiveDHCP6(now, from, got)
	case ok && got.to.Port() == dhcp6Client:
		r.heardServer6(now, from, got)
	default:
		r.drop(dropMalformed)
	}
}

// receiveNDP handles a message of neighbour discovery. The values of its options are not used: the frame says who sent it.
func (r *responder) receiveNDP(now time.Time, from mac, message []byte, source netip.Addr) {
	kind := message[0]
	if kind == icmpRouterSolicitation {
		if !isValidSolicitation(message, source) {
			r.drop(dropMalformed)
			return
		}
		r.receiveSolicitation(now, from, source)
		return
	}
	if kind == icmpRouterAdvertisement && len(message) >= 16 {
		r.heardRouter(now, from, source, binary.BigEndian.Uint16(message[6:]))
		return
	}
	if len(message) < 24 {
		r.drop(dropMalformed)
		return
	}
	target := netip.AddrFrom16([16]byte(message[8:24]))
	switch {
	case kind == icmpNeighbourAdvertisement:
		r.heard(now, from, target)
	case source.IsUnspecified():
		r.heardProbe(now, from, target)
	default:
		r.heard(now, from, source)
	}
	if kind == icmpNeighbourSolicitation && target == linkLocal(r.link.mac()) && r.allow(now, from, &r.strangers) {
		r.count("ndp", "neighbour-solicitation", "advertisement")
		r.answerNeighbour(from, source)
	}
}

// isValidSolicitation carries out the checks of RFC 4861, section 6.1.1, that are left.
func isValidSolicitation(message []byte, source netip.Addr) bool {
	if message[1] != 0 {
		return false
	}
	for rest := message[8:]; len(rest) > 0; {
		if len(rest) < 8 || rest[1] == 0 || int(rest[1])*8 > len(rest) || ndp.Direction(rest[0]) == ndp.Source && source.IsUnspecified() {
			return false
		}
		rest = rest[int(rest[1])*8:]
	}
	return true
}

// answerNeighbour says which MAC address our link-local address has.
func (r *responder) answerNeighbour(to mac, source netip.Addr) {
	own := r.link.mac()
	answer := &ndp.NeighborAdvertisement{
		Solicited: !source.IsUnspecified(), Override: true, TargetAddress: linkLocal(own),
		Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: own[:]}},
	}
	if source.IsUnspecified() {
		source = allNodes
	}
	r.sendNDP(to, source, answer)
}

// sendNDP sends a message from our link-local address.
func (r *responder) sendNDP(to mac, address netip.Addr, message ndp.Message) {
	frame, err := ndpFrame(r.link.mac(), to, address, message)
	if err != nil {
		r.drop(dropUnsent)
		return
	}
	r.send(frame)
}

func ndpFrame(own, to mac, address netip.Addr, message ndp.Message) ([]byte, error) {
	source := linkLocal(own)
	body, err := ndp.MarshalMessageChecksum(message, source, address)
	if err != nil {
		return nil, err
	}
	return ethernet(to, own, etherIPv6, append(ipv6Header(source, address, protocolICMPv6, hopLimit, len(body)), body...)), nil
}
