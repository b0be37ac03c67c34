package main

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

func TestOptionsOfDHCPv4(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(discover(guestMAC))
	for _, each := range []struct {
		code byte
		want []byte
	}{
		{1, []byte{255, 255, 255, 0}},
		{3, []byte{10, 1, 0, 1}},
		{6, []byte{10, 1, 0, 53}},
		{15, []byte("example.org")},
		{26, []byte{1400 >> 8, 1400 & 0xff}},
		{42, []byte{10, 1, 0, 123}},
		{51, []byte{0, 1, 0x51, 0x80}},
		{54, []byte{10, 1, 0, 2}},
		{58, []byte{0, 0, 1, 44}},
		{59, []byte{0, 0, 2, 88}},
		{61, nil},
		{119, []byte("\x07example\x03org\x00\x01a\x07example\x03org\x00")},
		// RFC 3442: 10.9.0.0/16 by 10.1.0.9, and the default route
		{121, []byte{16, 10, 9, 10, 1, 0, 9, 0, 10, 1, 0, 1}},
		{33, nil}, {67, nil},
	} {
		if value := got.Options.Get(dhcpv4.GenericOptionCode(each.code)); !bytes.Equal(value, each.want) {
			t.Errorf("option %d is %v, not %v", each.code, value, each.want)
		}
	}
	if got.ServerHostName != "" || got.BootFileName != "" || len(got.payload) < 300 {
		t.Errorf("got %s", got.Summary())
	}
}

func TestGuestWithoutDefaultRouteGetsNoRouter(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"put":[{"mac":"02:00:00:00:00:0b","ipv4":{"address":"10.1.0.11","prefix":24},"options":"o1"}]}`)
	got := w.expectReply(discover(plainMAC))
	if got.Options.Has(dhcpv4.OptionRouter) || !bytes.Equal(got.Options.Get(dhcpv4.OptionClasslessStaticRoute), []byte{16, 10, 9, 10, 1, 0, 9}) {
		t.Fatalf("got %s", got.Summary())
	}
}

// A pool that is renumbered has two subnets.
func TestRoutesThroughAGatewayOfAnotherSubnetAreLeftOut(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"put":[{"mac":"02:00:00:00:00:0b","ipv4":{"address":"10.2.0.11","prefix":24,"router":"10.2.0.1"},"options":"o1"}]}`)
	w.table.confirmed[netip.MustParseAddr("10.2.0.11")] = true
	got := w.expectReply(discover(plainMAC))
	if got.Options.Has(dhcpv4.OptionClasslessStaticRoute) || !got.Options.Has(dhcpv4.OptionRouter) {
		t.Fatalf("got %s", got.Summary())
	}
}

func TestOptionsThatWereNotRequestedAreNotSent(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask))))
	var codes []int
	for code := range got.Options {
		codes = append(codes, int(code))
	}
	slices.Sort(codes)
	if want := []int{1, 51, 53, 54, 58, 59}; !slices.Equal(codes, want) {
		t.Fatalf("options %v, not %v", codes, want)
	}
}

// Simple clients, such as those of boot loaders, request nothing and use what comes.
func TestClientThatRequestsNoOptionsGetsAllThatAreConfigured(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithoutOption(dhcpv4.OptionParameterRequestList)))
	var codes []int
	for code := range got.Options {
		codes = append(codes, int(code))
	}
	slices.Sort(codes)
	if want := []int{1, 3, 6, 12, 15, 26, 42, 51, 53, 54, 58, 59, 119, 121, 224}; !slices.Equal(codes, want) {
		t.Fatalf("options %v, not %v", codes, want)
	}
}

func TestOldWindowsGetsRoutesInItsOwnOption(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	asking := dhcpv4.WithOption(dhcpv4.OptParameterRequestList(optionMicrosoftRoutes))
	got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, asking))
	if value := got.Options.Get(optionMicrosoftRoutes); !bytes.Equal(value, []byte{16, 10, 9, 10, 1, 0, 9, 0, 10, 1, 0, 1}) {
		t.Fatalf("option 249 is %v", value)
	}
}

// A switch adds the option to messages of its ports, and removes it from the answers.
func TestRelayInformationOfASwitchIsEchoed(t *testing.T) {
	for _, row := range []struct{ length, want int }{{8, 8}, {maxRelayInformation, maxRelayInformation}, {maxRelayInformation + 1, 0}} {
		w := newWorld(t)
		w.obeyLines(`{"fresh":{"forMs":30000}}`)
		added := dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionRelayAgentInformation, bytes.Repeat([]byte{1, 0}, row.length)[:row.length]))
		got := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, added))
		if echoed := len(got.Options.Get(dhcpv4.OptionRelayAgentInformation)); echoed != row.want || len(got.payload) > dhcp4LeastSize {
			t.Errorf("%d bytes of %d in a message of %d", echoed, row.length, len(got.payload))
		}
	}
}

