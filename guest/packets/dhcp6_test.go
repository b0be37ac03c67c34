package main

import (
	"bytes"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/mdlayher/ndp"
)

// TestAnswersOfDHCPv6 is the table of the design: message, freshness of the table, answer.
func TestAnswersOfDHCPv6(t *testing.T) {
	const none, advertise, reply = dhcpv6.MessageTypeNone, dhcpv6.MessageTypeAdvertise, dhcpv6.MessageTypeReply
	const tabled, other, foreign = "fd00:1::a", "fd00:1::77", "fd00:9::77"
	own, peer := serverID(ownDUID), serverID(fromHex("0004 ff0102030405060708090a0b0c0d0e0f"))
	rapid := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit}
	type answers struct{ fresh, stale dhcpv6.MessageType }
	const success = iana.StatusSuccess
	for _, row := range []struct {
		name       string
		frame      []byte
		want       answers
		afterProbe bool // if the table is stale or the address is not confirmed
		hasAddress bool
		status     iana.StatusCode
	}{
		{"SOLICIT", from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1)), answers{advertise, advertise}, true, true, success},
		{"SOLICIT with Rapid Commit", from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1), rapid), answers{reply, reply}, true, true, success},
		{"SOLICIT that names a server", from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1), own), answers{none, none}, false, false, success},
		{"REQUEST", from6(guestMAC, dhcpv6.MessageTypeRequest, own, iaOf(1, tabled)), answers{reply, reply}, true, true, success},
		{"REQUEST of another server", from6(guestMAC, dhcpv6.MessageTypeRequest, peer, iaOf(1, tabled)), answers{none, none}, false, false, success},
		{"REQUEST of no server", from6(guestMAC, dhcpv6.MessageTypeRequest, iaOf(1, tabled)), answers{none, none}, false, false, success},
		{"RENEW", from6(guestMAC, dhcpv6.MessageTypeRenew, own, iaOf(1, tabled)), answers{reply, reply}, false, true, success},
		{"RENEW of another address", from6(guestMAC, dhcpv6.MessageTypeRenew, own, iaOf(1, other)), answers{reply, none}, false, true, success},
		{"RENEW of another server", from6(guestMAC, dhcpv6.MessageTypeRenew, peer, iaOf(1, tabled)), answers{none, none}, false, false, success},
		{"RENEW without an address", from6(guestMAC, dhcpv6.MessageTypeRenew, own, iaOf(1)), answers{reply, none}, false, true, success},
		{"REBIND", from6(guestMAC, dhcpv6.MessageTypeRebind, iaOf(1, tabled)), answers{reply, reply}, false, true, success},
		{"REBIND of another address", from6(guestMAC, dhcpv6.MessageTypeRebind, iaOf(1, other)), answers{reply, none}, false, true, success},
		{"CONFIRM", from6(guestMAC, dhcpv6.MessageTypeConfirm, iaOf(1, tabled)), answers{reply, reply}, true, false, success},
		{"CONFIRM of an address of another link", from6(guestMAC, dhcpv6.MessageTypeConfirm, iaOf(1, foreign)), answers{reply, none}, false, false, iana.StatusNotOnLink},
		{"CONFIRM of an address of another guest", from6(guestMAC, dhcpv6.MessageTypeConfirm, iaOf(1, other)), answers{reply, none}, false, false, iana.StatusNotOnLink},
		{"CONFIRM without an address", from6(guestMAC, dhcpv6.MessageTypeConfirm, iaOf(1)), answers{none, none}, false, false, success},
		{"INFORMATION-REQUEST", from6(guestMAC, dhcpv6.MessageTypeInformationRequest), answers{reply, reply}, false, false, success},
		{"INFORMATION-REQUEST of another server", from6(guestMAC, dhcpv6.MessageTypeInformationRequest, peer), answers{none, none}, false, false, success},
		{"INFORMATION-REQUEST with an identity association", from6(guestMAC, dhcpv6.MessageTypeInformationRequest, iaOf(1)), answers{none, none}, false, false, success},
		{"RELEASE", from6(guestMAC, dhcpv6.MessageTypeRelease, own, iaOf(1, tabled)), answers{reply, reply}, false, false, success},
		{"DECLINE", from6(guestMAC, dhcpv6.MessageTypeDecline, own, iaOf(1, tabled)), answers{reply, reply}, false, false, success},
		{"DECLINE to another server", from6(guestMAC, dhcpv6.MessageTypeDecline, peer, iaOf(1, tabled)), answers{none, none}, false, false, success},
	} {
		expect := func(t *testing.T, sent [][]byte, want dhcpv6.MessageType) {
			t.Helper()
			if want == none && len(sent) == 0 {
				return
			}
			if want == none || len(sent) != 1 {
				t.Fatalf("%d frames are sent; want %s", len(sent), want)
			}
			got := parseReply6(t, sent[0])
			if got.MessageType != want || got.Options.ClientID() == nil {
				t.Fatalf("got %s", got)
			}
			if status := got.Options.Status(); status != nil && status.StatusCode != row.status || status == nil && row.status != success {
				t.Fatalf("status %v", status)
			}
			ia := got.Options.OneIANA()
			if (ia != nil) != row.hasAddress {
				t.Fatalf("got %s", got)
			}
			if ia != nil && (!ia.Options.OneAddress().IPv6Addr.Equal(net.ParseIP(tabled)) || ia.T1 != 300*time.Second || ia.T2 != 600*time.Second) {
				t.Fatalf("got %s", ia)
			}
		}
		t.Run(row.name+" to a fresh table", func(t *testing.T) {
			w := newWorld(t)
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
			expect(t, w.hear(row.frame), row.want.fresh)
		})
		for _, in := range []struct {
			name       string
			want       dhcpv6.MessageType
			afterProbe bool
			prepare    func(w *world)
		}{
			{"a stale table", row.want.stale, row.afterProbe, func(*world) {}},
			// A client that renews another address gets that of the table, as if it asked for the first time.
			{"a fresh table, before the address is confirmed", row.want.fresh,
				row.afterProbe || row.hasAddress && row.want.stale == none, (*world).beFreshAndUnconfirmed},
		} {
			t.Run(row.name+" to "+in.name, func(t *testing.T) {
				w := newWorld(t)
				in.prepare(w)
				sent := w.hear(row.frame)
				if !in.afterProbe {
					expect(t, sent, in.want)
					return
				}
				target, message := parseNDP(t, sent[0])
				if asked, ok := message.(*ndp.NeighborSolicitation); !ok || asked.TargetAddress != guestIPv6 || target != solicitedNode(guestIPv6) {
					t.Fatalf("not a probe: %+v", message)
				}
				w.wait(150 * time.Millisecond)
				w.take()
				w.wait(150 * time.Millisecond)
				expect(t, w.take(), in.want)
			})
			t.Run(row.name+" to "+in.name+", and another host has the address", func(t *testing.T) {
				if !in.afterProbe {
					return
				}
				w := newWorld(t)
				in.prepare(w)
				w.hear(row.frame)
				w.hear(neighbourFrame(ownMAC, otherMAC, guestIPv6, linkLocal(ownMAC), &ndp.NeighborAdvertisement{Solicited: true, TargetAddress: guestIPv6}))
				w.take()
				w.wait(time.Second)
				expect(t, w.take(), none)
				w.expectSeen(seen{seenConflict, otherMAC, guestIPv6})
			})
		}
	}
}

