package main

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// A switch with MLD snooping delivers frames of a group only to those who reported it. The kernel reports nothing for
// packet sockets, so we do (MLDv2, RFC 3810), from the link-local address that answers of ours come from.

var (
	allNodes        = netip.MustParseAddr("ff02::1")
	allRouters      = netip.MustParseAddr("ff02::2")
	allDHCP6Servers = netip.MustParseAddr("ff02::1:2")
	allMLDRouters   = netip.MustParseAddr("ff02::16")
)

const (
	icmpMLDReport    = 143
	mldIsExclude     = 2 // the current state: frames of all sources
	reportEvery      = time.Minute
	maxReportDelayMs = 1000
)

// mldReport returns a report of groups.
func mldReport(from mac, groups []netip.Addr) []byte {
	message := []byte{icmpMLDReport, 0, 0, 0, 0, 0}
	message = binary.BigEndian.AppendUint16(message, uint16(len(groups)))
	for _, group := range groups {
		message = append(append(message, mldIsExclude, 0, 0, 0), group.AsSlice()...)
	}
	source := linkLocal(from)
	binary.BigEndian.PutUint16(message[2:], checksum(pseudoHeader(source, allMLDRouters, protocolICMPv6, len(message)), message))
	// A hop-by-hop header with the option "router alert".
	options := []byte{protocolICMPv6, 0, 5, 2, 0, 0, 1, 0}
	packet := append(ipv6Header(source, allMLDRouters, 0, 1, len(options)+len(message)), options...)
	return ethernet(groupMAC(allMLDRouters), from, etherIPv6, append(packet, message...))
}

// reportedGroups are those for which a switch needs a report; it always delivers frames for all nodes.
func (r *responder) reportedGroups() []netip.Addr { return groups(r.link.mac())[1:] }

// heardQuery makes the next report due within a second, but not two of them.
func (r *responder) heardQuery(now time.Time) {
	due := now.Add(time.Duration(r.random(maxReportDelayMs)) * time.Millisecond)
	if earliest := r.reportedAt.Add(time.Second); due.Before(earliest) {
		due = earliest
	}
	if r.reportAt.After(due) {
		r.reportAt = due
	}
}

func (r *responder) reportGroups(now time.Time) {
	if now.Before(r.reportAt) {
		return
	}
	r.reportedAt, r.reportAt = now, now.Add(reportEvery)
	r.send(mldReport(r.link.mac(), r.reportedGroups()))
}

// isMLDQuery returns whether the body of an IPv6 packet is a query, which is behind a hop-by-hop header of 8 bytes.
func isMLDQuery(next byte, body []byte) bool {
	return next == 0 && len(body) >= 8+4 && body[0] == protocolICMPv6 && body[1] == 0 && body[8] == icmpMLDQuery
}
