package main

import (
	"encoding/binary"
	"net/netip"
	"time"
)

const arpRequest, arpReply = 1, 2

var noIPv4 = netip.IPv4Unspecified()

// arp is an ARP message between an Ethernet interface and IPv4 addresses (RFC 826).
type arp struct {
	operation uint16
	sender    mac
	senderIP  netip.Addr
	target    mac
	targetIP  netip.Addr
}

var arpHeader = [6]byte{0, 1, 8, 0, 6, 4}

func parseARP(b []byte) (arp, bool) {
	if len(b) < 28 || [6]byte(b) != arpHeader {
		return arp{}, false
	}
	return arp{
		operation: binary.BigEndian.Uint16(b[6:]),
		sender:    mac(b[8:14]),
		senderIP:  netip.AddrFrom4([4]byte(b[14:18])),
		target:    mac(b[18:24]),
		targetIP:  netip.AddrFrom4([4]byte(b[24:28])),
	}, true
}

// frame returns the frame of a message, with padding to the least length of Ethernet.
func (a arp) frame(to mac) []byte {
	b := binary.BigEndian.AppendUint16(arpHeader[:], a.operation)
	b = append(append(b, a.sender[:]...), a.senderIP.AsSlice()...)
	b = append(append(b, a.target[:]...), a.targetIP.AsSlice()...)
	return ethernet(to, a.sender, etherARP, append(b, make([]byte, 18)...))
}

// receiveARP answers requests for the server's address, and watches who uses which address.
func (r *responder) receiveARP(now time.Time, from mac, body []byte) {
	got, ok := parseARP(body)
	if !ok || got.sender != from {
		r.drop(dropMalformed)
		return
	}
	if got.senderIP != noIPv4 {
		r.heard(now, from, got.senderIP)
	} else if got.operation == arpRequest && got.target != probeMark {
		r.heardProbe(now, from, got.targetIP)
	}
	own := r.config.Server.IPv4
	if got.operation != arpRequest || !own.IsValid() || got.targetIP != own {
		return
	}
	if !r.allow(now, from, &r.strangers) {
		return
	}
	r.count("arp", "request", "reply")
	r.send(arp{arpReply, r.link.mac(), own, from, got.senderIP}.frame(from))
}

// announceARP tells all hosts which MAC address the server's address has.
func (r *responder) announceARP() {
	if own := r.config.Server.IPv4; own.IsValid() {
		r.send(arp{arpRequest, r.link.mac(), own, mac{}, own}.frame(broadcastMAC))
	}
}