func TestOtherAddressesOfARenewalAreNoLongerValid(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	many := []string{"fd00:1::71", "fd00:1::72", "fd00:1::73", "fd00:1::74", "fd00:1::75", "fd00:1::a"}
	got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeRenew, serverID(ownDUID), iaOf(1, many...))).Options.OneIANA().Options.Addresses()
	if len(got) != 1+maxEchoed || got[0].ValidLifetime != 24*time.Hour || !got[0].IPv6Addr.Equal(guestIPv6.AsSlice()) {
		t.Fatalf("got %v", got)
	}
	for _, each := range got[1:] {
		if each.ValidLifetime != 0 || each.PreferredLifetime != 0 {
			t.Errorf("got %v", each)
		}
	}
}

func TestOnlyTheFirstIdentityAssociationGetsAnAddress(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1), iaOf(2), &dhcpv6.OptIATA{IaId: [4]byte{3}}, &dhcpv6.OptIAPD{IaId: [4]byte{4}}))
	ias := got.Options.IANA()
	if len(ias) != 2 || ias[0].Options.Status() != nil || ias[1].Options.Status().StatusCode != iana.StatusNoAddrsAvail || ias[1].IaId != [4]byte{2} {
		t.Errorf("got %s", got)
	}
	if temporary := got.Options.OneIATA(); temporary.Options.Status().StatusCode != iana.StatusNoAddrsAvail {
		t.Errorf("got %s", temporary)
	}
	if prefix := got.Options.OneIAPD(); prefix.Options.Status().StatusCode != iana.StatusNoPrefixAvail {
		t.Errorf("got %s", prefix)
	}
}