func TestClientIdentifierIsEchoed(t *testing.T) {
	w := newWorld(t)
	w.obeyLines(`{"fresh":{"forMs":30000}}`)
	id := dhcpv4.WithOption(dhcpv4.OptClientIdentifier([]byte{255, 1, 2, 3}))
	for _, frame := range [][]byte{
		fromClient(guestMAC, dhcpv4.MessageTypeDiscover, id),
		fromClient(guestMAC, dhcpv4.MessageTypeRequest, id, dhcpv4.WithClientIP(net.IP{10, 1, 0, 77})), // NAK
	} {
		if got := w.expectReply(frame).Options.Get(dhcpv4.OptionClientIdentifier); !bytes.Equal(got, []byte{255, 1, 2, 3}) {
			t.Errorf("option 61 is %v", got)
		}
	}
}

func TestLongOptionsAreLeftOutIfTheClientTakesNoLongMessage(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat(strings.Repeat("a", 60)+".", 4) + "bcdefgh"
	routes := strings.Repeat(`,{"destination":"10.9.0.0/32","gateway":"10.1.0.9"}`, 32)[1:] // 288 bytes: RFC 3396
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"options":{"id":"o1","dns":["10.1.0.53"],"search":["`+long+`"],"routes":[`+routes+`]}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o1"}]}`)
	short := w.expectReply(discover(guestMAC))
	if short.Options.Has(dhcpv4.OptionClasslessStaticRoute) || !short.Options.Has(dhcpv4.OptionDomainNameServer) || len(short.payload) > dhcp4LeastSize {
		t.Fatalf("%d bytes: %s", len(short.payload), short.Summary())
	}
	full := w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(1500))))
	if len(full.ClasslessStaticRoute()) != 32 || len(full.DomainSearch().Labels) != 1 {
		t.Fatalf("got %s", full.Summary())
	}
}

// The sum of the sizes of options must be the size of the message, to the byte.
func TestMessageIsAsLongAsTheClientTakesAndNoLonger(t *testing.T) {
	w := newWorld(t)
	search := strings.Repeat("a", 60)
	routes := strings.Repeat(`,{"destination":"10.9.0.0/32","gateway":"10.1.0.9"}`, 32)[1:] // 288 bytes: two options
	w.obeyLines(`{"fresh":{"forMs":30000}}`, `{"options":{"id":"o1","dns":["10.1.0.53"],"search":["`+search+`"],"routes":[`+routes+`]}}`,
		`{"put":[{"mac":"02:00:00:00:00:0a","ipv4":{"address":"10.1.0.10","prefix":24},"ipv6":{"address":"fd00:1::a"},"options":"o1"}]}`)
	ask := func(size int) reply {
		return w.expectReply(fromClient(guestMAC, dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(uint16(size+28)))))
	}
	whole := ask(1472)
	if got := ask(len(whole.payload)); len(got.payload) != len(whole.payload) {
		t.Fatalf("%d bytes, not %d", len(got.payload), len(whole.payload))
	}
	if got := ask(len(whole.payload) - 1); got.Options.Has(dhcpv4.OptionDNSDomainSearchList) || !got.Options.Has(dhcpv4.OptionClasslessStaticRoute) {
		t.Fatalf("got %s", got.Summary())
	}
}

// Serializing the message once for each option and encoding all of them each time, needed 135 allocations.
func TestAnswerOfDHCPv4IsSerializedOnce(t *testing.T) {
	w := newWorld(t)
	request := parseDHCP4(guestMAC, discover(guestMAC)[etherLength+28:])
	allocated := testing.AllocsPerRun(100, func() { w.answerDHCP4(request, dhcpv4.MessageTypeOffer, w.table.guests[guestMAC], guestMAC) })
	if allocated > 60 {
		t.Fatalf("%v allocations", allocated)
	}
}

func BenchmarkDISCOVER(b *testing.B) {
	w := newWorld(&testing.T{})
	w.obeyLines(`{"fresh":{"forMs":3600000}}`)
	frame := discover(guestMAC)
	for b.Loop() {
		w.now = w.now.Add(time.Second)
		if len(w.hear(frame)) != 1 {
			w.obeyLines(`{"fresh":{"forMs":3600000}}`)
		}
	}
}
