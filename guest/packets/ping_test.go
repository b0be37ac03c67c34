package main

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/mdlayher/ndp"
)

// pingOf returns an echo request with data.
func pingOf(from mac, source, target netip.Addr) []byte {
	message := append([]byte{icmpEcho, 0, 0, 0, 1, 2, 0, 7}, "data"...)
	binary.BigEndian.PutUint16(message[2:], checksum(message))
	return ethernet(ownMAC, from, etherIPv4, append(ipv4Header(source, target, protocolICMP, len(message)), message...))
}

func TestPingOfTheServerIsAnswered(t *testing.T) {
	w := newWorld(t)
	source := netip.MustParseAddr("10.1.0.77")
	sent := w.hear(pingOf(otherMAC, source, ownIPv4))
	if len(sent) != 1 || mac(sent[0][:6]) != otherMAC || mac(sent[0][6:]) != ownMAC {
		t.Fatalf("sent: %x", sent)
	}
	packet := sent[0][etherLength:]
	message, ok := bodyOfIPv4(packet)
	isFromUs := bytes.Equal(packet[12:16], ownIPv4.AsSlice()) && bytes.Equal(packet[16:20], source.AsSlice())
	if !ok || !isFromUs || checksum(packet[:20]) != 0 || checksum(message) != 0 || message[0] != icmpEchoReply {
		t.Fatalf("got %x", packet)
	}
	if !bytes.Equal(message[4:], append([]byte{1, 2, 0, 7}, "data"...)) {
		t.Fatalf("the answer has other data: %x", message)
	}
}

func TestPingsThatAreNotAnswered(t *testing.T) {
	for name, frame := range map[string][]byte{
		"to another address":      pingOf(otherMAC, guestIPv4, netip.MustParseAddr("10.1.0.3")),
		"from a group":            pingOf(otherMAC, netip.MustParseAddr("224.0.0.1"), ownIPv4),
		"with a wrong checksum":   change(pingOf(otherMAC, guestIPv4, ownIPv4), etherLength+28, 'D'),
		"that is an answer":       change(pingOf(otherMAC, guestIPv4, ownIPv4), etherLength+20, icmpEchoReply),
		"that is cut off":         pingOf(otherMAC, guestIPv4, ownIPv4)[:etherLength+24],
		"with a fragment's flags": change(pingOf(otherMAC, guestIPv4, ownIPv4), etherLength+6, 0x20),
	} {
		w := newWorld(t)
		if sent := w.hear(frame); len(sent) > 0 {
			t.Errorf("%s: %x", name, sent)
		}
	}
}

func TestPingsOfAFloodAreBounded(t *testing.T) {
	w := newWorld(t)
	answers := 0
	for range 3 * strangerBurst {
		answers += len(w.hear(pingOf(otherMAC, netip.MustParseAddr("10.1.0.77"), ownIPv4)))
	}
	if answers != strangerBurst {
		t.Fatalf("%d answers", answers)
	}
	if sent := w.hear(arp{arpRequest, otherMAC, netip.MustParseAddr("10.1.0.77"), mac{}, ownIPv4}.frame(broadcastMAC)); len(sent) != 1 {
		t.Fatal("the flood stops answers to ARP")
	}
	sent := w.hear(neighbourFrame(groupMAC(solicitedNode(linkLocal(ownMAC))), otherMAC, linkLocal(otherMAC), solicitedNode(linkLocal(ownMAC)),
		&ndp.NeighborSolicitation{TargetAddress: linkLocal(ownMAC)}))
	if len(sent) != 1 {
		t.Fatal("the flood stops answers to neighbour discovery")
	}
}