// RFC 8415, section 11: a server only compares them.
func TestClientWithADUIDThatIsNotAsLongAsItsTypeSaysIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	client := fromHex("0001 0006 0004 01020304") // that of a UUID has 18 bytes
	solicit := append(append(fromHex("01 010203"), client...), fromHex("0003 000c 00000001 00000000 00000000")...)
	sent := w.hear(frame6(guestMAC, guestLinkLocal, solicit))
	if len(sent) != 1 || !bytes.Contains(sent[0], client) {
		t.Fatalf("sent %x; dropped: %v", sent, w.counter.dropped)
	}
}

func TestMessagesThatGetNoAnswerOfDHCPv6(t *testing.T) {
	solicit := from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1))
	many := make([]dhcpv6.Option, maxOptions6)
	for index := range many {
		many[index] = &dhcpv6.OptionGeneric{OptionCode: 4000}
	}
	for _, row := range []struct {
		name   string
		frame  []byte
		reason string
	}{
		{"of an unknown MAC address", from6(otherMAC, dhcpv6.MessageTypeSolicit, iaOf(1)), dropUnknown},
		{"from a global address", frame6(guestMAC, guestIPv6, solicit[etherLength+48:]), dropMalformed},
		{"of a server", from6(guestMAC, dhcpv6.MessageTypeAdvertise), dropMalformed},
		{"of a relay", frame6(guestMAC, guestLinkLocal, append([]byte{byte(dhcpv6.MessageTypeRelayForward), 0}, make([]byte, 40)...)), dropMalformed},
		{"that is empty", frame6(guestMAC, guestLinkLocal, nil), dropMalformed},
		{"with an option beyond its end", frame6(guestMAC, guestLinkLocal, []byte{1, 1, 2, 3, 0, 1, 0, 99}), dropMalformed},
		{"with too many options", from6(guestMAC, dhcpv6.MessageTypeSolicit, many...), dropMalformed},
		{"with too many identity associations", from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1), iaOf(2), iaOf(3), iaOf(4), iaOf(5)), dropMalformed},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.obeyLines(`{"fresh":{"forMs":30000}}`)
			w.expectNoFrames(w.hear(row.frame))
			w.expectDropped(row.reason)
		})
	}
}

func TestMessageToOurOwnAddressIsRefusedAsRFC8415Says(t *testing.T) {
	toUs := func(frame []byte) []byte {
		copy(frame, ownMAC[:])
		message := frame[etherLength+48:]
		return append(frame[:etherLength], ipv6(datagram{
			from: netip.AddrPortFrom(guestLinkLocal, 546), to: netip.AddrPortFrom(linkLocal(ownMAC), 547), payload: message,
		})...)
	}
	own := serverID(ownDUID)
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline} {
		w := newWorld(t)
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		got := w.expectReply6(toUs(from6(guestMAC, kind, own, iaOf(1, "fd00:1::a"), dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer))))
		if got.MessageType != dhcpv6.MessageTypeReply || got.Options.Status().StatusCode != iana.StatusUseMulticast || len(got.Options.Options) != 3 {
			t.Errorf("%s: got %s", kind, got)
		}
		w.expectSeen()
	}
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeRebind, dhcpv6.MessageTypeInformationRequest} {
		w := newWorld(t)
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		w.expectNoFrames(w.hear(toUs(from6(guestMAC, kind, iaOf(1, "fd00:1::a")))))
	}
}

// Else a client waits for a second for other servers.
func TestAdvertiseHasThePreferenceThatEndsTheWait(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1)))
	if option := got.GetOneOption(dhcpv6.OptionPreference); option == nil || !bytes.Equal(option.ToBytes(), []byte{255}) {
		t.Fatalf("got %s", got)
	}
	if got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeRequest, serverID(ownDUID), iaOf(1))); got.GetOneOption(dhcpv6.OptionPreference) != nil {
		t.Fatalf("got %s", got)
	}
}

