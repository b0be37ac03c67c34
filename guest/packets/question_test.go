package main

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
)

var (
	newIPv4 = netip.MustParseAddr("10.1.0.9")
	newIPv6 = netip.MustParseAddr("fd00:1::9")
)

// ask starts a probe of an address that no guest has, and returns the first frame.
func (w *world) ask(address netip.Addr, expected string) []byte {
	w.t.Helper()
	w.obeyLines(`{"probe":{"id":7,"address":"` + address.String() + `","expect":[` + expected + `],"forMs":900}}`)
	sent := w.take()
	if len(sent) != 1 {
		w.t.Fatalf("%d frames", len(sent))
	}
	return sent[0]
}

func (w *world) expectProbed(want ...mac) {
	w.t.Helper()
	if len(w.reports) != 1 || w.reports[0].Probed == nil || w.reports[0].Probed.ID != 7 || !slices.Equal(w.reports[0].Probed.MACs, want) {
		w.t.Fatalf("reports: %+v, want %v", w.reports, want)
	}
}

func TestAddressThatNobodyHasIsReportedAfterThreeQuestions(t *testing.T) {
	for _, address := range []netip.Addr{newIPv4, newIPv6} {
		w := newWorld(t)
		sent := [][]byte{w.ask(address, "")}
		if address.Is4() {
			if got, ok := parseARP(sent[0][etherLength:]); !ok || got.operation != arpRequest || got.senderIP != noIPv4 || got.targetIP != newIPv4 {
				t.Fatalf("not a probe: %+v", got)
			}
		} else if _, message := parseNDP(t, sent[0]); message.(*ndp.NeighborSolicitation).TargetAddress != newIPv6 {
			t.Fatalf("not a probe: %+v", message)
		}
		w.wait(850 * time.Millisecond)
		if sent = append(sent, w.take()...); len(sent) != questionTries || len(w.reports) > 0 {
			t.Fatalf("%d questions, reports %+v", len(sent), w.reports)
		}
		w.wait(50 * time.Millisecond)
		w.expectProbed()
		w.wait(time.Minute)
		if len(w.questions) > 0 {
			t.Fatal("the probe does not end")
		}
	}
}

func TestHostThatHasTheAddressEndsAProbeAtOnce(t *testing.T) {
	advertisement := neighbourFrame(ownMAC, otherMAC, newIPv6, linkLocal(ownMAC), &ndp.NeighborAdvertisement{Solicited: true, TargetAddress: newIPv6})
	checks := neighbourFrame(groupMAC(solicitedNode(newIPv6)), otherMAC, netip.IPv6Unspecified(), solicitedNode(newIPv6), &ndp.NeighborSolicitation{TargetAddress: newIPv6})
	for name, row := range map[string]struct {
		address netip.Addr
		frame   []byte
	}{
		"a reply":          {newIPv4, has(otherMAC, newIPv4)},
		"an announcement":  {newIPv4, arp{arpRequest, otherMAC, newIPv4, mac{}, newIPv4}.frame(broadcastMAC)},
		"a probe":          {newIPv4, arp{arpRequest, otherMAC, noIPv4, mac{}, newIPv4}.frame(broadcastMAC)},
		"an advertisement": {newIPv6, advertisement},
		"a solicitation":   {newIPv6, checks},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ask(row.address, "")
			w.hear(has(otherMAC, netip.MustParseAddr("10.1.0.8"))) // another address
			w.hear(row.frame)
			w.expectProbed(otherMAC)
			w.wait(time.Second)
			w.expectNoFrames(w.take())
			w.expectProbed(otherMAC)
		})
	}
}

func TestExpectedHostsAreReportedWhenTheProbeEnds(t *testing.T) {
	w := newWorld(t)
	w.ask(newIPv4, `"02:00:00:00:00:0a","02:00:00:00:00:0b"`)
	for range 2 {
		w.hear(has(plainMAC, newIPv4))
		w.hear(has(guestMAC, newIPv4))
	}
	w.wait(time.Second)
	w.expectProbed(plainMAC, guestMAC)
}

func TestUnexpectedHostIsReportedWithoutTheExpectedOnes(t *testing.T) {
	w := newWorld(t)
	w.ask(newIPv4, `"02:00:00:00:00:0a"`)
	w.hear(has(guestMAC, newIPv4))
	w.hear(has(otherMAC, newIPv4))
	w.expectProbed(otherMAC)
}

// The other responder probes the same address.
func TestProbeOfAnotherResponderIsNoAnswer(t *testing.T) {
	for _, address := range []netip.Addr{newIPv4, newIPv6} {
		w := newWorld(t)
		probe := bytes.Clone(w.ask(address, ""))
		peer := mac{2, 0, 0, 0, 0, 2}
		copy(probe[6:12], peer[:])
		if address.Is4() {
			copy(probe[etherLength+8:], peer[:]) // the sender of ARP
		}
		w.hear(probe)
		w.wait(time.Second)
		w.expectProbed()
	}
}

func TestSilenceIsNoAnswerIfAQuestionWasNotSent(t *testing.T) {
	w := newWorld(t)
	w.ask(newIPv4, "")
	w.link.failed = errors.New("no buffer")
	w.wait(400 * time.Millisecond)
	w.link.failed = nil
	w.wait(time.Second)
	if len(w.reports) > 0 {
		t.Fatalf("reports: %+v", w.reports)
	}
	w.take()
	w.ask(newIPv4, "")
	w.link.failed = errors.New("no buffer")
	w.hear(has(otherMAC, newIPv4))
	w.expectProbed(otherMAC)
}

func TestInterfaceThatIsNotServedIsNotProbed(t *testing.T) {
	w := newWorld(t)
	w.isQuiet = true
	w.obeyLines(`{"probe":{"id":7,"address":"10.1.0.9","forMs":900}}`)
	w.wait(5 * time.Second)
	if sent := w.take(); len(sent)+len(w.reports) > 0 {
		t.Fatalf("%d frames, reports %+v", len(sent), w.reports)
	}
}

func TestProbesOfAnEarlierConnectionEnd(t *testing.T) {
	w := newWorld(t)
	w.ask(newIPv4, "")
	w.connected()
	w.wait(time.Second)
	w.expectNoFrames(w.take())
	if len(w.reports) > 0 {
		t.Fatalf("reports: %+v", w.reports)
	}
}

// The connection, and with it the answers to guests, matters more than one probe.
func TestProbeTooManyIsDroppedAndCounted(t *testing.T) {
	w := newWorld(t)
	for range maxQuestions + 1 {
		w.obeyLines(`{"probe":{"id":7,"address":"10.1.0.9","forMs":900}}`)
	}
	w.expectDropped(dropQuestions)
	w.wait(time.Second)
	if len(w.reports) != maxQuestions {
		t.Fatalf("%d answers", len(w.reports))
	}
	w.take()
	w.reports = nil
	w.ask(newIPv4, "")
	w.wait(time.Second)
	w.expectProbed()
}
