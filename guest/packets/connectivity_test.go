//go:build !guests

package main

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/mdlayher/ndp"
)

func TestConnectivityNotesEachHostThatHasAnAddress(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("2001:db8::7")
	first, second := mac{2, 0, 0, 0, 0, 1}, mac{2, 0, 0, 0, 0, 2}
	heard := newHearing([]askedHost{{Address: four}, {Address: six}})
	reply := func(from mac, address netip.Addr) []byte {
		return arp{arpReply, from, address, mac{}, noIPv4}.frame(mac{2, 9})
	}
	advertisement := func(from mac) []byte {
		frame, err := ndpFrame(from, mac{2, 9}, linkLocal(mac{2, 9}), &ndp.NeighborAdvertisement{TargetAddress: six})
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	for _, frame := range [][]byte{
		reply(first, four), reply(first, four), reply(second, four),
		reply(second, netip.MustParseAddr("10.0.0.8")), // nobody asked
		advertisement(second),
		{}, reply(first, four)[:20],
	} {
		heard.take(frame)
	}
	for address, want := range map[netip.Addr][]mac{four: {first, second}, six: {second}} {
		if got := heard.hosts[address]; !slices.Equal(got, want) {
			t.Errorf("%s: heard %v, want %v", address, got, want)
		}
	}
	if len(heard.hosts) != 2 {
		t.Errorf("heard of %d addresses, want 2", len(heard.hosts))
	}
	for i := range 100 {
		heard.take(reply(mac{2, 1, 0, 0, 0, byte(i)}, four))
	}
	if got := len(heard.hosts[four]); got != maxHeard {
		t.Errorf("noted %d hosts, want %d", got, maxHeard)
	}
}

func TestConnectivityAsksPeersFromItsOwnAddress(t *testing.T) {
	from, own, peer := mac{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
	hosts := []askedHost{{Address: netip.MustParseAddr("2001:db8::7")}, {Address: own}}
	for asked, sender := range map[netip.Addr]netip.Addr{own: noIPv4, peer: own} {
		frame, err := questionFrame(from, hosts, asked)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := parseARP(frame[etherLength:])
		if !ok || got.senderIP != sender || got.targetIP != asked || got.sender != from {
			t.Errorf("asked for %s with %+v, want the sender %s", asked, got, sender)
		}
	}
}