// A client of prefixes alone must not stop to wait for the server that has some.
func TestSolicitWithoutAnAddressEndsNoWait(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	rapid := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit}
	for _, more := range [][]dhcpv6.Option{{}, {rapid}} {
		got := w.expectReply6(from6(guestMAC, dhcpv6.MessageTypeSolicit, append(more, &dhcpv6.OptIAPD{})...))
		if got.MessageType != dhcpv6.MessageTypeAdvertise || got.GetOneOption(dhcpv6.OptionPreference) != nil {
			t.Fatalf("got %s", got)
		}
	}
}

func TestDeclineOfAnotherAddressIsNotReported(t *testing.T) {
	w := newWorld(t)
	w.hear(from6(guestMAC, dhcpv6.MessageTypeDecline, serverID(ownDUID), iaOf(1, "fd00:1::77")))
	w.expectSeen()
	w.hear(from6(guestMAC, dhcpv6.MessageTypeDecline, serverID(ownDUID), iaOf(1, "fd00:1::a")))
	w.expectSeen(seen{seenDeclined, guestMAC, guestIPv6})
}

// Pointers in names are expanded by the library: one message with 235 of them needed 104 MB.
func TestCompressedNamesOfAMessageAreNotExpanded(t *testing.T) {
	names := append(bytes.Repeat([]byte("\x01a"), 460), 0)
	names = append(names, bytes.Repeat([]byte{0xc0, 0}, 220)...)
	fqdn := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionFQDN, OptionData: append([]byte{fqdnServerUpdates}, names...)}
	search := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionDomainSearchList, OptionData: names}
	server := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionNTPServer, OptionData: append([]byte{0, 3, byte(len(names) >> 8), byte(len(names))}, names...)}
	inside := func(option dhcpv6.Option) dhcpv6.Option {
		return &dhcpv6.OptIANA{Options: dhcpv6.IdentityOptions{Options: dhcpv6.Options{option}}}
	}
	inAddress := &dhcpv6.OptIAAddress{Options: dhcpv6.AddressOptions{Options: dhcpv6.Options{search}}}
	inPrefixes := &dhcpv6.OptIAPD{Options: dhcpv6.PDOptions{Options: dhcpv6.Options{search}}}
	inTemporary := &dhcpv6.OptIATA{Options: dhcpv6.IdentityOptions{Options: dhcpv6.Options{search}}}
	relayed := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRelayMsg, OptionData: (&dhcpv6.Message{MessageType: 1, Options: dhcpv6.MessageOptions{Options: dhcpv6.Options{search}}}).ToBytes()}
	for name, option := range map[string]dhcpv6.Option{
		"a full name": fqdn, "a search list": search, "an NTP server": server, "an IA_NA": inside(search), "an address": inside(inAddress),
		"an IA_PD": inPrefixes, "an IA_TA": inTemporary, "a relayed message": relayed, "an IA_NA in an IA_NA": inside(inside(fqdn)),
	} {
		w := newWorld(t)
		w.beNamed("")
		frame := from6(guestMAC, dhcpv6.MessageTypeSolicit, option)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.expectReply6(frame)
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
			t.Errorf("%s: %d bytes are allocated", name, bytes)
		}
	}
}

func FuzzDHCP6(f *testing.F) {
	f.Add(from6(guestMAC, dhcpv6.MessageTypeSolicit, iaOf(1)))
	f.Add(from6(guestMAC, dhcpv6.MessageTypeRenew, serverID(ownDUID), iaOf(1, "fd00:1::77"), iaOf(2)))
	f.Add(from6(guestMAC, dhcpv6.MessageTypeConfirm, iaOf(1, "fd00:1::77")))
	f.Add(from6(guestMAC, dhcpv6.MessageTypeSolicit, &dhcpv6.OptIAPD{}, &dhcpv6.OptIATA{}, &dhcpv6.OptVendorClass{}))
	long := &dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: make([]byte, 1390)}
	f.Add(frame6(guestMAC, guestLinkLocal, (&dhcpv6.Message{MessageType: dhcpv6.MessageTypeSolicit, Options: dhcpv6.MessageOptions{Options: dhcpv6.Options{long, iaOf(1)}}}).ToBytes()))
	f.Fuzz(func(t *testing.T, frame []byte) { fuzz(t, frame) })
}
