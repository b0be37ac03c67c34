package main

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// receivePing answers an echo request to the server's address, as administrators and monitoring expect of a server.
func (r *responder) receivePing(now time.Time, from mac, b []byte) {
	message, ok := bodyOfIPv4(b)
	if !ok || len(message) < 8 || message[0] != icmpEcho || checksum(message) != 0 {
		r.drop(dropMalformed)
		return
	}
	own, source := r.config.Server.IPv4, netip.AddrFrom4([4]byte(b[12:16]))
	if netip.AddrFrom4([4]byte(b[16:20])) != own || !isHost(source, 4) || !r.allow(now, from, &r.pings) {
		return
	}
	answer := append([]byte{icmpEchoReply, 0, 0, 0}, message[4:]...)
	binary.BigEndian.PutUint16(answer[2:], checksum(answer))
	r.count("icmp", "echo", "reply")
	r.send(ethernet(from, r.link.mac(), etherIPv4, append(ipv4Header(own, source, protocolICMP, len(answer)), answer...)))
}
